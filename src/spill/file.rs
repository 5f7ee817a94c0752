//! A file without a name, written and read by position.
//!
//! Readers share one descriptor, so a run costs one whatever the number of its readers.

use std::fs::File;
use std::io;
use std::path::Path;

#[derive(Debug)]
pub(super) struct SpillFile {
    file: File,
    /// Elsewhere than on Unix, position and transfer are two steps.
    #[cfg(not(unix))]
    cursor: std::sync::Mutex<()>,
}

impl SpillFile {
    pub fn create(folder: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        // O_TMPFILE leaves the mode to the umask. There is no name to race for meanwhile.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
        Ok(Self {
            file,
            #[cfg(not(unix))]
            cursor: std::sync::Mutex::new(()),
        })
    }

    #[cfg(unix)]
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset)
    }

    #[cfg(unix)]
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, bytes, offset)
    }

    #[cfg(not(unix))]
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        use std::io::{Seek, SeekFrom, Write};
        let _cursor = self.cursor.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        (&self.file).seek(SeekFrom::Start(offset))?;
        (&self.file).write_all(bytes)
    }

    #[cfg(not(unix))]
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        use std::io::{Read, Seek, SeekFrom};
        let _cursor = self.cursor.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        (&self.file).seek(SeekFrom::Start(offset))?;
        (&self.file).read_exact(bytes)
    }

    pub fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Gives the disk back everything from `length` on.
    pub fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_file_is_private_and_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = SpillFile::create(folder.path()).unwrap();
        let metadata = file.file.metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert_eq!(metadata.nlink(), 0);
        assert_eq!(metadata.dev(), folder.path().metadata().unwrap().dev());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

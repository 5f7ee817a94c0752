//! A block's payload: one batch as Arrow IPC, decodable without any other block.
//!
//! The payload is an IPC stream (dictionaries, the batch, end marker) less its schema message.
//! That is the same for every block and kept with the run instead, which saves some hundred bytes
//! per block and matters when blocks are small.
//!
//! arrow-ipc writes some columns wastefully, and a few wrongly, when they are slices; see
//! [`self_contained`], which every column goes through first.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};

use super::Compression;
use super::compact::self_contained;
use crate::{Error, Result};

/// Turns batches of one schema into payloads and back.
pub(super) struct Codec {
    schema: SchemaRef,
    schema_message: Buffer,
    options: IpcWriteOptions,
}

impl Codec {
    pub fn new(schema: SchemaRef, compression: Compression) -> Result<Self> {
        let compression = match compression {
            Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
            Compression::None => None,
        };
        let options = IpcWriteOptions::default().try_with_compression(compression)?;
        let writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options.clone())
            .map_err(|error| Error::unsupported(format!("rows cannot be spilled: {error}")))?;
        let schema_message = Buffer::from(writer.get_ref().as_slice());
        Ok(Self { schema, schema_message, options })
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Appends the payload to `out`.
    pub fn encode(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        if batch.schema().fields() != self.schema.fields() {
            return Err(Error::invalid(format!(
                "a batch to spill has the columns {:?}, its run has {:?}",
                batch.schema().fields(),
                self.schema.fields()
            )));
        }
        let columns =
            batch.columns().iter().map(self_contained).collect::<Result<_, ArrowError>>()?;
        let batch = self.batch(columns, batch.num_rows())?;
        // A writer per block: one that lives longer omits the dictionaries it has written before.
        let start = out.len();
        let mut writer =
            StreamWriter::try_new_with_options(out, &self.schema, self.options.clone())?;
        writer.get_mut().truncate(start);
        writer.write(&batch)?;
        writer.finish()?;
        Ok(())
    }

    /// The batch in `payload`, or what is wrong with it.
    pub fn decode(&self, mut payload: Buffer, rows: usize) -> Result<RecordBatch, String> {
        let mut decoder = StreamDecoder::new();
        let mut decode = || {
            decoder.decode(&mut self.schema_message.clone())?;
            let batch = decoder.decode(&mut payload)?;
            // The schema as it was given: IPC numbers its dictionaries.
            batch.map(|batch| self.batch(batch.columns().to_vec(), batch.num_rows())).transpose()
        };
        match decode() {
            Ok(Some(batch)) if batch.num_rows() == rows => Ok(batch),
            Ok(Some(batch)) => Err(format!("found {} rows, expected {rows}", batch.num_rows())),
            Ok(None) => Err("found no batch in an intact block".to_owned()),
            Err(error) => Err(format!("an intact block cannot be decoded: {error}")),
        }
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}

//! Whatever happens to a block on disk, its reader says so and returns no row of it.

use std::io;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};

use super::*;

fn batch(from: i64) -> RecordBatch {
    let numbers = Int64Array::from_iter_values(from..from + 5);
    let words =
        StringArray::from_iter((from..from + 5).map(|n| (n % 3 > 0).then(|| n.to_string())));
    RecordBatch::try_from_iter([("number", Arc::new(numbers) as _), ("word", Arc::new(words) as _)])
        .unwrap()
}

/// A run of three small blocks, and where each begins and ends.
fn run(compression: Compression) -> (Run, [std::ops::Range<u64>; 3]) {
    let space = SpillSpace::new(SpillOptions { compression, ..Default::default() });
    let mut writer = space.create_run(&batch(0).schema()).unwrap();
    let ranges = [0, 10, 20].map(|from| {
        let start = writer.bytes();
        writer.write(&batch(from)).unwrap();
        start..writer.bytes()
    });
    (writer.finish(), ranges)
}

/// That block `number` is refused as damaged, and by what words.
fn refused(run: &Run, number: usize) -> String {
    let mut reader = run.reader_at(Position { block: number, row: 0 }).unwrap();
    let error = reader.next().expect("a damaged block is not the end").expect_err("damage unseen");
    assert!(reader.next().is_none(), "a reader ends after an error");
    let text = error.to_string();
    assert!(text.contains(&format!("block {number} ")), "{text}");
    match error {
        Error::Spill { source, .. } => {
            assert_eq!(source.kind(), io::ErrorKind::InvalidData, "{text}")
        }
        other => panic!("{other}"),
    }
    text
}

fn bytes(run: &Run, range: &std::ops::Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    run.run.file.read_exact_at(&mut bytes, range.start).unwrap();
    bytes
}

#[test]
fn every_flipped_bit() {
    for compression in [Compression::Lz4, Compression::None] {
        let (run, ranges) = run(compression);
        let intact = bytes(&run, &ranges[1]);
        for bit in 0..intact.len() * 8 {
            let (byte, mask) = (bit / 8, 1 << (bit % 8));
            let offset = ranges[1].start + byte as u64;
            run.run.file.write_all_at(&[intact[byte] ^ mask], offset).unwrap();
            refused(&run, 1);
            run.run.file.write_all_at(&[intact[byte]], offset).unwrap();
        }
        // The neighbours never suffered, and the block itself is well again.
        let again: Vec<_> = run.reader().map(Result::unwrap).collect();
        assert_eq!(again, [batch(0), batch(10), batch(20)]);
    }
}

#[test]
fn every_length_of_a_short_file() {
    let (run, ranges) = run(Compression::Lz4);
    for length in (ranges[1].start..ranges[1].end).rev() {
        run.run.file.truncate(length).unwrap();
        let text = refused(&run, 1);
        assert!(text.contains(&format!("found {length} bytes in the file")), "{text}");
        assert!(text.contains(&format!("expected {}", ranges[1].end)), "{text}");
    }
    refused(&run, 2);
    assert_eq!(run.reader().next().unwrap().unwrap(), batch(0));
    // A short file that grew again, as after a crash of the file system: zeros are no block.
    run.run.file.truncate(ranges[2].end).unwrap();
    refused(&run, 1);
}

#[test]
fn an_intact_block_of_another_place_or_run() {
    let (run_a, ranges) = run(Compression::None);
    let (run_b, same) = run(Compression::None);
    assert_eq!(ranges, same, "the blocks must be of equal length for this test");
    let place = |block: &[u8]| run_a.run.file.write_all_at(block, ranges[1].start).unwrap();

    let intact = bytes(&run_a, &ranges[1]);
    place(&bytes(&run_a, &ranges[2]));
    assert!(refused(&run_a, 1).contains("found another block"));
    place(&bytes(&run_b, &ranges[1]));
    assert!(refused(&run_a, 1).contains("found another block"));
    place(&intact);
    assert_eq!(run_a.reader().nth(1).unwrap().unwrap(), batch(10));
}

/// Bytes that pass the checksum and are no IPC can only come from a bug, and still do no harm.
#[test]
fn a_payload_that_does_not_decode() {
    let (run, ranges) = run(Compression::None);
    let block = bytes(&run, &ranges[1]);
    let forge = |start: &[u8], fill: u8| {
        let mut forged = block.clone();
        forged[block::HEADER..].fill(fill);
        forged[block::HEADER..][..start.len()].copy_from_slice(start);
        block::seal(&mut forged, run.run.label(1, &run.run.blocks[1]));
        run.run.file.write_all_at(&forged, ranges[1].start).unwrap();
        refused(&run, 1)
    };
    // A message of 64 bytes of nonsense; one longer than the block; a stream that ends at once.
    assert!(forge(&[0xff, 0xff, 0xff, 0xff, 64, 0, 0, 0], 0x5a).contains("cannot be decoded"));
    assert!(forge(&[], 0x5a).contains("found no batch"));
    assert!(forge(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0], 0).contains("cannot be decoded"));
}

#[test]
fn damage_is_not_counted_as_read() {
    let (run, ranges) = run(Compression::Lz4);
    run.run.file.write_all_at(&[0xff], ranges[1].start + 70).unwrap();
    let before = run.run.space.stats();
    refused(&run, 1);
    assert_eq!(run.run.space.stats(), before);
}

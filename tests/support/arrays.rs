//! Random arrays of any type, from a seed.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, LargeBinaryArray, LargeStringArray, NullArray,
    StringArray, StructArray, UnionArray, make_array,
};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, UnionMode};

/// A small generator of its own, so that a seed means the same array for ever.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % end
    }

    fn nulls(&mut self, nullable: bool, rows: usize) -> Option<NullBuffer> {
        let some = nullable && self.below(4) > 0;
        some.then(|| (0..rows).map(|_| self.below(4) > 0).collect())
    }

    /// Empty, short enough to be inlined in a view, too long for that, not ASCII.
    fn text(&mut self) -> String {
        let letter = ["a", "b", "ß", "漢"][self.below(4)];
        letter.repeat([0, 1, 3, 12, 13, 40][self.below(6)])
    }

    fn texts(&mut self, nullable: bool, rows: usize) -> Vec<Option<String>> {
        let nulls = self.nulls(nullable, rows);
        let valid = |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        (0..rows).map(|row| Some(self.text()).filter(|_| valid(row))).collect()
    }

    fn bytes(&mut self, count: usize) -> Buffer {
        (0..count).map(|_| self.below(256) as u8).collect::<Vec<u8>>().into()
    }

    fn lengths(&mut self, rows: usize) -> Vec<usize> {
        (0..rows).map(|_| self.below(4)).collect()
    }
}

/// `rows` random values of the field's type, with nulls where it allows them.
pub fn array(field: &Field, rows: usize, random: &mut Random) -> ArrayRef {
    let nullable = field.is_nullable();
    let data_type = field.data_type();
    let build = |nulls: Option<NullBuffer>, buffers: Vec<Buffer>, children: Vec<ArrayRef>| {
        let children = children.iter().map(|child| child.to_data()).collect();
        let builder = ArrayData::builder(data_type.clone()).len(rows).nulls(nulls);
        make_array(
            builder.buffers(buffers).child_data(children).align_buffers(true).build().unwrap(),
        )
    };
    match data_type {
        DataType::Null => Arc::new(NullArray::new(rows)),
        DataType::Boolean => {
            let nulls = random.nulls(nullable, rows);
            Arc::new(BooleanArray::new((0..rows).map(|_| random.below(2) > 0).collect(), nulls))
        }
        DataType::Utf8 => Arc::new(StringArray::from(random.texts(nullable, rows))),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from(random.texts(nullable, rows))),
        DataType::Binary => Arc::new(BinaryArray::from_iter(random.texts(nullable, rows))),
        DataType::LargeBinary => {
            Arc::new(LargeBinaryArray::from_iter(random.texts(nullable, rows)))
        }
        DataType::Utf8View => {
            let mut builder = StringViewBuilder::new().with_fixed_block_size(64);
            builder.extend(random.texts(nullable, rows));
            Arc::new(builder.finish())
        }
        DataType::BinaryView => {
            let mut builder = BinaryViewBuilder::new().with_fixed_block_size(64);
            builder.extend(random.texts(nullable, rows));
            Arc::new(builder.finish())
        }
        DataType::FixedSizeBinary(width) => {
            let values = random.bytes(rows * *width as usize);
            build(random.nulls(nullable, rows), vec![values], vec![])
        }
        DataType::List(child) | DataType::Map(child, _) => {
            let offsets = offsets(&random.lengths(rows));
            let values = array(child, *offsets.last().unwrap(), random);
            let offsets = offsets.iter().map(|&offset| offset as i32).collect::<Vec<_>>();
            build(random.nulls(nullable, rows), vec![offsets.into()], vec![values])
        }
        DataType::LargeList(child) => {
            let offsets = offsets(&random.lengths(rows));
            let values = array(child, *offsets.last().unwrap(), random);
            let offsets = offsets.iter().map(|&offset| offset as i64).collect::<Vec<_>>();
            build(random.nulls(nullable, rows), vec![offsets.into()], vec![values])
        }
        DataType::ListView(child) => {
            // Backwards and overlapping, as only views may be.
            let values = array(child, rows + 3, random);
            let starts = (0..rows).rev().map(|start| start as i32).collect::<Vec<_>>();
            let sizes =
                random.lengths(rows).into_iter().map(|size| size as i32).collect::<Vec<_>>();
            build(random.nulls(nullable, rows), vec![starts.into(), sizes.into()], vec![values])
        }
        DataType::LargeListView(child) => {
            let values = array(child, rows + 3, random);
            let starts = (0..rows).rev().map(|start| start as i64).collect::<Vec<_>>();
            let sizes =
                random.lengths(rows).into_iter().map(|size| size as i64).collect::<Vec<_>>();
            build(random.nulls(nullable, rows), vec![starts.into(), sizes.into()], vec![values])
        }
        DataType::FixedSizeList(child, size) => {
            let values = array(child, rows * *size as usize, random);
            build(random.nulls(nullable, rows), vec![], vec![values])
        }
        DataType::Struct(fields) => {
            let nulls = random.nulls(nullable, rows);
            if fields.is_empty() {
                return Arc::new(StructArray::new_empty_fields(rows, nulls));
            }
            let children = fields.iter().map(|field| array(field, rows, random)).collect();
            Arc::new(StructArray::new(fields.clone(), children, nulls))
        }
        DataType::Union(fields, mode) => {
            let ids: Vec<i8> = fields.iter().map(|(id, _)| id).collect();
            let types: Vec<i8> = (0..rows).map(|_| ids[random.below(ids.len())]).collect();
            let children = fields.iter().map(|(_, field)| array(field, rows + 2, random));
            let children: Vec<ArrayRef> = match mode {
                UnionMode::Sparse => children.map(|child| child.slice(1, rows)).collect(),
                UnionMode::Dense => children.collect(),
            };
            let offsets = (*mode == UnionMode::Dense)
                .then(|| ScalarBuffer::from_iter((0..rows).map(|_| random.below(rows + 2) as i32)));
            Arc::new(UnionArray::try_new(fields.clone(), types.into(), offsets, children).unwrap())
        }
        DataType::Dictionary(key, value) => {
            // More values than keys, and fewer.
            let values =
                array(&Field::new("", (**value).clone(), nullable), 1 + random.below(9), random);
            let width = key.primitive_width().unwrap();
            let mut keys = vec![0; rows * width];
            keys.chunks_mut(width).for_each(|key| key[0] = random.below(values.len()) as u8);
            build(random.nulls(nullable, rows), vec![keys.into()], vec![values])
        }
        DataType::RunEndEncoded(ends, values) => {
            let mut runs = vec![];
            while runs.last().copied().unwrap_or(0) < rows {
                runs.push(rows.min(runs.last().copied().unwrap_or(0) + 1 + random.below(3)));
            }
            let width = ends.data_type().primitive_width().unwrap();
            let bytes = runs.iter().flat_map(|end| end.to_le_bytes()[..width].to_vec());
            let bytes = Buffer::from(bytes.collect::<Vec<u8>>());
            let ends = ArrayData::builder(ends.data_type().clone()).len(runs.len());
            let ends = make_array(ends.add_buffer(bytes).align_buffers(true).build().unwrap());
            build(None, vec![], vec![ends, array(values, runs.len(), random)])
        }
        primitive => {
            let width = primitive.primitive_width().expect("every other type is handled above");
            let nulls = random.nulls(nullable, rows);
            let values = random.bytes(rows * width);
            let builder = ArrayData::builder(primitive.clone()).len(rows).nulls(nulls);
            make_array(builder.add_buffer(values).align_buffers(true).build().unwrap())
        }
    }
}

fn offsets(lengths: &[usize]) -> Vec<usize> {
    let mut sum = 0;
    std::iter::once(0)
        .chain(lengths.iter().map(|length| {
            sum += length;
            sum
        }))
        .collect()
}

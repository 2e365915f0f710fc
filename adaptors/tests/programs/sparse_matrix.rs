//! Sparse matrices: rows of columns and values, added and multiplied.

use std::collections::BTreeMap;

use tripoint_adaptors::PoolAllocator;
use tripoint_core::ManualPool;

use super::{Numbers, PoolMap, PoolVec};

const SIZE: usize = if cfg!(miri) { 8 } else { 60 };
const ENTRIES: usize = if cfg!(miri) { 14 } else { 250 };

fn entries(seed: u64) -> impl Iterator<Item = (usize, usize, i64)> {
    let mut numbers = Numbers::new(seed);
    let mut below = move |bound| numbers.below(bound);
    (0..ENTRIES)
        .map(move |_| (below(SIZE as u64) as usize, below(SIZE as u64) as usize, below(19) as i64 - 9))
}

/// Rows sorted by column, without zeros.
struct Matrix<'p, P: ManualPool> {
    rows: PoolVec<'p, PoolVec<'p, (usize, i64), P>, P>,
    memory: PoolAllocator<'p, P>,
}

impl<'p, P: ManualPool> Matrix<'p, P> {
    fn zero(memory: PoolAllocator<'p, P>) -> Self {
        let mut rows = PoolVec::with_capacity_in(SIZE, memory);
        rows.resize_with(SIZE, || PoolVec::new_in(memory));
        Self { rows, memory }
    }

    fn with_entries(memory: PoolAllocator<'p, P>, seed: u64) -> Self {
        let mut matrix = Self::zero(memory);
        for (row, column, value) in entries(seed) {
            matrix.add(row, column, value);
        }
        matrix
    }

    fn add(&mut self, row: usize, column: usize, value: i64) {
        let row = &mut self.rows[row];
        match row.binary_search_by_key(&column, |&(column, _)| column) {
            Ok(at) if row[at].1 + value == 0 => drop(row.remove(at)),
            Ok(at) => row[at].1 += value,
            Err(at) if value != 0 => row.insert(at, (column, value)),
            Err(_) => (),
        }
    }

    fn product(&self, other: &Self) -> Self {
        let mut product = Self::zero(self.memory);
        for (row, entries) in self.rows.iter().enumerate() {
            let mut sums = PoolMap::new_in(self.memory);
            for &(inner, left) in entries {
                for &(column, right) in &other.rows[inner] {
                    *sums.entry(column).or_insert(0) += left * right;
                }
            }
            for (column, sum) in sums {
                product.add(row, column, sum);
            }
            product.rows[row].shrink_to_fit();
        }
        product
    }
}

type Expected = BTreeMap<(usize, usize), i64>;

fn with_entries(seed: u64) -> Expected {
    let mut matrix = Expected::new();
    for (row, column, value) in entries(seed) {
        *matrix.entry((row, column)).or_default() += value;
    }
    matrix
}

fn product(left: &Expected, right: &Expected) -> Expected {
    let mut product = Expected::new();
    for (&(row, inner), left) in left {
        for (&(_, column), right) in right.range((inner, 0)..(inner + 1, 0)) {
            *product.entry((row, column)).or_default() += left * right;
        }
    }
    product
}

pub(crate) fn run<P: ManualPool>(pool: &P) {
    let memory = PoolAllocator::new(pool);
    let [left, right] = [7, 8].map(|seed| Matrix::with_entries(memory, seed));
    let found = left.product(&right).product(&left);

    let [left, right] = [7, 8].map(with_entries);
    let mut expected = product(&product(&left, &right), &left);
    expected.retain(|_, value| *value != 0);
    let rows = found.rows.iter().enumerate();
    let found: Expected = rows
        .flat_map(|(row, entries)| entries.iter().map(move |&(column, value)| ((row, column), value)))
        .collect();
    assert!(expected.len() > ENTRIES);
    assert_eq!(found, expected);
}

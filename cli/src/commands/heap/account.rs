//! What a heap has: objects by type, pools and segments.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::heaps::{Heap, Segment};

/// How many generations are told apart: older ones count as the last.
const GENERATIONS: usize = 3;

/// The objects of one type in one pool.
#[derive(Debug, Default, Serialize)]
pub(super) struct Row {
    #[serde(rename = "type")]
    pub(super) type_name: String,
    pub(super) pool: u64,
    pub(super) class: String,
    pub(super) objects: u64,
    pub(super) bytes: u64,
    /// How many are of each generation, the youngest first.
    pub(super) generations: [u64; GENERATIONS],
}

#[derive(Debug, Serialize)]
pub(super) struct PoolRow {
    pub(super) number: u64,
    pub(super) class: String,
    /// Whether its objects are known: if not, its segments are counted.
    pub(super) is_described: bool,
    pub(super) segments: u64,
    pub(super) bytes: u64,
    /// The bytes in objects; none if its objects are not known.
    pub(super) used: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct SegmentRow {
    pool: u64,
    base: String,
    limit: String,
    generation: u8,
    objects: u64,
    used: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct FrozenRow {
    base: String,
    limit: String,
    bytes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Account {
    pub(super) types: Vec<Row>,
    pub(super) pools: Vec<PoolRow>,
    segments: Vec<SegmentRow>,
    frozen: Vec<FrozenRow>,
}

impl Account {
    pub(super) fn of(heap: &Heap) -> Self {
        let mut types = BTreeMap::<(&str, usize), Row>::new();
        let mut used = vec![(0, 0); heap.segments.len()];
        for object in &heap.objects {
            let (name, segment) = (heap.type_of(object).name.as_str(), heap.segment(object));
            let row = types.entry((name, segment.pool)).or_default();
            row.objects += 1;
            row.bytes += object.size;
            row.generations[usize::from(segment.generation).min(GENERATIONS - 1)] += 1;
            let (objects, bytes) = &mut used[object.segment_index()];
            (*objects, *bytes) = (*objects + 1, *bytes + object.size);
        }
        let named = |((name, pool), row): ((&str, usize), Row)| {
            let pool = &heap.pools[pool];
            Row { type_name: name.to_owned(), pool: pool.number, class: pool.class.clone(), ..row }
        };
        let segments = heap.segments.iter().zip(&used);
        let of_pool = |index: usize| segments.clone().filter(move |(segment, _)| segment.pool == index);
        let pools = heap.pools.iter().enumerate().map(|(index, pool)| PoolRow {
            number: pool.number,
            class: pool.class.clone(),
            is_described: pool.is_described(),
            segments: of_pool(index).count() as u64,
            bytes: of_pool(index).map(|(segment, _)| segment.size()).sum(),
            used: pool.is_described().then(|| of_pool(index).map(|(_, (_, bytes))| bytes).sum()),
        });
        let segment = |(segment, (objects, used)): (&Segment, &(u64, u64))| SegmentRow {
            pool: heap.pools[segment.pool].number,
            base: format!("{:#x}", segment.base),
            limit: format!("{:#x}", segment.limit),
            generation: segment.generation,
            objects: *objects,
            used: *used,
        };
        let frozen = heap.frozen.iter().map(|frozen| FrozenRow {
            base: format!("{:#x}", frozen.base),
            limit: format!("{:#x}", frozen.limit),
            bytes: frozen.limit - frozen.base,
        });
        Self {
            pools: pools.collect(),
            segments: segments.clone().map(segment).collect(),
            frozen: frozen.collect(),
            types: types.into_iter().map(named).collect(),
        }
    }

    /// The bytes of objects in frozen segments.
    pub(super) fn frozen_bytes(&self) -> u64 {
        self.frozen.iter().map(|frozen| frozen.bytes).sum()
    }
}

//! Which pool has which addresses, row by row, and how full it is.

use std::collections::BTreeMap;

use super::extents::Blocks;
use super::names::PoolKey;
use super::observed::Observed;
use super::track::Track;
use crate::plotting::{Axis, Block, Chart, Content, Theme, Unit};

/// The most rows of a map.
const ROWS: u64 = 24;

/// The cells of a row. A cell has the colour of the pool that has most of it.
const CELLS: u64 = 256;

/// The most arenas that are drawn.
const ARENAS: usize = 4;

pub(super) fn charts(observed: &Observed) -> Vec<Chart> {
    let extents = &observed.extents;
    let of_arena = |arena: u64| Some((arena, extents.of(arena)?));
    let charts: Vec<_> = extents
        .arenas()
        .into_iter()
        .filter_map(of_arena)
        .take(ARENAS)
        .map(|(arena, (blocks, is_before))| chart(observed, arena, &blocks, is_before))
        .collect();
    match charts.is_empty() {
        true => vec![chart(observed, 0, &Blocks::new(), false)],
        false => charts,
    }
}

/// Pools that have more than is drawn, a sentence each.
pub(super) fn notes(observed: &Observed) -> Vec<String> {
    let mut drawn = BTreeMap::<PoolKey, u64>::new();
    let mut arenas = observed.extents.arenas();
    arenas.retain(|arena| observed.extents.of(*arena).is_some_and(|(_, is_before)| !is_before));
    for arena in &arenas {
        let Some((blocks, _)) = observed.extents.of(*arena) else { continue };
        for (first, (last, pool)) in &*blocks {
            *drawn.entry(PoolKey { arena: *arena, pool: *pool }).or_default() += last - first;
        }
    }
    let missing = |(pool, held): (&PoolKey, &Track)| {
        let drawn = drawn.get(pool).copied().unwrap_or(0);
        let missing = observed.course(held).last()?.size - drawn as f64;
        let name = observed.names.of(*pool);
        (missing > 0.0).then(|| {
            format!("{name} has {} more, at addresses that are not known", Unit::Bytes.show(missing))
        })
    };
    let held = observed.held.iter().filter(|(pool, _)| arenas.contains(&pool.arena));
    held.filter_map(missing).collect()
}

fn chart(observed: &Observed, arena: u64, blocks: &Blocks, is_before: bool) -> Chart {
    let first = blocks.keys().next().copied().unwrap_or(0);
    let last = blocks.values().map(|(last, _)| *last).max().unwrap_or(first);
    let base = observed.extents.base(arena).filter(|base| *base <= first).unwrap_or(first);
    let row = (last - first).div_ceil(ROWS).max(CELLS).next_power_of_two();
    let mut pools: Vec<u64> = blocks.values().map(|(_, pool)| *pool).collect();
    pools.sort_unstable();
    pools.dedup();
    let colour = |pool: u64| pools.binary_search(&pool).unwrap_or(0).min(Theme::COLOURS - 1);
    let fill = |pool: u64| fullness(observed, PoolKey { arena, pool });
    let drawn = cells(blocks, base, row / CELLS)
        .into_iter()
        .flat_map(|(begin, end, pool)| rows(begin, end, row).map(move |(at, x)| (at, x, pool)));
    let blocks = drawn.map(|(at, x, pool)| Block {
        x,
        y: (at as f64, (at + row) as f64),
        colour: colour(pool),
        strength: 0.3 + 0.7 * fill(pool).unwrap_or(1.0),
        text: String::new(),
    });
    let mut names: Vec<_> = pools.iter().map(|pool| name(observed, PoolKey { arena, pool: *pool })).collect();
    let others = names.len().saturating_sub(Theme::COLOURS);
    names.truncate(Theme::COLOURS);
    if let (Some(last), 1..) = (names.last_mut(), others) {
        last.push_str(&format!(", and {others} other pools"));
    }
    let when = if is_before { "before its pools were destroyed" } else { "at the end of the recording" };
    Chart {
        title: format!("Arena {arena} {when}; fainter is emptier"),
        x: Axis::new("offset in the row", Unit::Bytes),
        y: Axis::new("offset of the row", Unit::Bytes),
        moments: Vec::new(),
        content: Content::Blocks { names, blocks: blocks.collect() },
        if_empty: "the recording has no addresses of pools, or those events were overwritten".to_owned(),
    }
}

/// The part of a pool's memory that is in objects and buffers, as the program noted it last.
fn fullness(observed: &Observed, pool: PoolKey) -> Option<f64> {
    let noted = observed.noted.get(&pool)?.iter().rfind(|noted| noted.total > 0)?;
    Some(1.0 - (noted.free as f64 / noted.total as f64).min(1.0))
}

fn name(observed: &Observed, pool: PoolKey) -> String {
    let name = observed.names.of(pool);
    match fullness(observed, pool) {
        Some(part) => format!("{name}: {:.0} % in use", 100.0 * part),
        None => name,
    }
}

/// No arena is larger: such offsets are of a damaged file.
const MOST: u64 = 1 << 60;

/// Blocks in whole cells, as offsets from the base, joined if neighbours are of one pool.
fn cells(blocks: &Blocks, base: u64, cell: u64) -> Vec<(u64, u64, u64)> {
    let mut most = BTreeMap::<u64, (u64, u64)>::new();
    for (first, (last, pool)) in blocks {
        let [mut at, end] = [first, last].map(|address| address.saturating_sub(base).min(MOST));
        while at < end {
            let number = at / cell;
            let until = end.min((number + 1) * cell);
            let known = most.entry(number).or_default();
            *known = (*known).max((until - at, *pool));
            at = until;
        }
    }
    let mut joined: Vec<(u64, u64, u64)> = Vec::new();
    for (number, (_, pool)) in most {
        match joined.last_mut() {
            Some((_, end, of)) if *end == number * cell && *of == pool => *end += cell,
            _ => joined.push((number * cell, (number + 1) * cell, pool)),
        }
    }
    joined
}

/// The parts of a range in each row: where the row begins, and the range in it.
fn rows(begin: u64, end: u64, row: u64) -> impl Iterator<Item = (u64, (f64, f64))> {
    (begin / row..end.div_ceil(row)).map(move |number| {
        let at = number * row;
        let from = begin.max(at) - at;
        let to = end.min(at + row) - at;
        (at, (from as f64, to as f64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte of every block is drawn once.
    #[test]
    fn rows_and_cells_have_all_bytes_of_aligned_blocks() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..200 {
            let (cell, row) = (64, 64 * 16);
            let mut blocks = Blocks::new();
            let mut at = 0;
            for pool in 0..random.u64(1..20) {
                at += cell * random.u64(0..40);
                let size = cell * random.u64(1..40);
                blocks.insert(at, (at + size, pool % 3));
                at += size;
            }
            let cells = cells(&blocks, 0, cell);
            let drawn: f64 = cells
                .iter()
                .flat_map(|(begin, end, _)| rows(*begin, *end, row))
                .map(|(_, (from, to))| to - from)
                .sum();
            let all: u64 = blocks.iter().map(|(first, (last, _))| last - first).sum();
            assert_eq!(drawn, all as f64);
        }
    }
}

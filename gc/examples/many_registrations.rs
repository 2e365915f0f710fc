//! What collections cost that have much to look at beside objects: weak pairs whose values lead to each other's keys,
//! registrations for finalization, and roots (design/gc-typed.md `.typed.pairs.waiting`, design/gc.md `.final.generation`).
//!
//! ```sh
//! cargo run --release -p tripoint-gc --example many_registrations
//! ```
//!
//! Times are medians of a few collections, as a clock on the wall has them: compare lines of one run on a machine that does
//! nothing else. What was examined and looked at is the same in every run.

use core::time::Duration;
use std::time::Instant;

use tripoint_core::{ClientArena, ClientArenaOptions};
use tripoint_gc::{FinalQueue, Heap, HeapOptions, SweptOptions, TypedObjects, WeakPair};

type Result<T> = core::result::Result<T, Box<dyn core::error::Error>>;
type Objects<'h, 'm> = TypedObjects<'h, &'m ClientArena<'m>>;

const ALL: Duration = Duration::MAX;

fn with_objects(test: impl FnOnce(&Objects<'_, '_>) -> Result<()>) -> Result<()> {
    let mut memory = Box::new_uninit_slice(1 << 30);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
    let heap = Heap::create(&arena, HeapOptions::default())?;
    let _parked = heap.park();
    test(&TypedObjects::create(&heap, SweptOptions::default())?)
}

/// The median time of some calls, in microseconds.
fn median(mut call: impl FnMut()) -> f64 {
    let mut times: Vec<_> = (0..9)
        .map(|_| {
            let begin = Instant::now();
            call();
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// A slice of pairs, in which each value is the key of the pair in front of it.
fn chain_of_pairs(count: usize) -> Result<()> {
    with_objects(|objects| {
        let mut mutator = objects.register()?;
        let _roots = mutator.try_enter(|inside| {
            let mut keys = Vec::with_capacity(count + 1);
            for number in 0..=count {
                keys.push(inside.alloc(number)?);
            }
            let pair = |index: usize| WeakPair::new(Some((keys[index], keys[index + 1])));
            let pairs = inside.slice(count, |index| pair(count - 1 - index))?;
            Ok((objects.root(inside, pairs)?, objects.root(inside, keys[0])?))
        })?;
        let examined = mutator.collect(ALL)?.examined / count;
        let time = median(|| assert!(mutator.collect(ALL).is_ok()));
        let each = time * 1e3 / count as f64;
        println!(
            "{count:>9} weak pairs, a full collection: {time:>10.0} us, {each:>6.1} ns and {examined} bytes examined a pair"
        );
        Ok(())
    })
}

/// Collections of an empty nursery, beside this many registrations and roots of old objects.
fn beside(registrations: usize, roots: usize) -> Result<()> {
    with_objects(|objects| {
        let mut mutator = objects.register()?;
        let queue: FinalQueue<'_, u64> = objects.final_queue()?;
        let kept = mutator.try_enter(|inside| {
            let mut numbers = Vec::new();
            for _ in 0..registrations {
                let number = inside.alloc(7_u64)?;
                queue.register(inside, number)?;
                numbers.push(number);
            }
            let one = inside.alloc(7_u64)?;
            let roots: tripoint_core::Result<Vec<_>> =
                (0..roots).map(|_| objects.root(inside, one)).collect();
            let slice = inside.slice(numbers.len(), |index| Some(numbers[index]))?;
            Ok((objects.root(inside, slice)?, roots?))
        })?;
        for _ in 0..4 {
            mutator.collect(ALL)?;
        }
        let found = mutator.collect_up_to(0, ALL)?;
        let looked = (found.registrations, found.roots);
        let time = median(|| assert!(mutator.collect_up_to(0, ALL).is_ok()));
        println!(
            "{registrations:>9} registrations, {roots:>7} roots, a minor collection: {time:>10.2} us, looked at {looked:?}"
        );
        drop(kept);
        Ok(())
    })
}

fn main() -> Result<()> {
    for count in [10_000, 100_000, 1_000_000] {
        chain_of_pairs(count)?;
    }
    for (registrations, roots) in [(0, 0), (1_000_000, 0), (0, 1_000_000)] {
        beside(registrations, roots)?;
    }
    Ok(())
}

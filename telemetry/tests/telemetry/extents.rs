//! The addresses that pools have, compared with what the arena says of each grain (design/telemetry.md `.extents`).

use core::alloc::Layout;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use tripoint_core::{
    Addr, AddrRange, Arena, ClientArena, ClientArenaOptions, Event, EventHook, PoolId, PoolOptions, Store,
};
use tripoint_oracle::{Random, effort};
use tripoint_pools::{Mvff, MvffOptions};
use tripoint_telemetry::Room;
use tripoint_telemetry::format::{ExtentWord, PoolWord, SectionKind};

use crate::decoder::{File, InMemory};

const GRAIN: usize = 4096;
const ROOM: Room = Room { pools: 8, extents: 256, ..Room::LEAST };

/// Which pool has each grain, as the file says.
fn known(file: &File) -> BTreeMap<u64, u64> {
    let mut owners = BTreeMap::new();
    for extent in file.live(SectionKind::Extents) {
        let [pool, base, bytes] =
            [ExtentWord::Pool, ExtentWord::Base, ExtentWord::Bytes].map(|word| extent[word as usize]);
        for at in (base..base + bytes).step_by(GRAIN) {
            assert_eq!(owners.insert(at, pool), None, "two extents have {at:#x}");
        }
    }
    owners
}

/// Which pool has each grain, as the arena says.
fn truth(arena: &ClientArena<'_>) -> BTreeMap<u64, u64> {
    let range = arena.range();
    let grains = (range.base().get().next_multiple_of(GRAIN)..range.limit().get()).step_by(GRAIN);
    let owned = grains.filter_map(|at| Some((at as u64, u64::from(arena.pool_of(Addr::new(at))?.get()))));
    owned.collect()
}

/// Pools of one arena take and return memory in any order, and are destroyed.
#[test]
fn extents_are_what_the_arena_says() {
    for seed in 1..=effort(6) {
        let mut random = Random::new(seed.into());
        let telemetry = InMemory::new(&ROOM);
        let hook = telemetry.telemetry.arena_hook();
        let mut memory = Box::new_uninit_slice(1 << 20);
        let options = ClientArenaOptions { grain: Some(GRAIN), event_hook: Some(&hook) };
        let arena = ClientArena::create(&mut memory, options).unwrap();
        let mut pools: Vec<_> =
            (0..3).map(|_| Some(Mvff::create(&arena, MvffOptions::default()).unwrap())).collect();
        let mut objects: [Vec<(NonNull<u8>, Layout)>; 3] = Default::default();
        for step in 0..effort(300) {
            let at = random.below(3);
            let Some(pool) = &pools[at] else { continue };
            if random.below(5) < 3 {
                let layout = Layout::from_size_align(1 + random.below(6 * GRAIN), 16).unwrap();
                objects[at].extend(pool.alloc(layout).ok().map(|object| (object, layout)));
            } else if !objects[at].is_empty() {
                let index = random.below(objects[at].len());
                let (object, layout) = objects[at].swap_remove(index);
                // SAFETY: the object came from this pool with this layout, is freed once, and is not used any more.
                unsafe { pool.free(object, layout) };
            }
            assert_eq!(known(&telemetry.file()), truth(&arena), "seed {seed}, step {step}");
        }
        assert!(!known(&telemetry.file()).is_empty());
        for at in 0..3 {
            objects[at].clear();
            pools[at] = None;
            assert_eq!(known(&telemetry.file()), truth(&arena), "seed {seed}, pool {at} is gone");
        }
        assert_eq!(telemetry.file().left_out(SectionKind::Extents), 0);
    }
}

/// A pool whose extents do not follow each other.
fn scattered(hook: &dyn EventHook, extents: usize) {
    let pool = PoolId::new(1).unwrap();
    let range = AddrRange::with_size(Addr::new(GRAIN), 1 << 20).unwrap();
    hook.event(Event::CreateArena {
        grain: GRAIN,
        commit_limit: 1 << 20,
        commit_policy: 0,
        prefault_size: 0,
        range,
        memory: range,
        class: "ClientArena",
    });
    hook.event(Event::CreatePool { pool, options: PoolOptions::NONE, class: "MVFF" });
    for number in 1..=extents {
        hook.event(Event::Extend { pool, base: Addr::new(2 * number * GRAIN), size: GRAIN });
    }
}

/// A pool of which an extent finds no entry is counted once, and is known again once it has returned all.
#[test]
fn of_a_pool_with_too_many_extents_none_is_kept_and_that_is_counted() {
    for extents in [0, 8] {
        let memory = InMemory::new(&Room { extents, ..ROOM });
        let hook = memory.telemetry.arena_hook();
        scattered(&hook, 20);
        let left_out = || memory.file().left_out(SectionKind::Extents);
        assert_eq!((known(&memory.file()).len(), left_out()), (0, 1));
        // How much the pool has is known nevertheless.
        let bytes = memory.file().live(SectionKind::Pools)[0][PoolWord::Extended as usize];
        assert_eq!(bytes, 20 * GRAIN as u64);
        let pool = PoolId::new(1).unwrap();
        for number in 1..=20 {
            hook.event(Event::Retract { pool, base: Addr::new(2 * number * GRAIN), size: GRAIN });
        }
        hook.event(Event::Extend { pool, base: Addr::new(GRAIN), size: GRAIN });
        let now = if extents == 0 { (0, 2) } else { (1, 1) };
        assert_eq!((known(&memory.file()).len(), left_out()), now);
    }
}

#[test]
fn no_addresses_are_kept_while_they_are_left_out() {
    for from_the_beginning in [true, false] {
        let memory = InMemory::new(&ROOM);
        let (hook, switches) = (memory.telemetry.arena_hook(), memory.telemetry.switches());
        switches.set_without_addresses(from_the_beginning);
        scattered(&hook, 3);
        assert_eq!(known(&memory.file()).len(), if from_the_beginning { 0 } else { 3 });
        // What was written before goes with the pool's next event.
        switches.set_without_addresses(true);
        hook.event(Event::Retract { pool: PoolId::new(1).unwrap(), base: Addr::new(2 * GRAIN), size: GRAIN });
        assert_eq!(known(&memory.file()), BTreeMap::new());
        let addresses = [1, 2, 3].map(|number| (2 * number * GRAIN) as u64);
        for entry in memory.file().entries(SectionKind::Extents) {
            assert!(
                !entry.iter().any(|word| addresses.contains(word)),
                "an address is still there: {entry:?}"
            );
        }
    }
}

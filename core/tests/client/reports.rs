//! What checks find, descriptions show, and hooks are notified of.

use tripoint_core::internal::{AtomicU32, Ordering};
use tripoint_core::{Arena, Check, CheckLevel, ClientArena, ClientArenaOptions, Describe, Event, PoolId};

use crate::{CountEvents, memory, with_grain};

#[test]
fn checks_find_a_damaged_table() {
    let mut memory = memory(64 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(3 * arena.grain(), pool).unwrap();
    let words = 4 * arena.sizes().spare / arena.grain();
    // A pointer with the arena's own provenance, to its table.
    let table = block.base().as_ptr().with_addr(arena.range().base().get()).cast::<AtomicU32>();
    let damage = |word: usize, bits: u32| {
        // SAFETY: the table has four atomic words for each grain, aligned.
        let word = unsafe { &*table.add(word) };
        word.fetch_xor(bits, Ordering::Relaxed);
        let found = arena.check(CheckLevel::Deep);
        word.fetch_xor(bits, Ordering::Relaxed);
        found
    };
    for grain in 0..words / 4 {
        assert!(damage(4 * grain, 1 << 25).is_err(), "state of grain {grain}");
    }
    assert!(damage(1 + 4 * 3, 1).is_err(), "length of the spare run");
    assert!(damage(3 + 4 * 3, 1).is_err(), "link of the spare run");
    assert!(damage(0, pool.get() ^ PoolId::ARENA.get()).is_err(), "a grain that became the arena's own");
    assert!(damage(0, 0).is_ok());
}

#[test]
fn a_lent_arena_that_is_damaged_says_so() {
    fn check<C: Check>(lent: C) -> bool {
        lent.check(CheckLevel::Deep).is_ok()
    }
    let mut memory = memory(16 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let block = arena.alloc_tracts(1, arena.register().unwrap()).unwrap();
    assert!(check(&arena));
    // A pointer with the arena's own provenance, to the first word of its table.
    let table = block.base().as_ptr().with_addr(arena.range().base().get()).cast::<AtomicU32>();
    // SAFETY: the table begins with an atomic word.
    unsafe { &*table }.fetch_xor(1 << 25, Ordering::Relaxed);
    assert!(!check(&arena));
}

/// A check on an arena's address finds that the arena has ended.
#[test]
fn an_arena_that_is_gone_has_no_signature() {
    let mut memory = memory(16 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let mut arena = core::mem::ManuallyDrop::new(arena);
    assert_eq!(arena.check(CheckLevel::Cheap), Ok(()));
    // SAFETY: dropped once. What is read of it after are plain words, which stay.
    unsafe { core::mem::ManuallyDrop::drop(&mut arena) };
    assert!(arena.check(CheckLevel::Cheap).is_err());
}

#[test]
fn describes_itself() {
    let mut memory = memory(64 << 10);
    let arena = ClientArena::create(&mut memory, with_grain(1024)).unwrap();
    arena.register().unwrap();
    arena.freeze();
    let (range, sizes) = (arena.range(), arena.sizes());
    let mut text = String::new();
    arena.describe(&mut text, 0).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        format!("client arena: {range}"),
        format!("  reserved: {} bytes", range.size()),
        format!("  spare: {} bytes", sizes.spare),
        format!("  tables and descriptors: {} bytes", sizes.own),
        "  grain: 1024 bytes".into(),
        "  frozen: true".into(),
        "  pools: 1".into(),
    ];
    assert_eq!(lines[..7], expected);
    assert!(
        lines[7].starts_with("  descriptors: ") && lines[7].ends_with(" bytes supplied, 0 in use"),
        "{text}"
    );
    let grains = sizes.spare / 1024;
    assert_eq!(lines[8], format!("  tracts: {grains} of {grains} grains used"));
    assert!(format!("{arena:?}").contains("ClientArena"));
    assert!(format!("{:?}", with_grain(64)).contains("64"));
}

#[test]
fn events_reach_the_hook() {
    let notified = CountEvents::default();
    let mut memory = memory(8 << 10);
    let options = ClientArenaOptions { event_hook: Some(&notified), ..ClientArenaOptions::default() };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    arena.event(Event::Shrink { size: 1 });
    assert_eq!(notified.0.load(Ordering::Relaxed), 1);
}

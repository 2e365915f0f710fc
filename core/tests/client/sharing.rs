//! An arena that is moved, lent, and shared by threads.

use core::alloc::Layout;
use core::mem::MaybeUninit;

use tripoint_core::internal::Ordering;
use tripoint_core::{
    Addr, Arena, Block, Check, CheckLevel, ClientArena, ClientArenaOptions, Describe, Event,
};
use tripoint_oracle::effort;

use crate::{CountEvents, mark, mark_of, memory, verify};

/// Allocates, verifies and frees, keeping every third block, until nothing fits.
fn use_arena(arena: &ClientArena<'_>) {
    let layout = Layout::new::<[u64; 24]>();
    let pool = arena.register().unwrap();
    for round in 0..effort(300) as usize {
        let Ok(block) = arena.alloc_tracts(1 + round * 37 % 9000, pool) else { break };
        mark(block, mark_of(pool));
        assert_eq!(arena.pool_of(block.range().base()), Some(pool));
        if let Ok(base) = arena.alloc_descriptor(layout) {
            // SAFETY: the arena returned that many bytes, which stay valid until they are freed below.
            let descriptor = unsafe { Block::new(base, layout.size()) };
            mark(descriptor, !mark_of(pool));
            std::thread::yield_now();
            verify(descriptor, !mark_of(pool));
            // SAFETY: from `alloc_descriptor` above, freed once.
            unsafe { arena.free_descriptor(base, layout) };
        }
        verify(block, mark_of(pool));
        if !round.is_multiple_of(3) {
            // SAFETY: from `alloc_tracts` above, freed once.
            unsafe { arena.free_tracts(block, pool) };
        }
    }
    // SAFETY: registered above, dismissed once, its memory unused.
    unsafe { arena.unregister(pool) };
}

#[test]
fn threads_share_an_arena() {
    let mut memory = memory(256 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| use_arena(&arena));
        }
    });
    arena.check(CheckLevel::Deep).unwrap();
    let sizes = arena.sizes();
    assert_eq!(sizes.spare + sizes.own, sizes.committed);
    // Each thread has one descriptor at a time, so the arena never needs more than
    // that.
    assert!(sizes.own <= arena.bootstrap_size() + 2 * arena.grain());
}

#[test]
fn an_arena_may_be_moved_and_lent_as_a_trait_object() {
    let mut memory = memory(64 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(100, pool).unwrap();
    mark(block, 0x5a);
    let moved = Box::new(arena);
    let lent: &dyn Arena = &*moved;
    assert!(lent.contains(block.range().base()));
    assert!(!lent.contains(lent.range().limit()));
    assert_eq!(lent.pool_of(block.range().base()), Some(pool));
    lent.check(CheckLevel::Deep).unwrap();
    verify(block, 0x5a);
}

#[test]
fn an_arena_may_be_static_and_sent() {
    static mut MEMORY: [MaybeUninit<u8>; 8 << 10] = [MaybeUninit::uninit(); 8 << 10];
    let memory = &raw mut MEMORY;
    // SAFETY: only the line above names MEMORY, and it runs once.
    let memory: &'static mut [MaybeUninit<u8>] = unsafe { &mut *memory };
    let arena: ClientArena<'static> = ClientArena::create(memory, ClientArenaOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(100, pool).unwrap();
    let sent = std::thread::spawn(move || {
        // SAFETY: from `alloc_tracts` above, freed once.
        unsafe { arena.free_tracts(block, pool) };
        arena
    });
    let arena = sent.join().unwrap();
    arena.check(CheckLevel::Deep).unwrap();
    assert_eq!(arena.pool_of(block.range().base()), None);
}

/// Uses an arena as pools do that hold it by value, and compares it with itself.
fn lend<A: Arena>(lent: A, arena: &ClientArena<'_>) {
    assert_eq!((lent.grain(), lent.range()), (arena.grain(), arena.range()));
    assert!(lent.contains(arena.range().base()) && !lent.contains(arena.range().limit()));
    let (first, second) = (lent.register().unwrap(), lent.register().unwrap());
    assert_eq!(second.get(), first.get() + 1);
    let block = lent.alloc_tracts(3 * arena.grain(), first).unwrap();
    let base = block.range().base();
    assert_eq!((lent.pool_of(base), arena.pool_of(base)), (Some(first), Some(first)));
    assert_eq!(
        (lent.next_tracts(first, Addr::ZERO), lent.next_tracts(second, Addr::ZERO)),
        (Some(block), None)
    );
    assert_eq!(lent.sizes(), arena.sizes());
    // SAFETY: allocated above, freed once, never used.
    unsafe { lent.free_tracts(block, first) };
    assert_eq!(arena.pool_of(base), None);
    let kept = lent.alloc_tracts(1, second).unwrap();
    let spare = arena.sizes().spare;
    // SAFETY: registered above, dismissed once; `kept` is not used.
    unsafe { lent.unregister(second) };
    assert_eq!(arena.sizes().spare, spare + kept.size());
    let layout = Layout::new::<[u64; 8]>();
    let descriptor = lent.alloc_descriptor(layout).unwrap();
    // SAFETY: from `alloc_descriptor` above, freed once.
    unsafe { lent.free_descriptor(descriptor, layout) };
    assert_eq!(lent.alloc_descriptor(layout), Ok(descriptor), "it was given back");
    assert!(core::ptr::eq(lent.counts(), arena.counts()));
    lent.freeze();
    assert!(lent.is_frozen() && arena.is_frozen());
    lent.thaw();
    assert!(!lent.is_frozen() && !arena.is_frozen());
    assert_eq!(lent.event_hook().is_some(), arena.event_hook().is_some());
    lent.event(Event::Shrink { size: 1 });
    let (mut text, mut expected) = (String::new(), String::new());
    lent.describe(&mut text, 1).unwrap();
    arena.describe(&mut expected, 1).unwrap();
    assert_eq!(text, expected);
    assert_eq!(lent.check(CheckLevel::Deep), Ok(()));
}

#[test]
fn a_lent_arena_is_the_arena() {
    let notified = CountEvents::default();
    let mut memory = memory(16 << 10);
    let options = ClientArenaOptions { event_hook: Some(&notified), ..ClientArenaOptions::default() };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    lend(&arena, &arena);
    let object: &dyn Arena = &arena;
    lend(object, &arena);
    assert_eq!(notified.0.load(Ordering::Relaxed), 2);
}

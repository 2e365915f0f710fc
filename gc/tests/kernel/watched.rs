//! Mutators that write to older objects and do not say so, over an arena whose platform watches writes, does not, or
//! fails at any moment (design/gc.md `.watched`).

use core::panic::AssertUnwindSafe;
use core::ptr;
use core::time::Duration;
use std::collections::BTreeSet;
use std::panic::catch_unwind;

use crate::common::{Nodes, Slots, layout, name, reference, set_reference, write};
use tripoint_ap::AllocationPoint;
use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Native, Platform, Portable};
use tripoint_core::{Addr, Arena, BufferKind, SymmetricFence};
use tripoint_gc::{
    Heap, HeapOptions, Kind, Moved, Mutator, MutatorBuffer, Swept, SweptOptions, Tag, Traced, Writes,
};

/// The references of the node that all others hang on, over several pages.
const WIDTH: usize = 2000;

type Memory<'p> = ArenaVm<&'p Failing<&'p dyn Platform>>;
type Pool<'m, K> = Swept<'m, &'m Memory<'m>, SymmetricFence, Nodes, K>;
type Point<'a, 'm, K> = AllocationPoint<'a, Pool<'m, K>>;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn make<K: Kind<Nodes>>(point: &mut Point<'_, '_, K>, name: usize, references: usize) -> *mut u8 {
    loop {
        let reservation = point.reserve(layout(0, references)).unwrap();
        let nothing = vec![ptr::null_mut(); references];
        // SAFETY: that many bytes were reserved.
        unsafe { write(reservation.as_ptr().cast(), reservation.size(), name, &nothing) };
        // SAFETY: a whole node.
        if let Ok(node) = unsafe { reservation.commit() } {
            return node.as_ptr();
        }
    }
}

/// A wide node that does not move, nodes that it leads to and that do, and the shadow of all: by name, the names of
/// what a node refers to.
struct World<'a, 'm> {
    arena: &'m Memory<'m>,
    moved: Point<'a, 'm, Moved>,
    mutator: Mutator<'m, &'m Memory<'m>, SymmetricFence>,
    slots: &'a Slots<1>,
    shadows: Vec<Vec<Option<usize>>>,
}

impl World<'_, '_> {
    /// The node that a reference of the wide one leads to, and its name.
    fn node(&self, index: usize) -> (*mut u8, Option<usize>) {
        // SAFETY: the slot has the wide node, which has that many references.
        (unsafe { reference(self.slots.get(0), index) }, self.shadows[0][index])
    }

    /// Writes references of nodes of any age, and reports none.
    fn write(&mut self, random: &mut Random) {
        let index = random.below(WIDTH);
        match random.below(4) {
            0 | 1 => {
                let to = self.shadows.len();
                let young = make(&mut self.moved, to, 2);
                self.shadows.push(vec![None; 2]);
                let (node, shadow) = self.node(random.below(WIDTH));
                // SAFETY: both nodes are there, and have that many references.
                unsafe {
                    match shadow {
                        // Young nodes hang on older ones, too.
                        Some(from) if random.below(2) == 0 => {
                            let word = random.below(2);
                            set_reference(node, word, young);
                            self.shadows[from][word] = Some(to);
                        }
                        _ => {
                            set_reference(self.slots.get(0), index, young);
                            self.shadows[0][index] = Some(to);
                        }
                    }
                }
            }
            2 => {
                let ((from, shadow), (to, name)) = (self.node(index), self.node(random.below(WIDTH)));
                if let Some(shadow) = shadow {
                    let word = random.below(2);
                    // SAFETY: the node is there, and has two references.
                    unsafe { set_reference(from, word, to) };
                    self.shadows[shadow][word] = name;
                }
            }
            _ => {
                // SAFETY: the slot has the wide node, which has that many references.
                unsafe { set_reference(self.slots.get(0), index, ptr::null_mut()) };
                self.shadows[0][index] = None;
            }
        }
    }

    /// Whether all that is reachable is as the shadow has it.
    fn is_whole(&self) -> bool {
        let mut seen = BTreeSet::new();
        let mut next = vec![(self.slots.get(0), 0)];
        while let Some((node, shadow)) = next.pop() {
            if !seen.insert(shadow) {
                continue;
            }
            // SAFETY: an address of a pool is memory that is there, and aligned as nodes are.
            if self.arena.pool_of(Addr::of(node)).is_none() || unsafe { name(node) } != shadow {
                return false;
            }
            for (index, to) in self.shadows[shadow].iter().enumerate() {
                // SAFETY: a node of this name has that many references.
                let address = unsafe { reference(node, index) };
                match to {
                    Some(to) => next.push((address, *to)),
                    None if address.is_null() => {}
                    None => return false,
                }
            }
        }
        true
    }
}

/// What came of a run.
#[derive(Debug, Default)]
struct Outcome {
    /// Collections of young generations by how the heap knew what was written: from the platform, or not at all.
    watched: usize,
    unknown: usize,
    /// Whether everything was whole after each collection.
    is_whole: bool,
    /// The cards that a collection looked at when nothing was written since the one before.
    cards_at_rest: usize,
    /// The same after a full collection, which copies all that can be moved.
    cards_after_full: usize,
}

/// Runs mutators and collections at random. If `notes`, they claim to note their writes, and do not.
fn run(
    platform: &Failing<&dyn Platform>,
    watch_writes: bool,
    notes: bool,
    seed: u64,
    rounds: usize,
) -> Outcome {
    // Memory of freed segments stays there, so that what is lost can be looked at.
    let options = ArenaVmOptions {
        reserve: 64 << 20,
        reserve_floor: 64 << 20,
        spare_share: 100,
        watch_writes,
        ..ArenaVmOptions::default()
    };
    let arena = ArenaVm::create_on(platform, options).unwrap();
    let arena = &arena;
    let heap = Heap::create(arena, HeapOptions::default()).unwrap();
    let _parked = heap.park();
    let nodes = || Nodes { notes_writes: notes, ..Nodes::new(0) };
    let wide: Pool<'_, Traced> = Swept::create(&heap, nodes(), SweptOptions::default()).unwrap();
    let pool: Pool<'_, Moved> = Swept::create(&heap, nodes(), SweptOptions::default()).unwrap();
    let slots = Slots::<1>::default();
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
    let mutator = heap.register().unwrap();
    // SAFETY: this thread uses the points while its mutator is running, and drops them before that.
    let attend = |buffer: &MutatorBuffer| unsafe { buffer.attend(&mutator) };
    let moved = AllocationPoint::create_in(&pool, BufferKind::Mutator, (), attend).unwrap();
    let mut wide_point = AllocationPoint::create_in(&wide, BufferKind::Mutator, (), attend).unwrap();
    slots.set(0, make(&mut wide_point, 0, WIDTH));
    wide_point.empty();
    let shadows = vec![vec![None; WIDTH]];
    let mut world = World { arena, moved, mutator, slots: &slots, shadows };
    let (mut outcome, mut random) = (Outcome { is_whole: true, ..Outcome::default() }, Random(seed));
    for round in 0..rounds {
        (0..1 + random.below(60)).for_each(|_| world.write(&mut random));
        let oldest = [0, 0, 0, 1, 2][random.below(5)];
        let found = world.mutator.collect_up_to(oldest, Duration::MAX).unwrap();
        if oldest < 2 {
            outcome.watched += usize::from(found.writes == Writes::Watched);
            outcome.unknown += usize::from(found.writes == Writes::Unknown);
        }
        outcome.is_whole &= world.is_whole();
        if !outcome.is_whole {
            return outcome;
        }
        if round == rounds / 2 {
            for _ in 0..3 {
                outcome.cards_at_rest = world.mutator.collect_up_to(0, Duration::MAX).unwrap().cards;
            }
            world.mutator.collect(Duration::MAX).unwrap();
            outcome.cards_after_full = world.mutator.collect_up_to(0, Duration::MAX).unwrap().cards;
        }
    }
    outcome
}

/// Runs `test` on each platform, with whether it has a watch.
fn on_each(test: impl Fn(&Failing<&dyn Platform>, bool)) {
    for platform in [&Native::new() as &dyn Platform, &Portable::new()] {
        let failing = Failing::new(platform);
        let options =
            ArenaVmOptions { reserve: 4 << 20, reserve_floor: 4 << 20, ..ArenaVmOptions::default() };
        let arena = ArenaVm::create_on(&failing, options).unwrap();
        let has_watch = arena.write_watch().is_ok();
        if !has_watch {
            println!("without a watch of writes: {}", arena.last_refusal().unwrap());
        }
        drop(arena);
        test(&failing, has_watch);
    }
}

#[test]
fn writes_that_mutators_do_not_note_are_known_to_the_platform_or_all_is_looked_at() {
    on_each(|platform, has_watch| {
        for (watch_writes, seed) in [(true, 1), (true, 2), (false, 3)] {
            let outcome = run(platform, watch_writes, false, seed, 30);
            assert!(outcome.is_whole, "seed {seed}");
            let is_watched = has_watch && watch_writes;
            assert_eq!(outcome.watched > 0, is_watched, "{outcome:?}");
            assert_eq!(outcome.unknown > 0, !is_watched, "{outcome:?}");
            // What the collector wrote itself is not looked at again.
            assert_eq!(outcome.cards_at_rest == 0, is_watched, "{outcome:?}");
            assert_eq!(outcome.cards_after_full == 0, is_watched, "{outcome:?}");
        }
    });
}

/// The same run finds it if a write is lost.
#[test]
fn writes_that_are_lost_are_found() {
    on_each(|platform, _| {
        let lost = || run(platform, true, true, 1, 30);
        // Debug builds panic after a collection that has met a reference to no object.
        let is_whole = catch_unwind(AssertUnwindSafe(lost)).is_ok_and(|outcome| outcome.is_whole);
        assert!(!is_whole);
    });
}

/// The platform refuses one call, or all from some moment on.
#[test]
fn no_object_is_lost_if_the_platform_fails_in_the_middle() {
    on_each(|platform, has_watch| {
        for call in [Call::OpenWatch, Call::Watch, Call::TakeWritten] {
            for nth in [1, 2, 5, 12] {
                if !has_watch && nth > 1 {
                    continue;
                }
                platform.fail(call, nth);
                let seen = platform.seen(call);
                let outcome = run(platform, true, false, u64::from(nth), 12);
                assert!(outcome.is_whole, "{call:?} {nth}");
                let is_refused = platform.seen(call) >= seen + nth;
                let shows = has_watch && is_refused && call != Call::Watch;
                assert!(!shows || outcome.watched > 0, "{call:?} {nth}: {outcome:?}");
                platform.heal();
            }
            platform.fail_always(call);
            let outcome = run(platform, true, false, 9, 8);
            assert!(outcome.is_whole && outcome.watched == 0, "{call:?}: {outcome:?}");
            platform.heal();
        }
    });
}

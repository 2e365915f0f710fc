//! Which pages were written, against a naive account (design/arena-vm.md `.watch`).

use std::collections::BTreeSet;
use std::thread;

use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Platform, Portable};
use tripoint_core::{Arena, Block, Describe, Error, WriteWatch, Written};
use tripoint_oracle::Party;

use crate::common::{Audited, GRAIN, on_each, on_each_failing, small};

/// A small generator, so that runs repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// The watch of an arena; `None` if its platform has none, or, with a line that says why, if the system refuses it.
pub(crate) fn watch_of<P: Platform>(arena: &ArenaVm<P>) -> Option<&dyn WriteWatch> {
    match arena.write_watch() {
        Ok(watch) => Some(watch),
        Err(error) => {
            let refusal = arena.last_refusal().unwrap();
            // Without a code it is a platform that has no watch. One that the system refuses is not tested.
            if refusal.code != 0 {
                tripoint_oracle::skipped!("writes are not watched here: {error}; {refusal}");
            }
            assert_eq!((error, refusal.call), (Error::Resource, "open_watch"));
            None
        }
    }
}

/// The addresses of the pages of `block` that were written since the last call; `None` if that is unknown.
pub(crate) fn taken(watch: &dyn WriteWatch, block: Block, page: usize) -> Option<BTreeSet<usize>> {
    let mut found = BTreeSet::new();
    let mut end = block.range().base();
    // SAFETY: tests ask for blocks that they hold, each on one thread.
    let written = unsafe {
        watch.take_written(block.range(), &mut |pages| {
            assert!(block.range().covers(pages) && end <= pages.base(), "{pages}, in order");
            assert!(!pages.is_empty() && pages.base().get() % page == 0 && pages.size() % page == 0);
            end = pages.limit();
            found.extend((pages.base().get()..end.get()).step_by(page));
        })
    };
    (written == Written::Known).then_some(found)
}

/// Writes a byte of a page of a block, and returns the address of the page.
pub(crate) fn touch(block: Block, page: usize, index: usize) -> usize {
    // SAFETY: tests write only blocks that they hold, and the page lies in the block.
    unsafe {
        let place = block.base().add(index * page);
        place.add(page / 2).write_volatile(7);
        place.addr().get()
    }
}

/// All pages of a block.
pub(crate) fn all(block: Block, page: usize) -> BTreeSet<usize> {
    (block.range().base().get()..block.range().limit().get()).step_by(page).collect()
}

#[test]
fn each_write_is_returned_once() {
    on_each(|platform| {
        let page = platform.page_size();
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(4 * GRAIN, pool).unwrap();
        let Some(watch) = watch_of(&arena) else { return };
        let pages = block.size() / page;
        (0..pages).for_each(|index| _ = touch(block, page, index));
        assert_eq!(taken(watch, block, page), Some(all(block, page)));
        assert_eq!(taken(watch, block, page), Some(BTreeSet::new()));
        let written = [pages - 1, 0, 2].map(|index| touch(block, page, index));
        // SAFETY: the block is held, and was written.
        let read = unsafe { block.base().add(page).read_volatile() };
        assert_eq!(read, 0);
        assert_eq!(taken(watch, block, page), Some(BTreeSet::from(written)), "reading is not writing");
        assert_eq!(taken(watch, block, page), Some(BTreeSet::new()));
        // A range of its own is asked for by itself.
        let (front, back) = block.split_at(GRAIN).unwrap();
        let written = [touch(front, page, 0), touch(back, page, 1)];
        assert_eq!(taken(watch, back, page), Some(BTreeSet::from([written[1]])));
        assert_eq!(taken(watch, front, page), Some(BTreeSet::from([written[0]])));
    });
}

/// More ranges than one call of the platform returns.
#[test]
fn pages_without_end_are_returned_in_parts() {
    on_each(|platform| {
        let page = platform.page_size();
        let options = ArenaVmOptions { reserve: 16 << 20, reserve_floor: 16 << 20, ..small() };
        let failing = Failing::new(platform);
        let arena = ArenaVm::create_on(&failing, options).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(600 * page, pool).unwrap();
        let Some(watch) = watch_of(&arena) else { return };
        assert!(taken(watch, block, page).is_some());
        let every_second = || (0..300).map(|index| touch(block, page, 2 * index)).collect::<BTreeSet<_>>();
        let written = every_second();
        let before = failing.seen(Call::TakeWritten);
        assert_eq!(taken(watch, block, page), Some(written));
        assert!(failing.seen(Call::TakeWritten) > before + 1, "in parts");
        // The second part is refused. What is written after that is not lost, whichever part it is in.
        let _ = every_second();
        failing.fail(Call::TakeWritten, 2);
        assert_eq!(taken(watch, block, page), None);
        assert_eq!(arena.last_refusal().unwrap().call, "take_written");
        let written = [touch(block, page, 1), touch(block, page, 599)];
        assert!(taken(watch, block, page).unwrap().is_superset(&BTreeSet::from(written)));
        assert_eq!(taken(watch, block, page), Some(BTreeSet::new()));
    });
}

#[test]
fn the_options_and_the_platform_may_refuse_and_say_so() {
    let arena = ArenaVm::create_on(Portable::new(), small()).unwrap();
    assert_eq!(arena.write_watch().unwrap_err(), Error::Resource);
    let refusal = arena.last_refusal().unwrap();
    assert_eq!(refusal.call, "open_watch");
    assert!(refusal.advice().contains("write barriers"));
    let mut text = String::new();
    arena.describe(&mut text, 0).unwrap();
    assert!(text.contains("writes watched: false"), "{text}");
    on_each(|platform| {
        let options = ArenaVmOptions { watch_writes: false, ..small() };
        let arena = ArenaVm::create_on(platform, options).unwrap();
        assert!(matches!(arena.write_watch(), Err(Error::Parameter(why)) if why.contains("watch_writes")));
    });
}

/// What a test did, and what it knows.
struct Run<'a, P: Platform> {
    arena: &'a ArenaVm<P>,
    page: usize,
    out: Vec<Block>,
    /// The pages written since the last call for them.
    written: BTreeSet<usize>,
    /// The pages that a call was made for and that have been allocated since.
    watched: BTreeSet<usize>,
    /// Calls, and those that returned `Known`.
    calls: (usize, usize),
}

impl<P: Platform> Run<'_, P> {
    fn step(&mut self, random: &mut Random) {
        let which = random.below(self.out.len().max(1));
        match random.below(8) {
            0 | 1 => {
                let pool = self.arena.register().unwrap();
                self.out.extend(self.arena.alloc_tracts((1 + random.below(3)) * GRAIN, pool));
            }
            2 if !self.out.is_empty() => {
                let block = self.out.swap_remove(which);
                let pool = self.arena.pool_of(block.range().base()).unwrap();
                // SAFETY: allocated above, freed once, unused.
                unsafe { self.arena.free_tracts(block, pool) };
                for page in all(block, self.page) {
                    self.watched.remove(&page);
                    self.written.remove(&page);
                }
            }
            3 => _ = self.arena.trim(),
            4 | 5 if !self.out.is_empty() => {
                for _ in 0..1 + random.below(20) {
                    let index = random.below(self.out[which].size() / self.page);
                    self.written.insert(touch(self.out[which], self.page, index));
                }
            }
            _ if !self.out.is_empty() => self.ask(self.out[which]),
            _ => {}
        }
    }

    fn ask(&mut self, block: Block) {
        // Each call is a stop of its own, which may have to open the watch.
        let Ok(watch) = self.arena.write_watch() else { return };
        let found = taken(watch, block, self.page);
        self.calls.0 += 1;
        let pages = all(block, self.page);
        if let Some(found) = &found {
            self.calls.1 += 1;
            for page in &pages {
                let is_written = self.written.contains(page);
                assert!(found.contains(page) || !is_written, "the write to {page:#x} was not returned");
                let is_new = !self.watched.contains(page);
                assert!(is_written || is_new || !found.contains(page), "{page:#x} was not written");
            }
        }
        for page in pages {
            self.written.remove(&page);
            // After a failure more may be returned than was written.
            let _ = if found.is_some() { self.watched.insert(page) } else { self.watched.remove(&page) };
        }
    }
}

/// Blocks come and go, and are decommitted in between. Exactly what was written is returned.
fn run_at_random(failing: &Failing<&Audited<&dyn Platform>>, seed: u64, steps: usize) -> (usize, usize) {
    let options = ArenaVmOptions { spare_share: 10, ..small() };
    let arena = ArenaVm::create_on(failing, options).unwrap();
    let (page, calls) = (failing.page_size(), (0, 0));
    let (out, written, watched) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut run = Run { arena: &arena, page, out, written, watched, calls };
    let mut random = Random(seed);
    (0..steps).for_each(|_| run.step(&mut random));
    run.calls
}

#[test]
fn no_write_is_lost_while_memory_comes_and_goes() {
    on_each_failing(|failing, _| {
        let steps = if cfg!(miri) { 50 } else { 1500 };
        for seed in 1..=4 {
            let (calls, known) = run_at_random(failing, seed, steps);
            assert_eq!(known, calls, "seed {seed}");
            let is_there = failing.seen(Call::TakeWritten) > 0;
            assert!(calls > 0 || !is_there, "seed {seed}");
        }
    });
}

/// Each call of each kind is refused in turn.
#[test]
fn no_write_is_lost_when_calls_are_refused() {
    on_each_failing(|failing, audited| {
        let steps = if cfg!(miri) { 30 } else { 150 };
        for call in [Call::OpenWatch, Call::Watch, Call::TakeWritten, Call::Decommit] {
            for nth in [1, 2, 3, 5, 8, 13, 21, 34] {
                let seen = failing.seen(call);
                failing.fail(call, nth);
                let (calls, known) = run_at_random(failing, 100 + u64::from(nth), steps);
                let is_refused = failing.seen(call) >= seen + nth;
                assert!(known == calls || is_refused, "{call:?} {nth}");
                if call == Call::TakeWritten && is_refused {
                    assert!(known < calls, "{call:?} {nth}");
                }
                failing.heal();
                assert_eq!(audited.reservations(), 0);
            }
        }
    });
}

/// All calls from the nth on are refused.
#[test]
fn no_write_is_lost_when_all_calls_are_refused_from_some_moment_on() {
    on_each_failing(|failing, _| {
        for call in [Call::OpenWatch, Call::Watch, Call::TakeWritten] {
            failing.fail_always(call);
            let (calls, known) = run_at_random(failing, 7, if cfg!(miri) { 30 } else { 300 });
            assert!(known == 0 || call == Call::Watch, "{call:?}: {known} of {calls}");
            failing.heal();
        }
    });
}

#[test]
fn a_watch_that_is_lost_with_decommitted_memory_is_found_out() {
    on_each_failing(|failing, _| {
        let page = failing.page_size();
        let arena = ArenaVm::create_on(failing, ArenaVmOptions { spare_share: 0, ..small() }).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(2 * GRAIN, pool).unwrap();
        let Some(watch) = watch_of(&arena) else { return };
        touch(block, page, 3);
        assert!(taken(watch, block, page).is_some());
        failing.fail(Call::Watch, 1);
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!(failing.seen(Call::Decommit), 1, "decommitted");
        assert_eq!(arena.alloc_tracts(2 * GRAIN, pool), Ok(block));
        touch(block, page, 4);
        assert_eq!(taken(watch, block, page), None, "what is not watched is not known");
        let written = touch(block, page, 5);
        assert!(taken(watch, block, page).unwrap().contains(&written));
        let written = touch(block, page, 6);
        assert_eq!(taken(watch, block, page), Some(BTreeSet::from([written])));
    });
}

/// Two heaps in one arena, each on a thread of its own, which opens the watch, too.
#[test]
fn ranges_are_asked_for_on_several_threads() {
    on_each(|platform| {
        let page = platform.page_size();
        let arena = ArenaVm::create_on(platform, ArenaVmOptions { spare_share: 0, ..small() }).unwrap();
        let party = Party::new();
        let rounds = if cfg!(miri) { 3 } else { 200 };
        thread::scope(|scope| {
            let _member = party.enter();
            for seed in 1..=3 {
                let (arena, party) = (&arena, &party);
                scope.spawn(move || {
                    let _member = party.enter();
                    let pool = arena.register().unwrap();
                    let mut block = arena.alloc_tracts(2 * GRAIN, pool).unwrap();
                    let mut random = Random(seed);
                    party.meet(3);
                    let first = arena.write_watch();
                    party.meet(3);
                    // By now one of them has opened it, or none can.
                    let Ok(watch) = arena.write_watch() else {
                        assert!(first.is_err());
                        return;
                    };
                    assert!(taken(watch, block, page).is_some());
                    for round in 0..rounds {
                        let pages = block.size() / page;
                        let written: BTreeSet<_> =
                            (0..5).map(|_| touch(block, page, random.below(pages))).collect();
                        assert_eq!(taken(watch, block, page), Some(written), "round {round}");
                        if round % 8 == 0 {
                            // SAFETY: allocated by this thread, freed once, unused.
                            unsafe { arena.free_tracts(block, pool) };
                            block = arena.alloc_tracts(2 * GRAIN, pool).unwrap();
                            assert!(taken(watch, block, page).is_some());
                        }
                    }
                });
            }
        });
        let mut text = String::new();
        arena.describe(&mut text, 0).unwrap();
        let is_there = arena.write_watch().is_ok();
        assert!(text.contains(&std::format!("writes watched: {is_there}")), "{text}");
    });
}

//! The arena's promises one by one, on each platform.
//! (design/arena-vm.md `.req.contains`, `.req.frozen`.)

use core::alloc::Layout;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU32, Ordering};
use std::panic::catch_unwind;
use std::string::String;

use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Platform, Prefault};
use tripoint_core::{Addr, Arena, Check, CheckLevel, Describe, Error, Event, EventHook, PoolId};

use crate::common::{
    Audited, GRAIN, Recorder, assert_books, holds, on_each, on_each_failing, small, smaller, write,
};

#[test]
fn tracts_are_whole_grains_and_know_their_pool() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let (one, two) = (arena.register().unwrap(), arena.register().unwrap());
        assert!(one != two && one != PoolId::ARENA && two != PoolId::ARENA);
        let block = arena.alloc_tracts(GRAIN + 1, one).unwrap();
        assert_eq!((block.size(), block.base().addr().get() % GRAIN), (2 * GRAIN, 0));
        let other = arena.alloc_tracts(1, two).unwrap();
        assert!(!block.range().overlaps(other.range()));
        assert!(arena.range().covers(block.range()) && arena.range().covers(other.range()));
        write(block, 0xab);
        assert!(holds(block, 0xab));
        for offset in [0, 1, GRAIN, 2 * GRAIN - 1] {
            let addr = Addr::new(block.base().addr().get() + offset);
            assert_eq!(arena.pool_of(addr), Some(one));
        }
        assert_eq!(arena.pool_of(other.range().base()), Some(two));
        assert_books(&arena, 3 * GRAIN);
        assert_eq!(platform.committed(), arena.sizes().committed);
    });
}

#[test]
fn any_address_may_be_looked_up() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let pool = arena.register().unwrap();
        let local = 0u8;
        let boxed = Box::new(0u8);
        let foreign = [0, 1, usize::MAX, Addr::of(&local).get(), Addr::of(&raw const *boxed).get()];
        let own = [arena.range().base().get(), arena.range().limit().get() - 1];
        let past = [arena.range().base().get() - 1, arena.range().limit().get()];
        let ask = |addr: usize| arena.pool_of(Addr::new(addr));
        assert!(foreign.iter().chain(&own).chain(&past).all(|&addr| ask(addr).is_none()));
        let block = arena.alloc_tracts(1, pool).unwrap();
        assert!(foreign.iter().chain(&own).chain(&past).all(|&addr| ask(addr).is_none()));
        let contains = |addr: usize| arena.contains(Addr::new(addr));
        assert!(own.iter().all(|&addr| contains(addr)));
        assert!(!foreign.iter().chain(&past).any(|&addr| contains(addr)));
        assert_eq!(ask(block.limit().addr().get() - 1), Some(pool));
        assert_eq!(ask(block.limit().addr().get()), None);
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!(ask(block.base().addr().get()), None);
    });
}

#[test]
fn sizes_out_of_bounds_are_refused() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let pool = arena.register().unwrap();
        for size in [0, usize::MAX, isize::MAX as usize + 1] {
            assert!(matches!(arena.alloc_tracts(size, pool), Err(Error::Parameter(_))));
        }
        assert!(matches!(arena.alloc_tracts(1, PoolId::ARENA), Err(Error::Parameter(_))));
        for size in [4 << 20, isize::MAX as usize] {
            assert_eq!(arena.alloc_tracts(size, pool), Err(Error::Limit));
        }
        assert_eq!(arena.counts().growth_refused.get(), 0);
        assert_books(&arena, 0);
    });
}

#[test]
fn a_full_arena_joins_spare_and_void_grains_for_a_long_run() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, ArenaVmOptions { spare_share: 100, ..smaller() }).unwrap();
        let pool = arena.register().unwrap();
        let mut blocks = Vec::new();
        while let Ok(block) = arena.alloc_tracts(1, pool) {
            blocks.push(block);
        }
        assert_eq!(arena.alloc_tracts(1, pool), Err(Error::Limit));
        blocks.sort_by_key(|block| block.base());
        // A void run, and a spare one right behind it.
        for (part, trim) in [(0..2, true), (2..4, false)] {
            for &block in &blocks[part] {
                // SAFETY: allocated above, freed once, unused.
                unsafe { arena.free_tracts(block, pool) };
            }
            if trim {
                assert_eq!(arena.trim(), 2 * GRAIN);
            }
        }
        assert_eq!(arena.alloc_tracts(5 * GRAIN, pool), Err(Error::Limit));
        let joined = arena.alloc_tracts(4 * GRAIN, pool).unwrap();
        assert_eq!(joined.base(), blocks[0].base());
        write(joined, 1);
        assert_books(&arena, blocks.len() * GRAIN);
    });
}

#[test]
fn the_commit_limit_holds_and_spare_memory_makes_room() {
    on_each(|platform| {
        let limit = 4 * GRAIN + 4096;
        let options = ArenaVmOptions { commit_limit: limit, spare_share: 100, ..small() };
        let arena = ArenaVm::create_on(platform, options).unwrap();
        let pool = arena.register().unwrap();
        let two = arena.alloc_tracts(2 * GRAIN, pool).unwrap();
        let _one = arena.alloc_tracts(GRAIN, pool).unwrap();
        let before = arena.sizes();
        assert_eq!(arena.alloc_tracts(2 * GRAIN, pool), Err(Error::CommitLimit));
        assert_eq!(arena.sizes(), before);
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(two, pool) };
        assert_eq!(arena.sizes().spare, 2 * GRAIN);
        // Too much even with the spare memory: that is not given up in vain.
        assert_eq!(arena.alloc_tracts(4 * GRAIN, pool), Err(Error::CommitLimit));
        assert_eq!(arena.sizes().spare, 2 * GRAIN);
        assert_eq!(arena.set_commit_limit(GRAIN), Err(Error::CommitLimit));
        assert_eq!(arena.sizes().spare, 2 * GRAIN);
        let three = arena.alloc_tracts(3 * GRAIN, pool).unwrap();
        write(three, 3);
        assert_books(&arena, 4 * GRAIN);
        assert_eq!(arena.sizes().committed_high_water, limit);
        assert_eq!(platform.committed(), limit);

        assert_eq!(arena.set_commit_limit(limit - 1), Err(Error::CommitLimit));
        assert_eq!(arena.sizes().commit_limit, limit);
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(three, pool) };
        assert_eq!(arena.set_commit_limit(GRAIN + 4096), Ok(()));
        assert_eq!((arena.sizes().committed, arena.sizes().spare), (GRAIN + 4096, 0));
        assert_eq!(arena.alloc_tracts(1, pool), Err(Error::CommitLimit));
        assert_eq!(arena.set_commit_limit(usize::MAX), Ok(()));
        assert!(arena.alloc_tracts(1, pool).is_ok());
    });
}

#[test]
fn a_frozen_arena_serves_from_what_is_committed_and_decommits_nothing() {
    on_each(|platform| {
        let recorder = Recorder::leaked();
        let options = ArenaVmOptions { spare_share: 0, event_hook: Some(recorder), ..small() };
        let arena = ArenaVm::create_on(platform, options).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(2 * GRAIN, pool).unwrap();
        let layout = Layout::new::<[u64; 8]>();
        let descriptor = arena.alloc_descriptor(layout).unwrap();
        let grown = arena.sizes().committed;
        let sum = |events: &[Event]| {
            events.iter().map(|event| if let Event::Grow { size } = event { *size } else { 0 }).sum::<usize>()
        };
        assert_eq!(sum(&recorder.take()), grown);
        assert_eq!(arena.counts().growth.get(), grown as u64);

        arena.freeze();
        assert!(arena.is_frozen());
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!((arena.trim(), arena.sizes().spare), (0, 2 * GRAIN));
        assert_eq!(arena.set_commit_limit(GRAIN), Err(Error::CommitLimit));
        let again = arena.alloc_tracts(GRAIN, pool).unwrap();
        assert_eq!(arena.alloc_tracts(2 * GRAIN, pool), Err(Error::Frozen));
        assert_eq!(arena.counts().growth_refused.get(), 1);
        assert_eq!(recorder.take(), [Event::GrowthRefused { size: 2 * GRAIN }]);
        // Descriptors come from the committed page, and then from the spare grain.
        let mut descriptors = vec![descriptor];
        let refused = loop {
            match arena.alloc_descriptor(layout) {
                Ok(descriptor) => descriptors.push(descriptor),
                Err(error) => break error,
            }
        };
        assert_eq!((refused, descriptors.len()), (Error::Frozen, (4096 + GRAIN) / 64));
        assert_eq!(arena.counts().growth_refused.get(), 2);
        let fed = Addr::of(descriptors.last().unwrap().as_ptr());
        assert_eq!(arena.pool_of(fed), Some(PoolId::ARENA));
        assert_eq!((arena.sizes().committed, arena.counts().growth.get()), (grown, grown as u64));
        assert_books(&arena, GRAIN);

        arena.thaw();
        assert!(!arena.is_frozen());
        recorder.take();
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(again, pool) };
        assert_eq!(recorder.take(), [Event::Shrink { size: GRAIN }]);
        assert!(arena.alloc_descriptor(layout).is_ok());
        assert_books(&arena, 0);
    });
}

/// An arena reports its life before its addresses can be another's, and also if its creation
/// fails after it had some.
#[test]
fn an_arena_reports_its_life() {
    on_each(|platform| {
        let recorder = Recorder::leaked();
        let arena =
            ArenaVm::create_on(platform, ArenaVmOptions { event_hook: Some(recorder), ..small() }).unwrap();
        let range = arena.range();
        let events = recorder.take();
        let [Event::CreateArena { memory, .. }] = events[..] else { panic!("{events:?}") };
        let (grain, commit_limit) = (arena.grain(), small().commit_limit);
        let (commit_policy, prefault_size) = (usize::from(small().spare_share), 0);
        let created = Event::CreateArena {
            grain,
            commit_limit,
            commit_policy,
            prefault_size,
            range,
            memory,
            class: "ArenaVm",
        };
        assert_eq!(events, [created]);
        drop(arena);
        assert_eq!(recorder.take(), [Event::DestroyArena { range }]);
        let options = ArenaVmOptions {
            prefault: Prefault::Size(4 * GRAIN),
            commit_limit: GRAIN,
            event_hook: Some(recorder),
            ..small()
        };
        assert_eq!(ArenaVm::create_on(platform, options).map(drop), Err(Error::CommitLimit));
        let events = recorder.take();
        let (Some(&Event::CreateArena { range, .. }), Some(&last)) = (events.first(), events.last()) else {
            panic!("{events:?}");
        };
        assert_eq!(last, Event::DestroyArena { range });
    });
}

/// What stays spare whatever the share.
const FLOOR: usize = 1 << 20;

#[test]
fn spare_memory_keeps_to_its_share_above_a_floor() {
    on_each(|platform| {
        let options = ArenaVmOptions { spare_share: 50, reserve: 16 << 20, ..small() };
        let arena = ArenaVm::create_on(platform, options).unwrap();
        let pool = arena.register().unwrap();
        let count = if cfg!(miri) { 36 } else { 64 };
        let blocks: Vec<_> = (0..count).map(|_| arena.alloc_tracts(1, pool).unwrap()).collect();
        let before = arena.sizes();
        for (freed, &block) in blocks.iter().enumerate() {
            // SAFETY: allocated above, freed once, unused.
            unsafe { arena.free_tracts(block, pool) };
            let sizes = arena.sizes();
            assert!(sizes.spare <= FLOOR.max(sizes.committed / 2), "{sizes:?}");
            let all = before.spare + (freed + 1) * GRAIN;
            if all <= before.committed / 2 {
                assert_eq!(sizes.spare, all, "a share that is allowed is kept");
            }
        }
        assert!((FLOOR / 2..=FLOOR).contains(&arena.sizes().spare), "{:?}", arena.sizes());
        assert_books(&arena, 0);
        assert_eq!(platform.committed(), arena.sizes().committed);
    });
}

/// Memory that is decommitted is taken in long runs, though it is freed a grain at a time (design/arena-vm.md `.spare`).
#[test]
#[cfg_attr(miri, ignore = "reserves more than the portable platform does there")]
fn many_frees_decommit_few_times() {
    on_each_failing(|failing, _| {
        let arena = ArenaVm::create_on(failing, ArenaVmOptions { reserve: 256 << 20, ..small() }).unwrap();
        let pool = arena.register().unwrap();
        let blocks: Vec<_> = (0..2000).map(|_| arena.alloc_tracts(1, pool).unwrap()).collect();
        let before = failing.seen(Call::Decommit);
        for block in blocks {
            // SAFETY: allocated above, freed once, unused.
            unsafe { arena.free_tracts(block, pool) };
        }
        let calls = failing.seen(Call::Decommit) - before;
        assert!((1..=100).contains(&calls), "{calls} calls to decommit 2,000 grains");
        assert!(arena.sizes().spare <= FLOOR, "a burst is returned: {:?}", arena.sizes());
    });
}

/// (design/arena-vm.md `.spare.again`)
#[test]
#[cfg_attr(miri, ignore = "reserves more than the portable platform does there")]
fn what_is_decommitted_and_committed_again_is_kept_up_to_a_bound() {
    let calls_of_rounds = |failing: &Failing<&Audited<&dyn Platform>>, grains: usize| {
        let arena = ArenaVm::create_on(failing, ArenaVmOptions { reserve: 256 << 20, ..small() }).unwrap();
        let round = || {
            let pool = arena.register().unwrap();
            let before = failing.seen_any();
            for _ in 0..grains {
                arena.alloc_tracts(1, pool).unwrap();
            }
            // SAFETY: registered above, dismissed once; nothing uses its memory.
            unsafe { arena.unregister(pool) };
            (failing.seen_any() - before, arena.sizes().spare)
        };
        core::array::from_fn::<_, 8, _>(|_| round())
    };
    on_each_failing(|failing, _| {
        // 16 MiB: returned once, and then kept, with what was committed ahead: at most a quarter.
        let rounds = calls_of_rounds(failing, 256);
        assert!(rounds[0].1 <= FLOOR, "{rounds:?}");
        assert!(rounds[7].0 == 0 && (256..=320).contains(&(rounds[7].1 / GRAIN)), "{rounds:?}");
        // 64 MiB are more than is kept.
        let rounds = calls_of_rounds(failing, 1024);
        assert!(rounds[7].0 > 0 && rounds[7].1 <= FLOOR + (32 << 20), "{rounds:?}");
    });
}

/// (design/arena-vm.md `.spare`)
#[test]
fn a_small_arena_settles_and_grows_no_more() {
    on_each_failing(|failing, _| {
        let rounds = if cfg!(miri) { 5 } else { 1000 };
        // With a floor, and with a share of zero, which has none.
        for (spare_share, settles) in [(ArenaVmOptions::default().spare_share, true), (0, false)] {
            let arena = ArenaVm::create_on(failing, ArenaVmOptions { spare_share, ..small() }).unwrap();
            let pool = arena.register().unwrap();
            let calls = failing.seen_any();
            for _ in 0..rounds {
                let block = arena.alloc_tracts(100 << 10, pool).unwrap();
                // SAFETY: allocated above, freed once, unused.
                unsafe { arena.free_tracts(block, pool) };
            }
            let calls = failing.seen_any() - calls;
            assert_eq!(calls == 2, settles, "a page of table and the grains, {calls} calls in all");
            assert_eq!(arena.counts().growth.get() as usize == arena.sizes().committed, settles);
        }
    });
}

/// A hook that panics at the nth growth.
#[derive(Debug, Default)]
struct Panicking(AtomicU32);

impl EventHook for Panicking {
    fn event(&self, event: Event) {
        let (left, grown) = (&self.0, matches!(event, Event::Grow { .. }));
        if grown && left.fetch_sub(1, Ordering::SeqCst) == 1 {
            panic!("expected by the test");
        }
    }
}

/// (design/arena-vm.md `.grow.tell`)
#[test]
fn a_hook_that_panics_takes_nothing_away() {
    static HOOK: Panicking = Panicking(AtomicU32::new(0));
    on_each(|platform| {
        for nth in (1..8).step_by(if cfg!(miri) { 3 } else { 1 }) {
            HOOK.0.store(nth, Ordering::SeqCst);
            let options = ArenaVmOptions { event_hook: Some(&HOOK), spare_share: 0, ..small() };
            let arena = ArenaVm::create_on(platform, options).unwrap();
            let pool = arena.register().unwrap();
            let mut panics = 0;
            for _ in 0..4 {
                let tracts = || _ = arena.alloc_tracts(2 * GRAIN, pool).unwrap();
                let layout = Layout::from_size_align(512, 64).unwrap();
                let control = || _ = arena.alloc_descriptor(layout).unwrap();
                panics += usize::from(catch_unwind(AssertUnwindSafe(tracts)).is_err());
                panics += usize::from(catch_unwind(AssertUnwindSafe(control)).is_err());
            }
            assert_eq!(panics, usize::from(nth <= 6), "{nth}: a table, four times grains, a page");
            let sizes = arena.sizes();
            let owned: usize = {
                let next = |from| arena.next_tracts(pool, from);
                let blocks = core::iter::successors(next(Addr::new(0)), |block| next(block.range().limit()));
                blocks.map(|block| block.size()).sum()
            };
            assert_books(&arena, owned);
            assert_eq!(platform.committed(), sizes.committed);
            // SAFETY: registered above, dismissed once; its memory is not used.
            unsafe { arena.unregister(pool) };
            assert_eq!(arena.sizes().committed, arena.sizes().own, "{nth}: nothing is lost");
            assert_books(&arena, 0);
        }
    });
}

#[test]
fn dismissing_a_pool_frees_all_its_tracts_and_no_others() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let (keep, go) = (arena.register().unwrap(), arena.register().unwrap());
        let mut kept = Vec::new();
        for index in 0..8 {
            let block = arena.alloc_tracts(GRAIN * (1 + index % 2), if index % 3 == 0 { keep } else { go });
            if index % 3 == 0 {
                kept.push(block.unwrap());
            }
        }
        let in_use = kept.iter().map(|block| block.size()).sum();
        // SAFETY: registered above, dismissed once; its memory is not used.
        unsafe { arena.unregister(go) };
        assert_books(&arena, in_use);
        let sizes = arena.sizes();
        assert!(sizes.spare > 0 && sizes.spare <= FLOOR, "what is below the floor is kept: {sizes:?}");
        assert!(kept.iter().all(|block| arena.pool_of(block.range().base()) == Some(keep)));
        assert!(arena.register().unwrap() > go, "numbers are not used again");
    });
}

#[test]
fn joined_tracts_know_their_base() {
    on_each(|platform| {
        tripoint_oracle::joined_tracts_know_their_base(&ArenaVm::create_on(platform, small()).unwrap());
    });
}

#[test]
fn part_of_a_block_may_be_freed() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(4 * GRAIN, pool).unwrap();
        let (first, rest) = block.split_at(GRAIN).unwrap();
        let (middle, last) = rest.split_at(2 * GRAIN).unwrap();
        // SAFETY: whole grains allocated above, freed once, unused.
        unsafe { arena.free_tracts(middle, pool) };
        assert_eq!(arena.pool_of(first.range().base()), Some(pool));
        assert_eq!(arena.pool_of(middle.range().base()), None);
        assert_eq!(arena.pool_of(last.range().base()), Some(pool));
        assert_books(&arena, 2 * GRAIN);
    });
}

#[test]
fn descriptors_take_pages_and_grains_only_if_their_region_ends() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let layout = Layout::from_size_align(192, 64).unwrap();
        let first = arena.alloc_descriptor(layout).unwrap();
        assert_eq!(first.addr().get() % 64, 0);
        assert_eq!((arena.sizes().own, arena.sizes().committed), (4096, 4096));
        assert_eq!(arena.pool_of(Addr::of(first.as_ptr())), None);
        assert!(arena.contains(Addr::of(first.as_ptr())));
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_descriptor(first, layout) };
        assert_eq!(arena.alloc_descriptor(layout), Ok(first));
        let large = Layout::from_size_align(1 << 20, 8).unwrap();
        assert!(matches!(arena.alloc_descriptor(large), Err(Error::Parameter(_))));
        // The region ends: 16 pages in an arena this small.
        let own_after_next =
            || arena.alloc_descriptor(Layout::from_size_align(512, 64).unwrap()).map(|_| arena.sizes().own);
        let pages = 16 * 4096;
        while own_after_next().unwrap() < pages {}
        let with_a_grain = core::iter::from_fn(|| own_after_next().ok()).find(|&own| own > pages);
        // With the first page of the table, which the grain is in.
        assert_eq!(with_a_grain, Some(pages + 4096 + GRAIN));
        assert_books(&arena, 0);
        let refused = core::iter::from_fn(|| Some(own_after_next())).find_map(Result::err);
        assert_eq!(refused, Some(Error::Limit), "all grains are used up");
        assert_eq!(arena.sizes().committed, arena.sizes().own);
    });
}

#[test]
fn a_moved_arena_is_the_same_arena() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(1, pool).unwrap();
        write(block, 9);
        let moved = Box::new(arena);
        let moved = std::thread::scope(|scope| scope.spawn(move || moved).join().unwrap());
        assert_eq!(moved.pool_of(block.range().base()), Some(pool));
        assert!(holds(block, 9));
        assert_books(&*moved, GRAIN);
    });
}

#[test]
fn an_arena_can_be_described() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let pool = arena.register().unwrap();
        arena.alloc_tracts(1, pool).unwrap();
        let mut text = String::new();
        arena.describe(&mut text, 1).unwrap();
        assert!(text.lines().all(|line| line.starts_with("  ")), "{text}");
        for word in ["arena: VM", "reserved", "committed", "commit limit", "frozen: false", "tracts"] {
            assert!(text.contains(word), "{word} in {text}");
        }
    });
}

/// (design/arena-vm.md `.groups`)
#[test]
fn an_arena_knows_what_the_system_allows_and_changes_no_limit_for_it() {
    on_each_failing(|failing, _| {
        let arena = ArenaVm::create_on(failing, ArenaVmOptions { commit_limit: 3 << 20, ..small() }).unwrap();
        let described = || {
            let mut text = String::new();
            arena.describe(&mut text, 0).unwrap();
            text
        };
        for (allowed, comparison) in
            [(2 << 20, "below the commit limit"), (3 << 20, "at least the commit limit")]
        {
            failing.limit_memory(allowed);
            assert_eq!(arena.memory_limit(), Some(allowed));
            assert!(
                described().contains(&format!("system: {allowed} bytes, {comparison}")),
                "{}",
                described()
            );
            assert_eq!(arena.sizes().commit_limit, 3 << 20);
        }
        // The pool gets what the commit limit allows: what the system allows is only said.
        failing.limit_memory(1);
        assert!(arena.alloc_tracts(2 << 20, arena.register().unwrap()).is_ok());
    });
}

#[test]
fn a_damaged_arena_is_found_out() {
    on_each(|platform| {
        let arena = ArenaVm::create_on(platform, small()).unwrap();
        let layout = Layout::new::<u64>();
        let descriptor = arena.alloc_descriptor(layout).unwrap();
        // SAFETY: allocated above, freed once.
        unsafe { arena.free_descriptor(descriptor, layout) };
        // SAFETY: none: a write to a freed descriptor is the damage.
        unsafe { descriptor.cast::<usize>().write(3) };
        assert_eq!(arena.check(CheckLevel::Shallow), Ok(()));
        assert_eq!(arena.check(CheckLevel::Deep).unwrap_err().structure, "DescriptorMemory");
    });
}

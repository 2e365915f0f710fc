//! Stacks: frames against a naive stack, contents below a frame, counters, blocks.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::common::test_arena::Refusal;
use crate::common::{GRAIN, TestArena, all_are, arena, cases, effort, layout, memory, pick};
use proptest::prelude::*;
use tripoint_ap::{AllocationPoint, Frame, Reservation};
use tripoint_core::{
    Arena, Block, Check, CheckLevel, ClientArena, Describe, Error, PoolClass, Result, Use, walk,
};
use tripoint_pools::GRANULE;
use tripoint_pools::{Snc, SncOptions};

const OPTIONS: SncOptions = SncOptions { extend_by: 2 * GRAIN, fill_size: 1024 };

fn snc<A: Arena>(arena: A) -> Snc<A> {
    Snc::create(arena, OPTIONS).unwrap()
}

/// Something done with one of two allocation points.
#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc(usize),
    Abandon(usize),
    Push,
    /// Pops this many frames at once, counted from the last.
    Pop(usize),
    Empty,
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let step = prop_oneof![
        8 => any::<usize>().prop_map(Step::Alloc),
        1 => any::<usize>().prop_map(Step::Abandon),
        3 => Just(Step::Push),
        2 => (1..4_usize).prop_map(Step::Pop),
        1 => Just(Step::Empty),
    ];
    prop::collection::vec((0..2_usize, step), 1..effort(120) as usize)
}

fn layouts() -> [Layout; 8] {
    [(16, 8), (0, 1), (24, 4), (500, 16), (64, 64), (1500, 8), (40, 512), (3 * GRAIN, GRAIN)]
        .map(|(size, align)| layout(size, align))
}

/// The naive stack: all objects, and where frames begin.
struct Stack<'pool, A: Arena> {
    point: AllocationPoint<'pool, Snc<A>>,
    objects: Vec<(Block, u8)>,
    /// Bytes skipped to an alignment: they count as allocated.
    skipped: Vec<u64>,
    frames: Vec<(Frame, usize, usize)>,
    seed: u8,
}

impl<'pool, A: Arena> Stack<'pool, A> {
    fn new(pool: &'pool Snc<A>) -> Result<Self> {
        let point = AllocationPoint::create(pool)?;
        Ok(Self { point, objects: Vec::new(), skipped: Vec::new(), frames: Vec::new(), seed: 0 })
    }

    fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Alloc(which) => self.alloc(pick(&layouts(), which).unwrap())?,
            Step::Abandon(which) => drop(self.reserve(pick(&layouts(), which).unwrap())?),
            Step::Push => self.frames.push((self.point.push(), self.objects.len(), self.skipped.len())),
            Step::Pop(count) => self.pop(count),
            Step::Empty => self.point.empty(),
        }
        Ok(())
    }

    /// Reserves, and counts the bytes that this skipped in the block.
    fn reserve(&mut self, layout: Layout) -> Result<Reservation<'_, 'pool, Snc<A>>> {
        let buffer = self.point.buffer();
        let before = buffer.snapshot().unwrap();
        let reservation = self.point.reserve(layout)?;
        let now = buffer.snapshot().unwrap();
        if now.base == before.base {
            self.skipped.push((now.init.get() - before.init.get()) as u64);
        }
        Ok(reservation)
    }

    fn alloc(&mut self, layout: Layout) -> Result<()> {
        let seed = self.seed.wrapping_add(1);
        let reservation = self.reserve(layout)?;
        // SAFETY: reserved just now, and so large.
        let object = unsafe { Block::new(reservation.as_ptr(), reservation.size()) };
        assert!(object.base().addr().get().is_multiple_of(layout.align().max(GRANULE)));
        // SAFETY: reserved, and ours.
        unsafe { object.base().write_bytes(seed, object.size()) };
        // SAFETY: written just now.
        unsafe { reservation.commit() }.unwrap();
        self.objects.push((object, seed));
        self.seed = seed;
        Ok(())
    }

    fn pop(&mut self, count: usize) {
        let at = self.frames.len().saturating_sub(count);
        let Some((frame, objects, skipped)) = self.frames.drain(at..).next() else { return };
        self.objects.truncate(objects);
        self.skipped.truncate(skipped);
        // SAFETY: of this point, the outermost of those that go; their objects are
        // forgotten.
        unsafe { self.point.pop(frame) };
    }

    fn live_size(&self) -> u64 {
        let objects: u64 = self.objects.iter().map(|(object, _)| object.size() as u64).sum();
        objects + self.skipped.iter().sum::<u64>()
    }

    /// What lies below the frames that were popped is unchanged.
    fn agree(&self) {
        for (object, seed) in &self.objects {
            // SAFETY: a live object that `alloc` wrote whole.
            let bytes = unsafe { core::slice::from_raw_parts(object.base().as_ptr(), object.size()) };
            assert!(all_are(bytes, *seed), "{object:?} keeps its contents");
        }
        let buffer = self.point.buffer();
        buffer.check(CheckLevel::Deep).unwrap();
        let allocated = buffer.fill_size() - buffer.empty_size() - self.point.room() as u64;
        assert_eq!(allocated, self.live_size(), "what was filled less what was emptied is live");
    }
}

/// Checks two stacks and their pool after a step.
fn agree<A: Arena>(pool: &Snc<A>, stacks: &[Stack<'_, A>; 2]) {
    pool.check(CheckLevel::Deep).unwrap();
    let objects = || stacks.iter().flat_map(|stack| &stack.objects);
    let mut ranges: Vec<_> = objects().map(|(object, _)| object.range()).collect();
    ranges.sort_by_key(|range| range.base());
    assert!(ranges.windows(2).all(|two| !two[0].overlaps(two[1])), "objects do not overlap");

    let sizes = pool.sizes();
    let (mut shown, mut free) = (0, 0);
    walk(pool, |block, shown_as| {
        shown += block.size();
        if shown_as == Use::Free {
            free += block.size();
            assert!(ranges.iter().all(|range| !range.overlaps(block.range())), "live objects are not free");
        }
    });
    assert_eq!((shown, free), (sizes.total, sizes.free));

    let live: u64 = stacks.iter().map(Stack::live_size).sum();
    let room: u64 = stacks.iter().map(|stack| stack.point.room() as u64).sum();
    let counts = pool.header().arena().counts();
    assert_eq!(counts.fill_mutator.get() - counts.empty_mutator.get() - room, live);
    if stacks.iter().all(|stack| stack.point.is_reset()) {
        assert_eq!(counts.alloc_mutator.get(), live);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(96), failure_persistence: None, ..ProptestConfig::default() })]

    /// (design/frames.md `.req.exact`, `.count`; design/pool-snc.md `.req.frames`,
    /// `.req.any`, `.req.lost`)
    #[test]
    fn frames_are_a_stack(steps in steps()) {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let pool = snc(&arena);
        let mut stacks = [Stack::new(&pool).unwrap(), Stack::new(&pool).unwrap()];
        for (which, step) in steps {
            let done = stacks[which].step(step);
            assert!(matches!(done, Ok(()) | Err(Error::Limit)), "{step:?}: {done:?}");
            stacks[which].agree();
            agree(&pool, &stacks);
        }
        let [one, two] = stacks;
        drop(one);
        two.agree();
        drop(two);
        assert_eq!(pool.sizes().free, pool.sizes().total, "points that are gone leave nothing");
        let counts = arena.counts();
        assert_eq!(counts.fill_mutator.get(), counts.empty_mutator.get());
        assert_eq!(counts.alloc_mutator.get(), 0);
    }
}

fn object(size: usize) -> Layout {
    layout(size, GRANULE)
}

/// Allocates one object of this layout after another.
fn fill_up<A: Arena>(stack: &mut Stack<'_, A>, layout: Layout, count: usize) {
    for _ in 0..count {
        stack.alloc(layout).unwrap();
    }
}

/// (design/frames.md `.req.constant`)
#[test]
fn a_pop_within_a_block_moves_init_and_nothing_else() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool = Snc::create(&arena, SncOptions { extend_by: 40 * GRAIN, fill_size: 40 * GRAIN }).unwrap();
    let mut stack = Stack::new(&pool).unwrap();
    fill_up(&mut stack, object(16), 1);
    let (before, fills) = (stack.point.buffer().snapshot(), arena.counts().fills.get());
    for count in [1, effort(100) as usize, effort(10_000) as usize] {
        stack.step(Step::Push).unwrap();
        fill_up(&mut stack, object(16), count);
        assert_ne!(stack.point.buffer().snapshot(), before);
        stack.pop(1);
        assert_eq!(stack.point.buffer().snapshot(), before);
    }
    assert_eq!(arena.counts().fills.get(), fills);
    assert_eq!(arena.counts().empty_mutator.get(), 0);
}

/// (design/frames.md `.pop.blocks`)
#[test]
fn a_pop_across_blocks_returns_the_later_ones() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool = snc(&arena);
    let mut stack = Stack::new(&pool).unwrap();
    fill_up(&mut stack, object(100), 1);
    stack.step(Step::Push).unwrap();
    fill_up(&mut stack, object(100), 2);
    let init = stack.point.buffer().snapshot().unwrap().init;
    stack.step(Step::Push).unwrap();
    let used = pool.sizes().total - pool.sizes().free;
    fill_up(&mut stack, object(100), 200);
    assert!(arena.counts().fills.get() > 20);
    stack.pop(1);
    assert_eq!(pool.sizes().total - pool.sizes().free, used, "one block is left");
    assert_eq!(stack.point.buffer().snapshot().unwrap().init, init);
    stack.agree();
    // The fast path can use the block's end again, without a fill or the slow
    // path.
    let snapshot = stack.point.buffer().snapshot().unwrap();
    assert_eq!(snapshot.limit, snapshot.pool_limit);
    let fills = arena.counts().fills.get();
    fill_up(&mut stack, object(100), 1);
    assert_eq!(arena.counts().fills.get(), fills);
    // Below where the block was attached, observers see nothing reserved.
    stack.step(Step::Pop(1)).unwrap();
    let snapshot = stack.point.buffer().snapshot().unwrap();
    let end = stack.objects[0].0.range().limit();
    assert_eq!((snapshot.init, snapshot.alloc), (end, end));
}

#[test]
fn a_frame_at_the_end_of_a_block_is_that_blocks() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let pool = snc(&arena);
    let mut stack = Stack::new(&pool).unwrap();
    let rest = OPTIONS.fill_size - GRANULE;
    fill_up(&mut stack, object(rest), 1);
    assert_eq!(stack.point.room(), 0);
    stack.step(Step::Push).unwrap();
    // The next block begins where this one ended.
    fill_up(&mut stack, object(rest), 2);
    let end = stack.objects[0].0.range().limit();
    assert_eq!(stack.objects[1].0.range().base().get(), end.get() + GRANULE);
    stack.pop(1);
    assert_eq!(stack.point.buffer().snapshot().unwrap().init, end);
    stack.agree();
}

#[test]
fn frames_pushed_while_reset_keep_what_was_there() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = snc(&arena);
    let mut stack = Stack::new(&pool).unwrap();
    for _ in 0..3 {
        fill_up(&mut stack, object(300), 2);
        stack.point.empty();
        stack.step(Step::Push).unwrap();
        fill_up(&mut stack, object(300), 20);
    }
    for live in [46, 24, 2] {
        stack.pop(1);
        assert!(stack.objects.len() == live && stack.point.is_reset());
        stack.agree();
    }
}

/// The arena with reset (design/pool-snc.md `.snc.reset`, `.req.reuse`).
#[test]
fn popping_the_first_frame_keeps_one_block() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = snc(&arena);
    let mut stack = Stack::new(&pool).unwrap();
    let mut total = 0;
    for round in 0..effort(10) {
        stack.step(Step::Push).unwrap();
        fill_up(&mut stack, object(200), 50);
        stack.pop(1);
        assert_eq!(pool.sizes().total - pool.sizes().free, OPTIONS.fill_size);
        assert_eq!(stack.point.room(), OPTIONS.fill_size - GRANULE);
        assert!(round == 0 || pool.sizes().total == total, "a round needs no more than the first");
        total = pool.sizes().total;
    }
    let fills = arena.counts().fills.get();
    stack.step(Step::Push).unwrap();
    fill_up(&mut stack, object(200), 4);
    stack.pop(1);
    assert_eq!(arena.counts().fills.get(), fills, "within the block that was kept");
    drop(stack);
    assert_eq!(pool.sizes().free, pool.sizes().total);
}

/// After a refusal the stack has what it had before, and goes on.
#[test]
fn refused_fills_lose_nothing() {
    let script = [Step::Alloc(3), Step::Push, Step::Alloc(5), Step::Alloc(7), Step::Push, Step::Alloc(6)];
    for refusal in [Refusal::Passes, Refusal::Stays] {
        for patience in 1.. {
            let mut memory = memory(if cfg!(miri) { 32 } else { 256 });
            let whole = arena(&mut memory);
            let before = whole.sizes();
            let arena = &TestArena::refusing(&whole, patience, refusal);
            let pool = snc(arena);
            let mut stack = insist(arena, || Stack::new(&pool));
            for step in script.iter().cycle().take(if cfg!(miri) { 8 } else { 60 }) {
                insist(arena, || stack.step(*step));
                stack.agree();
            }
            while !stack.frames.is_empty() {
                stack.pop(3);
                stack.agree();
            }
            drop(stack);
            assert_eq!(pool.sizes().free, pool.sizes().total);
            drop(pool);
            assert_eq!(whole.sizes().spare + whole.sizes().own, before.spare + before.own);
            if !arena.has_refused() {
                assert!(patience > 2);
                break;
            }
        }
    }
}

/// Repeats what was refused, now that it is granted.
fn insist<T>(arena: &TestArena<'_>, mut request: impl FnMut() -> Result<T>) -> T {
    request().unwrap_or_else(|error| {
        assert!(arena.has_refused() && error == Error::Memory, "{error:?}");
        arena.relent();
        request().unwrap()
    })
}

#[test]
fn a_stack_that_ran_out_goes_on_after_a_pop() {
    let mut memory = memory(if cfg!(miri) { 4 } else { 8 });
    let arena = arena(&mut memory);
    let pool = snc(&arena);
    let mut stack = Stack::new(&pool).unwrap();
    let mut counts = Vec::new();
    for _ in 0..3 {
        stack.step(Step::Push).unwrap();
        let error = (0..).find_map(|_| stack.alloc(object(900)).err()).unwrap();
        assert_eq!(error, Error::Limit);
        stack.agree();
        counts.push(stack.objects.len());
        // What is left of the block serves what is smaller.
        stack.alloc(object(16)).unwrap();
        stack.agree();
        stack.pop(1);
    }
    assert!(counts[0] > 8 && counts.iter().all(|&count| count == counts[0]));
}

#[test]
fn memory_outside_a_stack_and_layouts_too_large_are_refused() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let pool = snc(&arena);
    assert!(matches!(pool.fill(object(16)), Err(Error::Parameter(_))));
    let mut point = AllocationPoint::create(&pool).unwrap();
    for size in [isize::MAX as usize, isize::MAX as usize - 100] {
        assert!(point.reserve(layout(size, 1)).is_err());
    }
    assert!(point.reserve(layout(1, 1 << (usize::BITS - 2))).is_err());
    assert_eq!(pool.sizes().total, 0);
    assert!(point.reserve(layout(0, 1)).is_ok());
}

#[test]
fn a_grain_below_two_granules_is_refused() {
    let mut memory = memory(1);
    let arena = arena(&mut memory);
    let small = TestArena::of_grain(&arena, GRANULE);
    assert!(matches!(Snc::create(&small, OPTIONS), Err(Error::Parameter(_))));
}

/// Negative control: the check finds free memory that was written over.
#[test]
fn damage_is_found() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = snc(&arena);
    let mut stack = Stack::new(&pool).unwrap();
    stack.step(Step::Push).unwrap();
    fill_up(&mut stack, object(200), 20);
    stack.pop(1);
    let mut free: Option<NonNull<*mut u8>> = None;
    pool.walk_free(&mut |block| free = Some(block.base().cast()));
    // SAFETY: free memory, aligned, and put right before the pool uses it.
    let saved = unsafe { free.unwrap().replace(core::ptr::without_provenance_mut(0x5151_5151)) };
    assert!(pool.check(CheckLevel::Deep).is_err());
    // SAFETY: free memory, aligned, which the pool has not used since.
    unsafe { free.unwrap().write(saved) };
    pool.check(CheckLevel::Deep).unwrap();
}

#[test]
fn it_describes_itself() {
    let mut memory = memory(8);
    let arena: ClientArena<'_> = arena(&mut memory);
    let pool = snc(&arena);
    let mut text = String::new();
    pool.describe(&mut text, 0).unwrap();
    assert!(text.starts_with("pool: SNC #") && text.contains("fill size: 1024 bytes"), "{text}");
}

/// Threads with a stack each in one pool: none sees another's objects.
#[test]
fn threads_have_stacks_of_their_own() {
    let mut memory = memory(if cfg!(miri) { 32 } else { 256 });
    let arena = arena(&mut memory);
    let pool = &snc(&arena);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                let mut stack = Stack::new(pool).unwrap();
                stack.seed = thread * 64;
                for round in 0..if cfg!(miri) { 8 } else { 200 } {
                    stack.step(Step::Push).unwrap();
                    fill_up(&mut stack, object(100 + round), round % 30);
                    stack.agree();
                    if round % 3 != 0 {
                        stack.pop(1 + round % 4);
                    }
                    if round % 50 == 49 {
                        stack.pop(usize::MAX);
                    }
                }
            });
        }
    });
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(pool.sizes().free, pool.sizes().total);
}

#[test]
fn alignments_are_skipped_to_without_a_fill_each() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let pool = snc(&arena);
    let mut stack = Stack::new(&pool).unwrap();
    for _ in 0..20 {
        stack.alloc(layout(8, 8)).unwrap();
        stack.alloc(layout(8, 64)).unwrap();
    }
    stack.agree();
    let (fills, pairs) = (pool.header().arena().counts().fills.get(), 20);
    assert!(fills < pairs / 4, "{fills} fills for {pairs} pairs");
}

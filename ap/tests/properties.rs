//! Random use of allocation points, against a naive oracle.

mod common;

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use common::{
    ALIGN_MAX, Draws, Flippable, Form, MIN_ALIGN, Manual, SIZE_MAX, TestControl, TestPool, with_arena,
};
use proptest::prelude::*;
use tripoint_ap::{AllocationPoint, Stop, Tripper, flip_buffers};
use tripoint_core::words::INLINE_SIZE_MAX;
use tripoint_core::{
    Addr, AddrRange, Arena, BufferKind, Check, CheckLevel, Error, PoolClass, SymmetricFence,
};

/// What happens between a reserve and what ends it.
#[derive(Clone, Copy, Debug)]
struct Between {
    trips: usize,
    flips: usize,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Object { size: usize, align: usize, commit: bool, between: Between },
    Batch { capacity: usize, pushed: usize, commit: bool, between: Between },
    Empty,
    Trip,
    Flip,
    FailFills(bool),
    Preallocate(usize),
}

fn between() -> impl Strategy<Value = Between> {
    let count = || prop_oneof![6 => Just(0_usize), 1 => 1..3_usize];
    (count(), count()).prop_map(|(trips, flips)| Between { trips, flips })
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        40 => 0..200_usize,
        10 => 1000..3000_usize,
        1 => INLINE_SIZE_MAX - 64..INLINE_SIZE_MAX + 64,
        1 => SIZE_MAX - 64..SIZE_MAX + 64,
    ]
}

/// Powers of two, up to one that is not served.
fn align() -> impl Strategy<Value = usize> {
    prop_oneof![6 => Just(1_usize), 4 => (0..=ALIGN_MAX.ilog2() + 1).prop_map(|log| 1 << log)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let object = (size(), align(), prop::bool::weighted(0.8), between())
        .prop_map(|(size, align, commit, between)| Operation::Object { size, align, commit, between });
    let batch = (0..40_usize, 0..40_usize, prop::bool::weighted(0.8), between()).prop_map(
        |(capacity, pushed, commit, between)| Operation::Batch { capacity, pushed, commit, between },
    );
    prop_oneof![
        30 => object,
        8 => batch,
        2 => Just(Operation::Empty),
        2 => Just(Operation::Trip),
        2 => Just(Operation::Flip),
        1 => Just(Operation::FailFills(true)),
        2 => Just(Operation::FailFills(false)),
        1 => (0..20_usize).prop_map(|units| Operation::Preallocate(units * MIN_ALIGN)),
    ]
}

/// The objects committed by anybody: base to size and filling.
#[derive(Default)]
struct Objects(BTreeMap<Addr, (NonNull<u8>, usize, u8)>);

impl Objects {
    fn insert(&mut self, object: NonNull<u8>, size: usize, filling: u8) {
        let base = common::addr(object);
        let range = AddrRange::with_size(base, size).unwrap();
        let before = self.0.range(..=base).next_back();
        let after = self.0.range(base..).next();
        for (&other, &(_, size, _)) in before.into_iter().chain(after) {
            let other = AddrRange::with_size(other, size).unwrap();
            assert!(!other.overlaps(range), "{range} overlaps {other}");
        }
        self.0.insert(base, (object, size, filling));
    }

    fn check_contents(&self) {
        for (base, &(object, size, filling)) in &self.0 {
            // SAFETY: committed objects stay valid and were filled whole.
            let bytes = unsafe { core::slice::from_raw_parts(object.as_ptr(), size) };
            assert!(bytes == vec![filling; size], "the object at {base} changed");
        }
    }
}

/// Finds stops by counting bytes one at a time.
struct Stops {
    draws: Draws,
    left: usize,
    stops: Vec<Stop>,
}

impl Stops {
    fn new(mut draws: Draws) -> Self {
        let left = draws.draw();
        Self { draws, left, stops: Vec::new() }
    }

    /// An object was reserved, and that much of it committed.
    fn object(&mut self, object: Addr, reserved: usize, committed: usize) {
        let mut left = self.left;
        for offset in 0..reserved {
            if left == 0 {
                if offset < committed {
                    self.stops.push(Stop { object, size: committed, offset });
                }
                self.left = self.draws.draw();
                return;
            }
            left -= 1;
            if offset < committed {
                self.left -= 1;
            }
        }
    }
}

/// A pool, and how often it was flipped.
struct World<'a, F: Form> {
    pool: TestPool<'a, F>,
    flips: Cell<usize>,
    fails: Cell<bool>,
}

impl<'a, F: Form> World<'a, F> {
    fn new(pool: TestPool<'a, F>) -> Self {
        Self { pool, flips: Cell::new(0), fails: Cell::new(false) }
    }

    fn flip(&self) {
        flip_buffers(&self.pool, |buffer| {
            let now = buffer.snapshot().unwrap();
            assert!(F::FLIPPABLE && now.scan_limit <= now.init);
        });
        // A flip trips every buffer of the pool.
        self.flips.set(self.flips.get() + usize::from(F::FLIPPABLE));
    }
}

/// One allocation point, and what the oracle knows of it.
struct Subject<'w, 'a, F: Form> {
    point: AllocationPoint<'w, TestPool<'a, F>, TestControl>,
    world: &'w World<'a, F>,
    trips: usize,
    stops: Stops,
    allocated: usize,
}

impl<'w, 'a, F: Form> Subject<'w, 'a, F> {
    fn create(world: &'w World<'a, F>, kind: BufferKind, draws: Draws) -> Self {
        let stops = Stops::new(draws.clone());
        let point = AllocationPoint::create_with(&world.pool, kind, TestControl::new(draws)).unwrap();
        Self { point, world, trips: world.flips.get(), stops, allocated: 0 }
    }

    /// Trips that this owner was asked for.
    fn requested(&self) -> usize {
        self.trips + self.world.flips.get()
    }

    /// What a commit should say, after all this happened since the reserve.
    fn stands(between: Between) -> bool {
        !(F::FLIPPABLE && between.flips > 0)
    }

    fn happen(world: &World<'a, F>, tripper: Tripper<'_>, between: Between) {
        (0..between.trips).for_each(|_| tripper.trip());
        (0..between.flips).for_each(|_| world.flip());
    }

    fn check_refused(&mut self, error: Error, requested: usize) {
        assert!(error == Error::Limit || (self.world.fails.get() && error == Error::Frozen), "{error}");
        assert!(self.point.is_reset() && self.point.room() == 0);
        assert_eq!(self.point.control().trips(), requested);
    }

    /// An object that was reserved, and that much of it committed.
    fn record(&mut self, object: NonNull<u8>, reserved: usize, align: usize, committed: usize) {
        let base = common::addr(object);
        assert!(base.get().is_multiple_of(align.max(MIN_ALIGN)), "{base} is no multiple of {align}");
        let range = AddrRange::with_size(base, reserved).unwrap();
        assert!(self.world.pool.fills().iter().any(|fill| fill.covers(range)), "{range} is in no fill");
        self.stops.object(base, reserved, committed);
        self.allocated += committed;
    }

    fn object(&mut self, layout: Layout, commit: bool, between: Between, objects: &mut Objects) {
        let served = self.world.pool.reserve_size(layout);
        let (requested, tripper) = (self.requested(), self.point.tripper());
        let reservation = match self.point.reserve(layout) {
            Ok(reservation) => reservation,
            Err(Error::Parameter(_)) => return assert_eq!(served, None),
            Err(error) => return self.check_refused(error, requested),
        };
        let (object, reserved) = (reservation.as_ptr(), reservation.size());
        let filling = (common::addr(object).get() >> 4) as u8;
        // SAFETY: the reservation is valid for writes of its size.
        unsafe { object.write_bytes(filling, reserved) };
        Self::happen(self.world, tripper, between);
        // SAFETY: the object was just filled whole.
        let stands = commit && unsafe { reservation.commit() }.is_ok();
        assert_eq!(served, Some(reserved));
        assert_eq!(stands, commit && Self::stands(between));
        assert_eq!(self.point.control().trips(), requested, "reserve hears of every trip before it");
        self.trips += between.trips;
        self.record(object, reserved, layout.align(), if stands { reserved } else { 0 });
        if stands {
            objects.insert(object, reserved, filling);
        }
    }

    fn batch(
        &mut self,
        capacity: usize,
        pushed: usize,
        commit: bool,
        between: Between,
        objects: &mut Objects,
    ) {
        let (requested, tripper) = (self.requested(), self.point.tripper());
        let mut refusal = None;
        let refuse = |error| refusal = Some(error);
        let Ok(mut batch) = self.point.batch::<Element>(capacity).map_err(refuse) else {
            return self.check_refused(refusal.unwrap(), requested);
        };
        for index in 0..pushed {
            let result = batch.push(element(index));
            assert_eq!(result.is_ok(), index < capacity);
        }
        let pushed = pushed.min(capacity);
        assert_eq!((batch.len(), batch.capacity(), batch.is_empty()), (pushed, capacity, pushed == 0));
        let first = NonNull::from(batch.as_slice()).cast::<u8>();
        Self::happen(self.world, tripper, between);
        // SAFETY: the objects have no format.
        let result = commit.then(|| unsafe { batch.commit_raw() });
        // A batch of none needs no commit, so that none can fail.
        let stands = commit && (pushed == 0 || Self::stands(between));
        assert_eq!(result.is_some_and(|result| result.is_ok()), stands);
        self.trips += between.trips;
        if capacity == 0 {
            return;
        }
        assert_eq!(self.point.control().trips(), requested, "reserve hears of every trip before it");
        let committed = if stands { pushed * size_of::<Element>() } else { 0 };
        self.record(first, capacity * size_of::<Element>(), align_of::<Element>(), committed);
        for index in 0..committed / size_of::<Element>() {
            // SAFETY: within what was committed.
            let object = unsafe { first.add(index * size_of::<Element>()) };
            objects.insert(object, size_of::<Element>(), element(index)[0]);
        }
    }

    /// Counters are identities at every moment; stops told are those found, all
    /// but perhaps the last.
    fn check(&mut self) {
        self.point.check(CheckLevel::Deep).unwrap();
        let buffer = self.point.buffer();
        let held = self.allocated + self.point.room();
        assert_eq!(buffer.fill_size() - buffer.empty_size(), held as u64);
        let (told, found) = (self.point.control().stops(), &self.stops.stops);
        assert!(found.len() - told.len() <= 1);
        assert_eq!(told[..], found[..told.len()]);
    }

    fn empty(&mut self) {
        self.point.empty();
        assert!(self.point.is_reset() && self.point.room() == 0);
        assert_eq!(self.point.control().stops(), self.stops.stops);
        let (buffer, counts) = (self.point.buffer(), self.world.pool.header().arena().counts());
        let allocated = self.allocated as u64;
        assert_eq!(buffer.fill_size() - buffer.empty_size(), allocated);
        match buffer.kind() {
            BufferKind::Mutator => {
                assert_eq!(counts.fill_mutator.get() - counts.empty_mutator.get(), allocated);
                assert_eq!(counts.alloc_mutator.get(), allocated);
            }
            BufferKind::Internal => {
                assert_eq!(counts.fill_internal.get() - counts.empty_internal.get(), allocated);
            }
        }
    }

    fn operate(&mut self, operation: Operation, objects: &mut Objects) {
        match operation {
            Operation::Object { size, align, commit, between } => {
                let layout = Layout::from_size_align(size, align).unwrap();
                self.object(layout, commit, between, objects);
            }
            Operation::Batch { capacity, pushed, commit, between } => {
                self.batch(capacity, pushed, commit, between, objects);
            }
            Operation::Empty => self.empty(),
            Operation::Trip => {
                self.point.tripper().trip();
                self.trips += 1;
            }
            Operation::Flip => self.world.flip(),
            Operation::FailFills(now) => {
                self.world.fails.set(now);
                self.world.pool.fail_fills(now.then_some(Error::Frozen));
            }
            Operation::Preallocate(size) => self.world.pool.preallocate(size),
        }
    }
}

/// What batches are made of.
type Element = [u8; 48];

fn element(index: usize) -> Element {
    [index as u8; size_of::<Element>()]
}

/// Runs operations on a mutator's and an internal allocation point of one pool.
fn run<F: Form>(form: F, fill_size: usize, draws: [Draws; 2], operations: &[(usize, Operation)]) {
    with_arena(24 << 20, |arena| {
        let world = World::new(TestPool::with_form(arena, fill_size, form));
        let mut objects = Objects::default();
        let [first, second] = draws;
        let mut subjects = [
            Subject::create(&world, BufferKind::Mutator, first),
            Subject::create(&world, BufferKind::Internal, second),
        ];
        for &(index, operation) in operations {
            subjects[index].operate(operation, &mut objects);
            subjects.iter_mut().for_each(Subject::check);
        }
        subjects.iter_mut().for_each(Subject::empty);
        assert!(world.pool.fills().is_empty());
        objects.check_contents();
        arena.check(CheckLevel::Deep).unwrap();
    });
}

fn operations() -> impl Strategy<Value = Vec<(usize, Operation)>> {
    prop::collection::vec((0..2_usize, operation()), 1..80)
}

/// Stops from none, through one in every object, to some in a few buffers.
fn draws() -> impl Strategy<Value = Draws> {
    prop_oneof![
        1 => Just(Draws::Never),
        1 => (0..100_usize).prop_map(Draws::Every),
        4 => (1..20_000_usize, any::<u64>()).prop_map(|(below, seed)| Draws::Below { below, seed }),
    ]
}

fn fill_size() -> impl Strategy<Value = usize> {
    prop_oneof![Just(16_usize), Just(512), Just(1536), Just(4096), Just(65536)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn manual_pools_agree_with_the_oracle(
        fill_size in fill_size(),
        draws in [draws(), draws()],
        operations in operations(),
    ) {
        run(Manual, fill_size, draws, &operations);
    }

    #[test]
    fn flippable_pools_agree_with_the_oracle(
        fill_size in fill_size(),
        draws in [draws(), draws()],
        operations in operations(),
    ) {
        run(Flippable(SymmetricFence), fill_size, draws, &operations);
    }

    /// Objects almost as large as a buffer: a stop is mostly found in another
    /// buffer than the one it was drawn in, and what buffers lose at their end
    /// must not count.
    #[test]
    fn stops_are_the_same_across_buffers(
        below in 1..10_000_usize,
        seed in any::<u64>(),
        fates in prop::collection::vec((prop::bool::weighted(0.9), prop::bool::weighted(0.7)), 100..400),
    ) {
        let draws = Draws::Below { below, seed };
        let between = Between { trips: 0, flips: 0 };
        let operations: Vec<_> = fates
            .iter()
            .map(|&(commit, large)| {
                let size = if large { 1400 } else { 16 };
                (0, Operation::Object { size, align: 8, commit, between })
            })
            .collect();
        run(Manual, 1536, [draws, Draws::Never], &operations);
    }
}

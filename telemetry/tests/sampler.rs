//! Sampling at allocation points: the same objects as byte by byte, in every class, whatever
//! happens to the buffer meanwhile.

use core::alloc::Layout;
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use tripoint_ap::{AllocationPoint, flip_buffers};
use tripoint_core::{
    Addr, BufferKind, ClientArena, ClientArenaOptions, Control, ControlPair, PoolClass, SymmetricFence,
};
use tripoint_oracle::{BumpPool, Draws, FlipPool, Listener, cases};
use tripoint_pools::{
    Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Snc, SncOptions, Tlsf, TlsfOptions, UnitOf,
};
use tripoint_stack::Site;
use tripoint_telemetry::{Mean, ObjectKind, PointSampler, Sample, SampledObject, Sampling, Stream, Trials};

const SEED: u64 = 0x7e1e;

/// What happens to one object.
#[derive(Clone, Copy, Debug)]
enum Step {
    Commit,
    Abandon,
    /// The buffer is flipped between reserve and commit.
    Flip,
    /// The point is tripped before the reserve.
    Trip,
    /// The buffer is emptied before the reserve.
    Empty,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Commit),
        1 => Just(Step::Abandon),
        1 => Just(Step::Flip),
        1 => Just(Step::Trip),
        1 => Just(Step::Empty),
    ]
}

/// Small objects, some that fill a buffer, and some that are larger.
fn any_size() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 1usize..200, 3 => 200usize..3000, 1 => 3000usize..if cfg!(miri) { 5000 } else { 20_000 }]
}

fn with_arena(size: usize, test: impl FnOnce(&ClientArena<'_>)) {
    let mut memory = Box::new_uninit_slice(size);
    // Miri walks the whole table of tracts whenever it is lent: a short one.
    let grain = if cfg!(miri) { (size >> 8).next_power_of_two() } else { 4096 };
    let options = ClientArenaOptions { grain: Some(grain), event_hook: None };
    test(&ClientArena::create(&mut memory, options).unwrap());
}

/// One trial after another, for each byte allocated.
struct ByteByByte {
    /// Trials to come, of which the last succeeds.
    failures_left: u64,
    draws: Box<dyn FnMut() -> u64>,
    mean: Mean,
    sampled: Vec<SampledObject>,
}

impl ByteByByte {
    fn new(stream: Stream, mean: Mean) -> Self {
        // A huge object is sampled at its first byte drawn: that shows each draw.
        let mut trials = Trials::new(stream, mean);
        let mut draws: Box<dyn FnMut() -> u64> =
            Box::new(move || trials.allocate(u64::MAX).unwrap().offset());
        Self { failures_left: draws(), draws, mean, sampled: Vec::new() }
    }

    /// An object was allocated.
    fn object(&mut self, sampled: SampledObject, size: usize) {
        for offset in 0..size as u64 {
            if self.failures_left == 0 {
                let sample = Sample::new(size as u64, offset, self.mean).unwrap();
                self.sampled.push(SampledObject { sample, ..sampled });
                self.failures_left = (self.draws)();
                return;
            }
            self.failures_left -= 1;
        }
    }
}

/// An object as a sampler of its pool reports it, but for the sample.
fn unsampled<P: PoolClass>(
    pool: &P,
    kind: ObjectKind,
    object: Addr,
    type_name: Option<&'static str>,
) -> SampledObject {
    let sample = Sample::new(1, 0, Mean::EVERY_BYTE).unwrap();
    let (pool, class) = (Some(pool.header().id()), Some(pool.header().class()));
    SampledObject { pool, class, type_name, ..SampledObject::new(kind, object, sample) }
}

/// The kind of an object of this size, just committed: large if it has the buffer for itself.
fn kind<P: PoolClass, C: Control>(point: &AllocationPoint<'_, P, C>, size: usize) -> ObjectKind {
    let fill = point.buffer().snapshot().unwrap().range();
    if fill.size() == size { ObjectKind::Large } else { ObjectKind::Small }
}

/// Does the same with a point and byte by byte. The arena has room for all.
fn same_objects<P: PoolClass>(pool: &P, mean: u32, steps: &[(usize, Step)]) {
    let mean = Mean::new(mean).unwrap();
    let sampling = Sampling::off(SEED);
    sampling.set_mean(Some(mean));
    let mut expected = ByteByByte::new(Stream::new(SEED, 0), mean);
    let sampled = RefCell::new(Vec::new());
    let sampler = PointSampler::new(&sampling, |object| sampled.borrow_mut().push(object));
    let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, sampler).unwrap();
    for &(size, step) in steps {
        match step {
            Step::Trip => point.tripper().trip(),
            Step::Empty => point.empty(),
            Step::Commit | Step::Abandon | Step::Flip => (),
        }
        let reservation = point.reserve(Layout::from_size_align(size, 1).unwrap()).unwrap();
        let (object, size) = (Addr::of(reservation.as_ptr().as_ptr()), reservation.size());
        if matches!(step, Step::Flip) {
            flip_buffers(pool, |_, _| ());
        }
        // SAFETY: no thread reads the objects of these pools.
        let is_committed = !matches!(step, Step::Abandon) && unsafe { reservation.commit() }.is_ok();
        if is_committed {
            expected.object(unsampled(pool, kind(&point, size), object, None), size);
        }
    }
    drop(point);
    assert_eq!(sampled.into_inner(), expected.sampled);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    /// (design/sampling.md `.req.trials`)
    #[test]
    fn points_of_every_class_sample_the_same_objects_as_byte_by_byte(
        mean in prop_oneof![1u32..100, 100u32..5000],
        steps in prop::collection::vec((any_size(), any_step()), 0..if cfg!(miri) { 8 } else { 200 }),
        buffer in (16usize..512).prop_map(|units| units * 16),
    ) {
        const ROOM: usize = 16 << 20;
        with_arena(ROOM, |arena| same_objects(&BumpPool::create(arena, buffer), mean, &steps));
        with_arena(ROOM, |arena| same_objects(&FlipPool::create(arena, buffer, SymmetricFence), mean, &steps));
        let extend_by = buffer;
        with_arena(ROOM, |arena| {
            let options = MvffOptions { extend_by, ..MvffOptions::default() };
            same_objects(&Mvff::create(arena, options).unwrap(), mean, &steps);
        });
        with_arena(ROOM, |arena| {
            let options = TlsfOptions { extend_by, ..TlsfOptions::default() };
            same_objects(&Tlsf::create(arena, options).unwrap(), mean, &steps);
        });
        with_arena(ROOM, |arena| {
            same_objects(&Mvt::create(arena, MvtOptions::default()).unwrap(), mean, &steps);
        });
        with_arena(ROOM, |arena| {
            let options = SncOptions { extend_by, ..SncOptions::default() };
            same_objects(&Snc::create(arena, options).unwrap(), mean, &steps);
        });
        with_arena(ROOM, |arena| {
            let pool = Mfs::create(arena, UnitOf::<[u64; 12]>::new(), MfsOptions::default()).unwrap();
            let steps: Vec<_> = steps.iter().map(|&(_, step)| (96, step)).collect();
            same_objects(&pool, mean, &steps);
        });
    }
}

#[test]
fn every_object_is_sampled_with_a_mean_of_one() {
    let steps = [8, 100, 5000, 16].map(|size| (size, Step::Commit));
    with_arena(1 << 20, |arena| same_objects(&BumpPool::create(arena, 1024), 1, &steps));
}

/// Allocates batches at a point, each for a number of objects of which some are committed, if any, and the
/// same objects one by one and byte by byte.
fn same_objects_in_batches<P: PoolClass, T: Copy>(
    pool: &P,
    mean: u32,
    steps: &[(usize, usize, Step)],
    value: T,
) {
    let mean = Mean::new(mean).unwrap();
    let sampling = Sampling::off(SEED);
    sampling.set_mean(Some(mean));
    let mut expected = ByteByByte::new(Stream::new(SEED, 0), mean);
    let sampled = RefCell::new(Vec::new());
    let sampler = PointSampler::new(&sampling, |object| sampled.borrow_mut().push(object));
    let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, sampler).unwrap();
    for &(capacity, pushed, step) in steps {
        match step {
            Step::Trip => point.tripper().trip(),
            Step::Empty => point.empty(),
            Step::Commit | Step::Abandon | Step::Flip => (),
        }
        let mut batch = point.batch::<T>(capacity).unwrap();
        let pushed = (0..pushed).take_while(|_| batch.push(value).is_ok()).count();
        if matches!(step, Step::Flip) {
            flip_buffers(pool, |_, _| ());
        }
        if matches!(step, Step::Abandon) {
            continue;
        }
        // SAFETY: no thread reads the objects of these pools.
        let Ok(objects) = (unsafe { batch.commit_raw() }) else { continue };
        if pushed == 0 {
            continue;
        }
        // What the pool adds behind the last object belongs to it, or is more objects if there is room for
        // them and they were reserved.
        let (unit, size) = (size_of::<T>(), pool.reserve_size(Layout::array::<T>(pushed).unwrap()).unwrap());
        let count = capacity.min(size / unit);
        for index in 0..count {
            let object = Addr::of(objects.cast::<T>().as_ptr().wrapping_add(index));
            let size = if index + 1 == count { size - index * unit } else { unit };
            let kind = kind(&point, size);
            let sampled = unsampled(pool, kind, object, Some(core::any::type_name::<T>()));
            expected.object(sampled, size);
        }
    }
    drop(point);
    assert_eq!(sampled.into_inner(), expected.sampled);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    /// (design/sampling.md `.batch`)
    #[test]
    fn objects_of_batches_are_sampled_as_if_each_were_allocated_by_itself(
        mean in prop_oneof![1u32..100, 100u32..5000],
        steps in prop::collection::vec((0usize..60, 0usize..80, any_step()), 0..if cfg!(miri) { 10 } else { 100 }),
        buffer in (16usize..512).prop_map(|units| units * 16),
    ) {
        const ROOM: usize = 16 << 20;
        // 12 bytes: rounded up behind the last.
        let value = [7_u32; 3];
        with_arena(ROOM, |arena| same_objects_in_batches(&BumpPool::create(arena, buffer), mean, &steps, value));
        with_arena(ROOM, |arena| {
            let pool = FlipPool::create(arena, buffer, SymmetricFence);
            same_objects_in_batches(&pool, mean, &steps, [7_u64; 4]);
        });
        let extend_by = buffer;
        with_arena(ROOM, |arena| {
            let options = MvffOptions { extend_by, ..MvffOptions::default() };
            same_objects_in_batches(&Mvff::create(arena, options).unwrap(), mean, &steps, value);
        });
        with_arena(ROOM, |arena| {
            let options = SncOptions { extend_by, ..SncOptions::default() };
            same_objects_in_batches(&Snc::create(arena, options).unwrap(), mean, &steps, value);
        });
    }
}

/// (design/sampling.md `.site`)
#[test]
fn a_report_has_the_site_of_the_call_that_allocates() {
    with_arena(1 << 20, |arena| {
        let pool = BumpPool::create(arena, 4096);
        let sampling = Sampling::off(SEED);
        sampling.set_mean(Some(Mean::EVERY_BYTE));
        sampling.set_sites(true);
        let sites = RefCell::new(Vec::new());
        let sampler =
            PointSampler::new(&sampling, |object: SampledObject| sites.borrow_mut().push(object.site));
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, sampler).unwrap();
        for _ in 0..2 {
            point.alloc(1_u64).unwrap();
            // The samples of this batch are reported on the stack of the next call.
            let mut batch = point.batch::<u64>(2).unwrap();
            (0..2).for_each(|number| batch.push(number).unwrap());
            let _ = batch.commit();
        }
        drop(point);
        let [one, first, second, one_again, first_again, second_again] = sites.into_inner()[..] else {
            panic!()
        };
        assert_eq!((one, first, second), (one_again, first_again, second_again));
        assert_eq!(first, second, "of one batch");
        let is_walked = cfg!(all(target_os = "linux", not(miri)));
        assert_eq!((one != first, one != Site::UNKNOWN), (is_walked, is_walked));
    });
}

/// Allocates objects of 32 bytes at a point, and returns which were sampled, by number.
fn sampled_numbers(
    arena: &ClientArena<'_>,
    sampling: &Sampling,
    objects: usize,
    mut before: impl FnMut(usize, &dyn Fn()),
) -> Vec<usize> {
    let pool = BumpPool::create(arena, 4096);
    let (number, sampled) = (Cell::new(0), RefCell::new(Vec::new()));
    // Reported in the slow path of the object after.
    let sampler = PointSampler::new(sampling, |_| sampled.borrow_mut().push(number.get() - 1));
    let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, sampler).unwrap();
    for object in 0..objects {
        number.set(object);
        let tripper = point.tripper();
        before(object, &|| tripper.trip());
        point.alloc([object as u64; 4]).unwrap();
    }
    number.set(objects);
    drop(point);
    sampled.into_inner()
}

/// (design/sampling.md `.switch`)
#[test]
fn sampling_is_switched_on_and_off_while_a_point_lives() {
    // Objects are allocated in six turns of that many, and of each turn's about 60 are sampled.
    const TURN: usize = if cfg!(miri) { 250 } else { 1000 };
    let mean = Mean::new(TURN as u32 / 2).unwrap();
    with_arena(8 << 20, |arena| {
        let sampling = Sampling::off(SEED);
        let sampled = sampled_numbers(arena, &sampling, 6 * TURN, |object, trip| {
            match (object / TURN, object % TURN) {
                (1, 0) => sampling.set_mean(Some(mean)),
                (2, 0) => trip(),
                (3, 0) => sampling.set_mean(None),
                (4, 0) => {
                    sampling.set_mean(Some(mean));
                    trip();
                }
                (5, 0) => {
                    sampling.set_mean(None);
                    trip();
                }
                _ => (),
            }
        });
        let count =
            |range: core::ops::Range<usize>| sampled.iter().filter(|object| range.contains(object)).count();
        // A point that does not sample learns of a change when it is tripped,
        assert_eq!(count(0..2 * TURN), 0);
        // and 32 bytes a piece hold about 64 drawn ones.
        assert!((40..90).contains(&count(2 * TURN..3 * TURN)), "{}", count(2 * TURN..3 * TURN));
        // One that samples learns of it with its next sample, or when it is tripped.
        assert_eq!(count(3 * TURN..4 * TURN), 1);
        assert!((40..90).contains(&count(4 * TURN..5 * TURN)), "{}", count(4 * TURN..5 * TURN));
        assert_eq!(count(5 * TURN..6 * TURN), 0);
    });
}

/// (design/sampling.md `.fork`)
#[test]
fn a_new_seed_holds_from_the_next_trip() {
    const OBJECTS: usize = if cfg!(miri) { 400 } else { 2000 };
    let mean = Mean::new(500).unwrap();
    let run = |seed: Option<u64>| {
        let mut sampled = Vec::new();
        with_arena(4 << 20, |arena| {
            let sampling = Sampling::off(SEED);
            sampling.set_mean(Some(mean));
            sampled = sampled_numbers(arena, &sampling, OBJECTS, |object, trip| {
                if object == OBJECTS / 2 {
                    seed.into_iter().for_each(|seed| sampling.reseed(seed));
                    trip();
                }
            });
        });
        sampled
    };
    let (parent, child) = (run(None), run(Some(SEED + 1)));
    let before = |sampled: &[usize]| sampled.iter().filter(|&&object| object < OBJECTS / 2).count();
    assert_eq!(parent[..before(&parent)], child[..before(&child)]);
    assert_ne!(parent[before(&parent)..], child[before(&child)..]);
}

/// A second control has its own stops, and the sampler the samples that it has alone.
#[test]
fn a_sampler_shares_a_point_with_another_control() {
    const OBJECTS: u64 = if cfg!(miri) { 320 } else { 2000 };
    let mean = Mean::new(700).unwrap();
    let run = |with_other: bool| {
        let sampled = RefCell::new(Vec::new());
        let mut stops = 0;
        with_arena(4 << 20, |arena| {
            let pool = BumpPool::create(arena, 2048);
            let sampling = Sampling::off(SEED);
            sampling.set_mean(Some(mean));
            let sampler = PointSampler::new(&sampling, |object: SampledObject| {
                sampled.borrow_mut().push(object.sample)
            });
            let draws = if with_other { Draws::Every(1000) } else { Draws::Never };
            let control = ControlPair::new(sampler, Listener::new(draws));
            let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, control).unwrap();
            for object in 0..OBJECTS {
                point.alloc([object; 8]).unwrap();
            }
            point.empty();
            stops = point.control().second().stops().len();
        });
        (sampled.into_inner(), stops)
    };
    let ((alone, none), (shared, stops)) = (run(false), run(true));
    assert_eq!(alone, shared);
    // The object at byte 1000 ends at 1024, which is 16 objects.
    assert_eq!((none, stops), (0, OBJECTS as usize / 16));
}

/// Counts trips.
#[derive(Debug)]
struct TripCount<'c>(&'c Cell<usize>);

impl Control for TripCount<'_> {
    fn tripped(&mut self, requests: usize) {
        self.0.set(self.0.get() + requests);
    }
}

/// Another thread trips the point as fast as it can: each trip is observed, and the samples are
/// those of the same stream without trips (design/sampling.md `.req.trips`).
#[test]
fn trips_at_any_moment_are_all_observed_and_change_no_sample() {
    const OBJECTS: u64 = if cfg!(miri) { 300 } else { 200_000 };
    let mean = Mean::new(2000).unwrap();
    with_arena(if cfg!(miri) { 1 << 20 } else { 16 << 20 }, |arena| {
        let pool = BumpPool::create(arena, 8192);
        let sampling = Sampling::off(SEED);
        sampling.set_mean(Some(mean));
        let (observed, sampled) = (Cell::new(0), RefCell::new(Vec::new()));
        let sampler =
            PointSampler::new(&sampling, |object: SampledObject| sampled.borrow_mut().push(object.sample));
        let control = ControlPair::new(sampler, TripCount(&observed));
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, control).unwrap();
        let (tripper, done) = (point.tripper(), AtomicBool::new(false));
        let requested = std::thread::scope(|scope| {
            let trips = scope.spawn(|| {
                let mut requested = 0;
                while !done.load(Ordering::Relaxed) {
                    tripper.trip();
                    requested += 1;
                }
                requested
            });
            let outcome = (0..OBJECTS).try_for_each(|object| point.alloc([object; 8]).map(drop));
            done.store(true, Ordering::Relaxed);
            outcome.unwrap();
            trips.join().unwrap()
        });
        // The last trips happen before this reserve.
        point.alloc([0_u64; 8]).unwrap();
        assert_eq!(observed.get(), requested);
        drop(point);
        let mut trials = Trials::new(Stream::new(SEED, 0), mean);
        let expected: Vec<_> = (0..=OBJECTS).filter_map(|_| trials.allocate(64)).collect();
        assert_eq!(sampled.into_inner(), expected);
    });
}

/// What is abandoned, or whose commit fails, is not tried at all: its draw stays for the next object
/// (design/sampling.md `.abandon`).
#[test]
fn objects_that_are_made_at_the_second_attempt_are_sampled_as_often_as_others() {
    const OBJECTS: u32 = if cfg!(miri) { 300 } else { 20_000 };
    let mean = Mean::new(100).unwrap();
    for between in [Step::Commit, Step::Abandon, Step::Flip] {
        with_arena(4 << 20, |arena| {
            let pool = FlipPool::create(arena, 4096, SymmetricFence);
            let sampling = Sampling::off(SEED);
            sampling.set_mean(Some(mean));
            let sampled = Cell::new(0);
            let sampler = PointSampler::new(&sampling, |_| sampled.set(sampled.get() + 1));
            let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, sampler).unwrap();
            for _ in 0..OBJECTS {
                let layout = Layout::new::<[u64; 4]>();
                match between {
                    Step::Abandon => drop(point.reserve(layout).unwrap()),
                    Step::Flip => {
                        let reservation = point.reserve(layout).unwrap();
                        flip_buffers(&pool, |_, _| ());
                        // SAFETY: no thread reads the objects of this pool.
                        unsafe { reservation.commit() }.unwrap_err();
                    }
                    _ => (),
                }
                // SAFETY: no thread reads the objects of this pool.
                unsafe { point.reserve(layout).unwrap().commit() }.unwrap();
            }
            drop(point);
            // With 1 - 0.99^32 = 0.275 of all, within five standard deviations.
            let (objects, share) = (f64::from(OBJECTS), 1.0 - 0.99_f64.powi(32));
            let (expected, deviation) = (objects * share, (objects * share * (1.0 - share)).sqrt());
            let found = f64::from(sampled.get());
            assert!((found - expected).abs() < 5.0 * deviation, "{between:?}: {found} of {expected}");
        });
    }
}

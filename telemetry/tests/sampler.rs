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
use tripoint_oracle::{BumpPool, Draws, FlipPool, Listener, effort};
use tripoint_pools::{
    Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Snc, SncOptions, Tlsf, TlsfOptions, UnitOf,
};
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
    prop_oneof![8 => 1usize..200, 3 => 200usize..3000, 1 => 3000usize..20_000]
}

fn with_arena(size: usize, test: impl FnOnce(&ClientArena<'_>)) {
    let mut memory = Box::new_uninit_slice(size);
    // Miri walks the whole table of tracts whenever it is lent: a short one.
    let grain = if cfg!(miri) { (size >> 8).next_power_of_two() } else { 4096 };
    let options = ClientArenaOptions { grain: Some(grain), event_hook: None };
    test(&ClientArena::create(&mut memory, options).unwrap());
}

/// One trial after another, for each byte reserved.
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

    fn object(&mut self, object: Addr, size: usize, is_committed: bool) {
        let mut failures_left = self.failures_left;
        for offset in 0..size as u64 {
            if failures_left == 0 {
                if is_committed {
                    let sample = Sample::new(size as u64, offset, self.mean).unwrap();
                    self.sampled.push(SampledObject::new(ObjectKind::Small, object, sample));
                }
                self.failures_left = (self.draws)();
                return;
            }
            failures_left -= 1;
        }
        if is_committed {
            self.failures_left = failures_left;
        }
    }
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
        expected.object(object, size, is_committed);
    }
    drop(point);
    assert_eq!(sampled.into_inner(), expected.sampled);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: effort(64), failure_persistence: None, ..ProptestConfig::default() })]

    /// (design/sampling.md `.req.trials`)
    #[test]
    fn points_of_every_class_sample_the_same_objects_as_byte_by_byte(
        mean in prop_oneof![1u32..100, 100u32..5000],
        steps in prop::collection::vec((any_size(), any_step()), 0..if cfg!(miri) { 20 } else { 200 }),
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

/// The committed part of a batch counts as one object.
#[test]
fn a_batch_is_sampled_as_one_object() {
    let mean = Mean::new(1000).unwrap();
    with_arena(4 << 20, |arena| {
        let pool = BumpPool::create(arena, 4096);
        let sampling = Sampling::off(SEED);
        sampling.set_mean(Some(mean));
        let mut expected = Trials::new(Stream::new(SEED, 0), mean);
        let sampled = RefCell::new(Vec::new());
        let sampler = PointSampler::new(&sampling, |object| sampled.borrow_mut().push(object.sample));
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, sampler).unwrap();
        let mut samples = Vec::new();
        for number in 0..500 {
            let mut batch = point.batch::<[u64; 2]>(number % 20).unwrap();
            while batch.push([0; 2]).is_ok() {}
            samples.extend(expected.allocate(16 * batch.len() as u64));
            let _ = batch.commit();
        }
        drop(point);
        assert_eq!(sampled.into_inner(), samples);
        assert!(samples.len() > 20);
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
        point.alloc([object; 4]).unwrap();
    }
    number.set(objects);
    drop(point);
    sampled.into_inner()
}

/// (design/sampling.md `.switch`)
#[test]
fn sampling_is_switched_on_and_off_while_a_point_lives() {
    let mean = Mean::new(500).unwrap();
    with_arena(8 << 20, |arena| {
        let sampling = Sampling::off(SEED);
        let sampled = sampled_numbers(arena, &sampling, 6000, |object, trip| match object {
            1000 => sampling.set_mean(Some(mean)),
            2000 => trip(),
            3000 => sampling.set_mean(None),
            4000 => {
                sampling.set_mean(Some(mean));
                trip();
            }
            5000 => {
                sampling.set_mean(None);
                trip();
            }
            _ => (),
        });
        let count =
            |range: core::ops::Range<usize>| sampled.iter().filter(|object| range.contains(object)).count();
        // A point that does not sample learns of a change when it is tripped,
        assert_eq!(count(0..2000), 0);
        // and 32,000 bytes hold about 64 drawn ones.
        assert!((40..90).contains(&count(2000..3000)), "{}", count(2000..3000));
        // One that samples learns of it with its next sample, or when it is tripped.
        assert_eq!(count(3000..4000), 1);
        assert!((40..90).contains(&count(4000..5000)), "{}", count(4000..5000));
        assert_eq!(count(5000..6000), 0);
    });
}

/// (design/sampling.md `.fork`)
#[test]
fn a_new_seed_holds_from_the_next_trip() {
    let mean = Mean::new(500).unwrap();
    let run = |seed: Option<u64>| {
        let mut sampled = Vec::new();
        with_arena(4 << 20, |arena| {
            let sampling = Sampling::off(SEED);
            sampling.set_mean(Some(mean));
            sampled = sampled_numbers(arena, &sampling, 2000, |object, trip| {
                if object == 1000 {
                    seed.into_iter().for_each(|seed| sampling.reseed(seed));
                    trip();
                }
            });
        });
        sampled
    };
    let (parent, child) = (run(None), run(Some(SEED + 1)));
    let before = |sampled: &[usize]| sampled.iter().filter(|&&object| object < 1000).count();
    assert_eq!(parent[..before(&parent)], child[..before(&child)]);
    assert_ne!(parent[before(&parent)..], child[before(&child)..]);
}

/// A second control has its own stops, and the sampler the samples that it has alone.
#[test]
fn a_sampler_shares_a_point_with_another_control() {
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
            for object in 0..2000_u64 {
                point.alloc([object; 8]).unwrap();
            }
            point.empty();
            stops = point.control().second().stops().len();
        });
        (sampled.into_inner(), stops)
    };
    let ((alone, none), (shared, stops)) = (run(false), run(true));
    assert_eq!(alone, shared);
    // The object at byte 1000 ends at 1024: 128,000 bytes hold 125 stops.
    assert_eq!((none, stops), (0, 125));
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
            for object in 0..OBJECTS {
                point.alloc([object; 8]).unwrap();
            }
            done.store(true, Ordering::Relaxed);
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

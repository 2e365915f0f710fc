//! Points and stores that report every object: all of them while the log is on, none while it is
//! off, and the same beside other controls.

use core::alloc::Layout;
use core::cell::{Cell, RefCell};
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Mutex;

use proptest::prelude::*;
use tripoint_ap::{AllocationPoint, flip_buffers};
use tripoint_core::{
    Addr, BufferKind, ClientArena, ClientArenaOptions, Control, ControlPair, Event, EventHook, PoolBox,
    PoolClass, Store, SymmetricFence,
};
use tripoint_oracle::{BumpPool, Draws, FlipPool, Listener, Stopped, cases};
use tripoint_pools::{Mvff, MvffOptions, Snc, SncOptions};
use tripoint_stack::Site;
use tripoint_telemetry::{LoggedStore, Mean, PointLogger, PointSampler, SampledObject, Sampling};

/// Keeps what it is notified of, and unwinds at one event.
#[derive(Default)]
struct Events {
    kept: Mutex<Vec<Event>>,
    sites: Mutex<Vec<Site>>,
    unwinds: AtomicBool,
}

impl Events {
    fn take(&self) -> Vec<Event> {
        core::mem::take(&mut self.kept.lock().unwrap())
    }
}

impl EventHook for Events {
    fn event(&self, event: Event) {
        self.event_at(event, &[]);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        self.kept.lock().unwrap().push(event);
        self.sites.lock().unwrap().push(Site::new(site.iter().copied()));
        if self.unwinds.swap(false, Ordering::Relaxed) {
            resume_unwind(Box::new("on purpose"));
        }
    }
}

fn with_arena(test: impl FnOnce(&ClientArena<'_>)) {
    let size = if cfg!(miri) { 1 << 20 } else { 8 << 20 };
    let mut memory = Box::new_uninit_slice(size);
    let grain = if cfg!(miri) { (size >> 8).next_power_of_two() } else { 4096 };
    let options = ClientArenaOptions { grain: Some(grain), event_hook: None };
    test(&ClientArena::create(&mut memory, options).unwrap());
}

/// A step in the life of a point.
#[derive(Clone, Copy, Debug)]
enum Step {
    Commit(usize),
    Abandon(usize),
    /// The buffer is flipped between reserve and commit.
    Flip(usize),
    /// A batch for that many objects, of which that many are committed.
    Batch(usize, usize),
    Trip,
    Empty,
    /// The log is switched.
    Switch(bool),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1usize..300).prop_map(Step::Commit),
        2 => (1usize..300).prop_map(Step::Abandon),
        2 => (1usize..300).prop_map(Step::Flip),
        2 => (1usize..20, 0usize..20).prop_map(|(capacity, pushed)| Step::Batch(capacity, pushed)),
        1 => Just(Step::Trip),
        1 => Just(Step::Empty),
        2 => any::<bool>().prop_map(Step::Switch),
    ]
}

/// What a point should report, worked out step by step.
struct Expected<'o> {
    is_on: &'o Cell<bool>,
    /// Whether the point reports now: it looks at the switch after each commit that it reports, and after
    /// trips.
    is_logging: bool,
    is_tripped: bool,
    /// What became of the object that was reported last, which is not reported yet.
    pending: Option<Event>,
    events: Vec<Event>,
}

impl<'o> Expected<'o> {
    fn new(is_on: &'o Cell<bool>) -> Self {
        Self { is_on, is_logging: is_on.get(), is_tripped: false, pending: None, events: Vec::new() }
    }

    fn settle(&mut self) {
        if let Some(event) = self.pending.take() {
            self.events.push(event);
            if let Event::Commit { .. } = event {
                self.is_logging = self.is_on.get();
            }
        }
    }

    fn reserve(&mut self, event: Event) {
        self.settle();
        if core::mem::take(&mut self.is_tripped) {
            self.is_logging = self.is_on.get();
        }
        self.call(event);
    }

    fn call(&mut self, event: Event) {
        if self.is_logging {
            self.events.push(event);
        }
    }

    fn decide(&mut self, event: Event) {
        self.pending = self.is_logging.then_some(event);
    }
}

/// Does the steps at a point with a control, and returns what a logger at it should report.
fn live<P: PoolClass, C: Control>(pool: &P, control: C, is_on: &Cell<bool>, steps: &[Step]) -> Vec<Event> {
    is_on.set(false);
    let mut expected = Expected::new(is_on);
    let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, control).unwrap();
    let (id, buffer) = (pool.header().id(), point.buffer().id());
    for &step in steps {
        match step {
            Step::Trip => {
                point.tripper().trip();
                expected.is_tripped = true;
            }
            Step::Empty => {
                point.empty();
                expected.settle();
                expected.call(Event::EmptyPoint { pool: id, buffer });
            }
            Step::Switch(on) => is_on.set(on),
            Step::Commit(size) | Step::Abandon(size) | Step::Flip(size) => {
                let reservation = point.reserve(Layout::from_size_align(size, 1).unwrap()).unwrap();
                let requested = size;
                let (object, size) = (Addr::of(reservation.as_ptr().as_ptr()), reservation.size());
                expected.reserve(Event::Reserve {
                    pool: id,
                    buffer,
                    object,
                    size,
                    unit: size,
                    requested,
                    align: 1,
                    type_name: None,
                });
                if let Step::Flip(_) = step {
                    flip_buffers(pool, |_, _| ());
                    expected.is_tripped |= P::FLIPPABLE;
                }
                // SAFETY: no thread reads the objects of these pools.
                let stands = !matches!(step, Step::Abandon(_)) && unsafe { reservation.commit() }.is_ok();
                expected.decide(match stands {
                    true => Event::Commit { pool: id, buffer, object, size },
                    false => Event::Abandon { pool: id, buffer, object },
                });
            }
            Step::Batch(capacity, pushed) => {
                let mut batch = point.batch::<[u64; 4]>(capacity).unwrap();
                let object = Addr::of(batch.as_slice().as_ptr());
                let type_name = Some("[u64; 4]");
                let size = 32 * capacity;
                expected.reserve(Event::Reserve {
                    pool: id,
                    buffer,
                    object,
                    size,
                    unit: 32,
                    requested: size,
                    align: 8,
                    type_name,
                });
                let pushed = (0..pushed).take_while(|_| batch.push([0; 4]).is_ok()).count();
                // SAFETY: no thread reads the objects of these pools.
                unsafe { batch.commit_raw() }.unwrap();
                expected.decide(match pushed {
                    0 => Event::Abandon { pool: id, buffer, object },
                    _ => Event::Commit { pool: id, buffer, object, size: 32 * pushed },
                });
            }
        }
    }
    drop(point);
    expected.settle();
    expected.events
}

/// The samples, the stops and the events of a life, with all three controls or with one of them.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    samples: Vec<SampledObject>,
    stops: Vec<Stopped>,
    events: Vec<Event>,
}

/// A control that shares its listener.
#[derive(Debug)]
struct Shared<'l>(&'l RefCell<Listener>);

impl Control for Shared<'_> {
    fn next_stop(&mut self) -> usize {
        self.0.borrow_mut().next_stop()
    }

    fn stopped(&mut self, stop: tripoint_core::Stop) {
        self.0.borrow_mut().stopped(stop);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    /// (design/telemetry.md `.log`)
    #[test]
    fn a_point_reports_all_of_its_objects_while_its_log_is_on(
        steps in prop::collection::vec(any_step(), 0..if cfg!(miri) { 20 } else { 200 }),
        buffer in (40usize..200).prop_map(|units| units * 16),
    ) {
        let (events, is_on) = (Events::default(), Cell::new(false));
        with_arena(|arena| {
            let pool = BumpPool::create(arena, buffer);
            let logger = PointLogger::new(|| is_on.get(), &events);
            let expected = live(&pool, logger, &is_on, &steps);
            assert_eq!(events.take(), expected);
        });
        with_arena(|arena| {
            let pool = FlipPool::create(arena, buffer, SymmetricFence);
            let logger = PointLogger::new(|| is_on.get(), &events);
            let expected = live(&pool, logger, &is_on, &steps);
            assert_eq!(events.take(), expected);
        });
    }

    /// A sampler, a logger and a control of the program's own at one point: each as if it were alone
    /// (design/ap.md `.stop.pair`).
    #[test]
    fn three_controls_at_one_point_do_not_disturb_each_other(
        steps in prop::collection::vec(any_step(), 0..if cfg!(miri) { 20 } else { 200 }),
        buffer in (40usize..200).prop_map(|units| units * 16),
        mean in 1u32..2000,
        below in 1usize..5000,
    ) {
        let mut memory = Box::new_uninit_slice(8 << 20);
        let mut run = |has_sampler: bool, has_logger: bool, has_own: bool| {
            // The same memory, so that addresses are the same.
            let options = ClientArenaOptions { grain: Some(if cfg!(miri) { 64 << 10 } else { 4096 }), event_hook: None };
            let arena = ClientArena::create(&mut memory, options).unwrap();
            let pool = FlipPool::create(&arena, buffer, SymmetricFence);
            let (events, is_on, is_off) = (Events::default(), Cell::new(false), Cell::new(false));
            let sampling = Sampling::off(7);
            sampling.set_mean(Mean::new(mean).filter(|_| has_sampler));
            let samples = RefCell::new(Vec::new());
            let own = RefCell::new(Listener::new(if has_own { Draws::Below { below, seed: 3 } } else { Draws::Never }));
            let sampler = PointSampler::new(&sampling, |object| samples.borrow_mut().push(object));
            let logger = PointLogger::new(|| if has_logger { is_on.get() } else { is_off.get() }, &events);
            let control = ControlPair::new(ControlPair::new(sampler, logger), Shared(&own));
            live(&pool, control, &is_on, &steps);
            Seen { samples: samples.into_inner(), stops: own.into_inner().stops(), events: events.take() }
        };
        let all = run(true, true, true);
        prop_assert_eq!(&all.samples, &run(true, false, false).samples);
        prop_assert_eq!(&all.events, &run(false, true, false).events);
        prop_assert_eq!(&all.stops, &run(false, false, true).stops);
    }

    /// (design/telemetry.md `.log`)
    #[test]
    fn a_store_reports_what_goes_through_it_while_its_log_is_on(
        steps in prop::collection::vec((any::<bool>(), 1usize..500, 0usize..5), 0..if cfg!(miri) { 20 } else { 200 }),
    ) {
        with_arena(|arena| {
            let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
            let (events, is_on) = (Events::default(), Cell::new(false));
            let store = LoggedStore::new(&pool, &pool, || is_on.get(), &events);
            let (id, mut live, mut expected) = (pool.header().id(), Vec::<(NonNull<u8>, Layout)>::new(), Vec::new());
            for (on, size, align) in steps {
                is_on.set(on);
                let layout = Layout::from_size_align(size, 1 << align).unwrap();
                if size % 3 == 0 && !live.is_empty() {
                    let (freed, layout) = live.swap_remove(size % live.len());
                    let (object, size, align) = (Addr::of(freed.as_ptr()), layout.size(), layout.align());
                    expected.extend(on.then_some(Event::Free { pool: id, object, size, align }));
                    // SAFETY: allocated in this store with this layout, freed once, and not used any more.
                    unsafe { store.free(freed, layout) };
                } else {
                    let allocated = store.alloc(layout).unwrap();
                    let (object, align) = (Addr::of(allocated.as_ptr()), layout.align());
                    expected.extend(on.then_some(Event::Alloc { pool: id, object, size, align, type_name: None }));
                    live.push((allocated, layout));
                }
            }
            assert_eq!(events.take(), expected);
            is_on.set(false);
            for (object, layout) in live {
                // SAFETY: allocated in this store with this layout, freed once, and not used any more.
                unsafe { store.free(object, layout) };
            }
            assert_eq!((pool.sizes().free, events.take()), (pool.sizes().total, vec![]));
        });
    }
}

/// Frames are reported with the address that they begin at and the bytes of their objects.
#[test]
fn a_point_reports_its_frames() {
    with_arena(|arena| {
        let pool = Snc::create(arena, SncOptions { extend_by: 4096, ..SncOptions::default() }).unwrap();
        let (events, is_on) = (Events::default(), Cell::new(true));
        let logger = PointLogger::new(|| is_on.get(), &events);
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, logger).unwrap();
        let (id, buffer) = (pool.header().id(), point.buffer().id());
        let framed = |events: Vec<Event>| -> Vec<Event> {
            let is_frame = |event: &Event| matches!(event, Event::PushFrame { .. } | Event::PopFrame { .. });
            events.into_iter().filter(is_frame).collect()
        };
        let mut first = Addr::ZERO;
        // The second frame takes more than a block.
        point.scope(|outer| {
            first = Addr::of(outer.alloc([0_u64; 4]).unwrap());
            outer.scope(|inner| _ = inner.slice(1000, |_| [0_u64; 4]).unwrap());
            outer.scope(|inner| _ = inner.alloc([0_u64; 2]).unwrap());
        });
        let inside = first.checked_add(32).unwrap();
        let (push, pop) = (
            |init| Event::PushFrame { pool: id, buffer, init },
            |init, size| Event::PopFrame { pool: id, buffer, init, size },
        );
        let expected = [
            push(Addr::ZERO),
            push(inside),
            pop(inside, 32_000),
            push(inside),
            pop(inside, 16),
            pop(Addr::ZERO, 32),
        ];
        assert_eq!(framed(events.take()), expected);
        is_on.set(false);
        point.tripper().trip();
        point.scope(|frame| _ = frame.alloc(1_u64).unwrap());
        events.take();
        point.scope(|frame| _ = frame.alloc(1_u64).unwrap());
        assert_eq!(events.take(), []);
    });
}

#[test]
fn reports_have_sites_if_they_are_to() {
    with_arena(|arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let events = Events::default();
        let logger = PointLogger::new(|| true, &events).with_sites();
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, logger).unwrap();
        point.alloc(1_u64).unwrap();
        let store = LoggedStore::new(&pool, &pool, || true, &events).with_sites();
        drop(PoolBox::new_in(1_u64, &store).unwrap());
        let is_walked = cfg!(all(target_os = "linux", not(miri)));
        let sites = events.sites.lock().unwrap();
        assert_eq!((sites.len(), sites.iter().all(|site| (*site != Site::UNKNOWN) == is_walked)), (3, true));
    });
}

#[test]
fn a_hook_or_a_switch_that_unwinds_in_a_store_takes_nothing_away() {
    with_arena(|arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let (events, switch_unwinds) = (Events::default(), AtomicBool::new(false));
        let is_on = || {
            if switch_unwinds.swap(false, Ordering::Relaxed) {
                resume_unwind(Box::new("on purpose"));
            }
            true
        };
        let store = LoggedStore::new(&pool, &pool, is_on, &events);
        let layout = Layout::new::<[u64; 4]>();
        for flag in [&events.unwinds, &switch_unwinds] {
            let unwinds = |step: &dyn Fn()| {
                flag.store(true, Ordering::Relaxed);
                catch_unwind(AssertUnwindSafe(step)).is_err()
            };
            assert!(unwinds(&|| _ = store.alloc(layout)));
            assert_eq!(pool.sizes().free, pool.sizes().total);
            let object = store.alloc(layout).unwrap();
            // SAFETY: allocated in this store with this layout, freed once, and not used any more.
            assert!(unwinds(&|| unsafe { store.free(object, layout) }));
            assert_eq!(pool.sizes().free, pool.sizes().total);
        }
    });
}

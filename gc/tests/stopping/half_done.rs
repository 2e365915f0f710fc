//! What unwinds in the middle of a collection or of a transform ends the process (design/gc.md `.collect.whole`,
//! design/gc-transforms.md `.whole`).

use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::{catch_unwind, resume_unwind};
use std::process::Command;

use crate::common::{Slots, TestHeap, Yield, make, point, pool, with_heap};
use tripoint_core::{ClientArena, ClientArenaOptions, Event, EventHook, SymmetricFence};
use tripoint_gc::{
    Heap, HeapOptions, Link, Moved, Plain, Scan, SweptOptions, Tag, Transform, TypedObjects, object_types,
};

const ALL: Duration = Duration::MAX;

/// In the environment of a process that is to end.
const CHILD: &str = "TRIPOINT_HALF_DONE";

object_types! {
    struct Holder<'g> {
        to: Link<'g, Named<'g>>,
    }

    struct Named<'g> {
        name: Plain<&'static str>,
        to: Link<'g, Holder<'g>>,
    }

    struct Numbers<'g> {
        numbers: [usize; 2],
        to: Link<'g, Holder<'g>>,
    }
}

/// Unwinds once, at an event of tracts, if that is in a collection.
#[derive(Default)]
struct Unwinding {
    is_armed: AtomicBool,
    is_in_collection: AtomicBool,
}

impl EventHook for Unwinding {
    fn event(&self, event: Event) {
        match event {
            Event::BeginCollection { .. } => self.is_in_collection.store(true, Ordering::Relaxed),
            Event::EndCollection { .. } => self.is_in_collection.store(false, Ordering::Relaxed),
            Event::Extend { .. } | Event::Retract { .. }
                if self.is_in_collection.load(Ordering::Relaxed)
                    && self.is_armed.swap(false, Ordering::Relaxed) =>
            {
                resume_unwind(Box::new("on purpose"))
            }
            _ => {}
        }
    }
}

/// Runs the test `name` once more, in a process of its own, and asserts that it ends because of what unwinds.
fn assert_ends(name: &str, middle: &str) {
    let program = std::env::current_exe().unwrap();
    let child = Command::new(program).args([name, "--exact", "--nocapture"]).env(CHILD, "").output().unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.code(), None, "it ends by a signal: {said}");
    assert!(said.contains(middle), "{said}");
}

/// In a process that is to end: runs `test` with a heap whose hook unwinds when it is armed. Otherwise starts that
/// process.
fn ends(name: &str, test: impl FnOnce(&TestHeap<'_>, &Unwinding)) {
    if std::env::var_os(CHILD).is_none() {
        return assert_ends(name, "in the middle of a collection");
    }
    let hook = Unwinding::default();
    let mut memory = Box::new_uninit_slice(256 << 10);
    let options = ClientArenaOptions { grain: Some(1 << 10), event_hook: Some(&hook) };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    let heap = Heap::create(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }).unwrap();
    test(&heap, &hook);
}

fn unwinds(hook: &Unwinding, collect: impl FnOnce()) {
    hook.is_armed.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(collect)).is_err());
}

/// Without `unsafe`: if the heap went on, the second collection would free an object that is reachable, and its name
/// would be read from another.
#[test]
#[cfg_attr(any(miri, not(unix)), ignore = "starts a process, and looks at its signal")]
fn a_sweep_that_unwinds_ends_the_process() {
    ends("half_done::a_sweep_that_unwinds_ends_the_process", |heap, hook| {
        let objects = TypedObjects::create(heap, SweptOptions { segment_size: 4 << 10 }).unwrap();
        let mut mutator = objects.register().unwrap();
        let root = mutator.enter(|inside| {
            (0..200).for_each(|_| _ = inside.text("a text that is dead soon, in a segment of such").unwrap());
            objects.root(inside, inside.alloc(Holder { to: Link::default() }).unwrap()).unwrap()
        });
        unwinds(hook, || _ = mutator.collect(ALL));
        mutator.enter(|inside| {
            let named = Named { name: Plain("a name"), to: Link::default() };
            root.get(inside).unwrap().to.set(inside, inside.alloc(named).unwrap());
        });
        mutator.collect(ALL).unwrap();
        mutator = objects.register().unwrap();
        mutator.enter(|inside| {
            let numbers = || Numbers { numbers: [8, 1], to: Link::default() };
            while let Ok(made) = inside.alloc(numbers()) {
                assert_eq!((made.numbers, made.to.get().is_none()), ([8, 1], true));
            }
            let named = root.get(inside).unwrap().to.get().unwrap();
            assert!(named.to.get().is_none());
            assert_eq!(named.name.0, "a name");
        });
    });
}

#[test]
#[cfg_attr(any(miri, not(unix)), ignore = "starts a process, and looks at its signal")]
fn a_move_that_unwinds_ends_the_process() {
    ends("half_done::a_move_that_unwinds_ends_the_process", |heap, hook| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        slots.set(0, make(&mut point, 1, &[]).unwrap());
        point.empty();
        unwinds(hook, || _ = mutator.collect(ALL));
    });
}

/// How many times [`unwind_at_zero`] may still be called.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// A root function that fixes a slot, and unwinds when there are no calls left.
///
/// # Safety
/// - `data` leads to a slot.
unsafe fn unwind_at_zero(data: *mut (), scan: &mut Scan<'_>) {
    // SAFETY: the caller promises a slot.
    scan.fix(unsafe { &mut *data.cast::<*mut u8>() });
    if CALLS.fetch_sub(1, Ordering::Relaxed) == 0 {
        resume_unwind(Box::new("on purpose"));
    }
}

/// While a transform only looks, it may unwind, and nothing was changed. When it replaces references, the process ends.
#[test]
#[cfg_attr(any(miri, not(unix)), ignore = "starts a process, and looks at its signal")]
fn a_transform_that_unwinds_ends_the_process() {
    let name = "half_done::a_transform_that_unwinds_ends_the_process";
    let is_child = std::env::var_os(CHILD).is_some();
    if !is_child {
        assert_ends(name, "in the middle of a transform");
    }
    with_heap(64 << 10, |heap| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_function(unwind_at_zero, slots.base().as_ptr().cast()) }.unwrap();
        let [old, new] = [1, 2].map(|name| NonNull::new(make(&mut point, name, &[]).unwrap()).unwrap());
        slots.set(0, old.as_ptr());
        let mut transform = Transform::create(heap, 1).unwrap();
        // SAFETY: both nodes were just made, and each may be in the place of the other.
        unsafe { transform.add_oldnew(old, new) }.unwrap();
        CALLS.store(usize::from(is_child), Ordering::Relaxed);
        let mut stopped = mutator.stop(ALL).unwrap();
        let applied = catch_unwind(AssertUnwindSafe(|| transform.apply(&mut stopped)));
        assert_eq!((applied.is_err(), slots.get(0)), (true, old.as_ptr()));
        CALLS.store(usize::MAX, Ordering::Relaxed);
        assert_eq!((transform.apply(&mut stopped), slots.get(0)), (Ok(1), new.as_ptr()));
    });
}

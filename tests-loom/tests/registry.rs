//! The list of descriptors against walks of it, and owners against each other
//! (design/core.md `.registry`).
//!
//! Bound: none with two threads, three preemptions with three.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::alloc::Layout;
use core::ptr::{self, NonNull};
use std::sync::Arc;

use tests_loom::{UnsafeCell, model, model_unbounded, thread};
use tripoint_core::internal::{AtomicPtr, Ordering, Registry, RegistryNode};

/// A descriptor: what the list uses, and what its owner keeps.
#[repr(C)]
struct Descriptor {
    node: RegistryNode,
    kept: UnsafeCell<u32>,
    /// For lists of this file's own.
    next: AtomicPtr<Descriptor>,
}

impl Descriptor {
    fn new() -> Self {
        let node = RegistryNode::new(Layout::new::<Self>());
        let descriptor = Self { node, kept: UnsafeCell::new(0), next: AtomicPtr::new(ptr::null_mut()) };
        descriptor.write();
        descriptor
    }

    /// Used by the owner alone; the scheduler reports any other use.
    fn write(&self) {
        // SAFETY: the owner's.
        self.kept.with_mut(|kept| unsafe { *kept += 1 });
    }

    fn read(&self) -> u32 {
        // SAFETY: no thread writes it meanwhile; the scheduler reports it if one does.
        self.kept.with(|kept| unsafe { *kept })
    }
}

trait List: Send + Sync + 'static {
    fn new() -> Self;
    fn add(&self, descriptor: &Descriptor);
    fn walk(&self) -> Vec<NonNull<Descriptor>>;
}

impl List for Registry {
    fn new() -> Self {
        Self::new()
    }

    fn add(&self, descriptor: &Descriptor) {
        // SAFETY: whole, pushed once, and as long-lived as the list; these
        // descriptors are not an allocation point's, and no pool has the list.
        unsafe { self.push(NonNull::from(descriptor).cast()) };
    }

    fn walk(&self) -> Vec<NonNull<Descriptor>> {
        self.iter().map(NonNull::cast).collect()
    }
}

/// A list that is pushed to by a load and a store.
struct LosesPushes(AtomicPtr<Descriptor>);

impl List for LosesPushes {
    fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    fn add(&self, descriptor: &Descriptor) {
        descriptor.next.store(self.0.load(Ordering::Acquire), Ordering::Relaxed);
        self.0.store(ptr::from_ref(descriptor).cast_mut(), Ordering::Release);
    }

    fn walk(&self) -> Vec<NonNull<Descriptor>> {
        let next = |pointer: &AtomicPtr<Descriptor>| NonNull::new(pointer.load(Ordering::Acquire));
        // SAFETY: descriptors live as long as the list.
        core::iter::successors(next(&self.0), |found| next(&unsafe { found.as_ref() }.next)).collect()
    }
}

/// The list is dropped first, since it points to the descriptors.
struct Shared<L> {
    list: L,
    descriptors: [Descriptor; 3],
}

// SAFETY: what is not atomic is its owner's, which is what is modelled.
unsafe impl<L: List> Send for Shared<L> {}
// SAFETY: shared, what is not atomic is still its owner's, which is what is modelled.
unsafe impl<L: List> Sync for Shared<L> {}

impl<L: List> Shared<L> {
    /// With one descriptor in the list.
    fn new() -> Arc<Self> {
        let shared = Arc::new(Self { list: L::new(), descriptors: [(); 3].map(|()| Descriptor::new()) });
        shared.list.add(&shared.descriptors[0]);
        shared
    }

    /// Walks, and reads every descriptor found, as far as it is whole. Returns
    /// which were found.
    fn walk(&self) -> [bool; 3] {
        let mut found = [false; 3];
        for descriptor in self.list.walk() {
            let index = self.descriptors.iter().position(|it| ptr::eq(it, descriptor.as_ptr())).unwrap();
            assert!(!found[index], "a descriptor was found twice");
            assert_eq!(self.descriptors[index].read(), 1, "Causality violation: a descriptor is not whole");
            found[index] = true;
        }
        found
    }
}

fn one_pushes(push: fn(&Shared<Registry>)) {
    model_unbounded(move || {
        let shared = Shared::<Registry>::new();
        let pusher = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || push(&shared))
        };
        assert!(shared.walk()[0], "a descriptor was lost");
        pusher.join().unwrap();
        assert!(shared.walk()[1], "a descriptor was lost");
    });
}

#[test]
fn walks_find_whole_descriptors() {
    one_pushes(|shared| shared.list.add(&shared.descriptors[1]));
}

/// The twin: its owner still writes after it was pushed.
#[test]
#[should_panic(expected = "Causality violation: ")]
fn pushed_before_it_is_whole_it_is_found_so() {
    one_pushes(|shared| {
        shared.list.add(&shared.descriptors[1]);
        shared.descriptors[1].write();
    });
}

fn two_push<L: List>() {
    model(|| {
        let shared = Shared::<L>::new();
        let pushers = [1, 2].map(|index| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.list.add(&shared.descriptors[index]))
        });
        assert!(shared.walk()[0], "a descriptor was lost");
        for pusher in pushers {
            pusher.join().unwrap();
        }
        assert_eq!(shared.walk(), [true; 3], "a descriptor was lost");
    });
}

#[test]
fn of_two_pushed_none_is_lost() {
    two_push::<Registry>();
}

/// The twin: a push by load and store.
#[test]
#[should_panic(expected = "a descriptor was lost")]
fn without_compare_exchange_descriptors_are_lost() {
    two_push::<LosesPushes>();
}

fn release(list: &Registry, descriptor: &Descriptor) {
    // SAFETY: each model releases what it owns, or is a twin that must fail.
    unsafe { list.release(NonNull::from(descriptor).cast()) };
}

fn claim(list: &Registry) -> Option<NonNull<Descriptor>> {
    list.claim(Layout::new::<Descriptor>()).map(NonNull::cast)
}

/// An owner writes and leaves, while two others look for a descriptor to claim. What
/// the owner keeps belongs to one thread at a time.
fn owners(leave: fn(&Registry, &Descriptor), claim: fn(&Registry) -> Option<NonNull<Descriptor>>) {
    model(move || {
        let shared = Shared::<Registry>::new();
        let claimers = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                if let Some(descriptor) = claim(&shared.list) {
                    // SAFETY: descriptors live as long as the list.
                    let descriptor = unsafe { descriptor.as_ref() };
                    descriptor.write();
                    release(&shared.list, descriptor);
                }
            })
        });
        leave(&shared.list, &shared.descriptors[0]);
        for claimer in claimers {
            claimer.join().unwrap();
        }
    });
}

fn write_and_leave(list: &Registry, descriptor: &Descriptor) {
    descriptor.write();
    release(list, descriptor);
}

#[test]
fn a_descriptor_has_one_owner() {
    owners(write_and_leave, claim);
}

/// The twin: every thread that sees that the descriptor is free takes it.
#[test]
#[should_panic(expected = "Causality violation")]
fn claimed_by_looking_it_has_two() {
    owners(write_and_leave, |list| {
        // SAFETY: descriptors live as long as the list.
        list.walk().into_iter().find(|found| !unsafe { found.as_ref() }.node.is_claimed())
    });
}

/// The twin: the owner leaves before it is done.
#[test]
#[should_panic(expected = "Causality violation")]
fn released_early_it_has_two() {
    owners(
        |list, descriptor| {
            release(list, descriptor);
            descriptor.write();
        },
        claim,
    );
}

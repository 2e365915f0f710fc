//! Pointers that own objects.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use std::panic::catch_unwind;

use tripoint_core::{ClientArena, Error, PoolBox, PoolClass, PoolRc};

use crate::whole::Whole;
use crate::{GRAIN, with_pool};

/// Counts its drops.
#[derive(Debug)]
struct Loud<'a>(&'a Cell<usize>);

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

impl fmt::Display for Loud<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("loud")
    }
}

#[test]
fn a_box_drops_its_object_once_and_frees_its_memory() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let mut boxed = PoolBox::new_in((Loud(&drops), 7), pool).unwrap();
        boxed.1 += 1;
        assert_eq!((boxed.1, drops.get(), pool.header().total()), (8, 0, GRAIN));
        assert!(core::ptr::eq(PoolBox::store(&boxed), pool));
        drop(boxed);
        assert_eq!((drops.get(), pool.header().total()), (1, 0));
    });
}

#[test]
fn what_leaves_a_box_is_not_dropped_by_it() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let value = PoolBox::into_inner(PoolBox::new_in(Loud(&drops), pool).unwrap());
        assert_eq!((drops.get(), pool.header().total()), (0, 0));
        drop(value);
        let boxed = PoolBox::new_in((3, Loud(&drops)), pool).unwrap();
        let object = PoolBox::into_raw(boxed);
        assert_eq!((drops.get(), pool.header().total()), (1, GRAIN));
        // SAFETY: from a box of this pool, which gave it up.
        let boxed = unsafe { PoolBox::from_raw_in(object, pool) };
        let leaked = PoolBox::leak(boxed);
        leaked.0 += 1;
        assert_eq!((leaked.0, drops.get(), pool.header().total()), (4, 1, GRAIN));
    });
}

#[test]
fn a_box_of_nothing_takes_no_memory() {
    struct Nothing;
    thread_local!(static DROPS: Cell<usize> = const { Cell::new(0) });
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPS.set(DROPS.get() + 1);
        }
    }
    with_pool(|pool| {
        let boxed = PoolBox::new_in(Nothing, pool).unwrap();
        assert_eq!((pool.header().total(), DROPS.get()), (0, 0));
        drop(boxed);
        assert_eq!((pool.header().total(), DROPS.get()), (0, 1));
        drop(PoolBox::into_inner(PoolBox::new_in(Nothing, pool).unwrap()));
        assert_eq!((pool.header().total(), DROPS.get()), (0, 2));
    });
}

#[test]
fn a_box_frees_also_when_the_drop_of_its_object_panics() {
    struct Failing;
    impl Drop for Failing {
        fn drop(&mut self) {
            panic!("told to");
        }
    }
    with_pool(|pool| {
        let boxed = PoolBox::new_in((Failing, 1_u64), pool).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(boxed))).is_err());
        assert_eq!(pool.header().total(), 0);
    });
}

/// A slice takes memory once, for all of its objects, and drops each of them once.
#[test]
fn a_slice_owns_its_objects() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let mut objects = PoolBox::slice_in(5, |index| (index, Loud(&drops)), pool).unwrap();
        assert_eq!((objects.len(), pool.header().total()), (5, GRAIN));
        objects[4].0 += 3;
        assert!(objects.iter().map(|object| object.0).eq([0, 1, 2, 3, 7]));
        drop(objects);
        assert_eq!((drops.get(), pool.header().total()), (5, 0));

        drop(PoolBox::slice_in(3, |_| Loud(&drops), pool).unwrap());
        drop(PoolBox::slice_in(0, |_| Loud(&drops), pool).unwrap());
        assert_eq!((drops.get(), pool.header().total()), (8, 0));
        let units = PoolBox::slice_in(1000, |_| (), pool).map(|units| units.len());
        assert_eq!((units, pool.header().total()), (Ok(1000), 0), "they have no size");
    });
}

#[test]
fn a_slice_that_is_not_finished_leaves_nothing() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let make = |index: usize| {
            assert!(index < 3, "told to");
            Loud(&drops)
        };
        assert!(catch_unwind(AssertUnwindSafe(|| PoolBox::slice_in(5, make, pool).map(drop))).is_err());
        assert_eq!((drops.get(), pool.header().total()), (3, 0));

        let never = |_| -> u64 { unreachable!("there is no memory") };
        assert_eq!(PoolBox::slice_in(1 << 20, never, pool).map(drop), Err(Error::Limit));
        let error = PoolBox::slice_in(usize::MAX / 8, never, pool).map(drop);
        assert!(matches!(error, Err(Error::Parameter(_))), "{error:?}");
    });
}

/// A box of a trait object frees with the layout of the object in it.
#[test]
fn an_unsized_object_is_freed_whole() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let object: NonNull<(Loud<'_>, [u8; 3 * GRAIN])> =
            PoolBox::into_raw(PoolBox::new_in((Loud(&drops), [0; 3 * GRAIN]), pool).unwrap());
        let object: NonNull<dyn fmt::Debug> = object;
        assert_eq!(pool.header().total(), 4 * GRAIN);
        // SAFETY: from a box of this pool, which gave it up; its layout is unchanged.
        drop(unsafe { PoolBox::from_raw_in(object, pool) });
        assert_eq!((drops.get(), pool.header().total()), (1, 0));
    });
}

#[test]
fn values_that_are_refused_are_dropped() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let large = (Loud(&drops), [0_u8; 128 << 10]);
        assert_eq!(PoolBox::new_in(large, pool).map(drop), Err(Error::Limit));
        let large = (Loud(&drops), [0_u8; 128 << 10]);
        assert_eq!(PoolRc::new_in(large, pool).map(drop), Err(Error::Limit));
        assert_eq!((drops.get(), pool.header().total()), (2, 0));
    });
}

#[test]
fn the_last_pointer_drops_and_frees() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let first = PoolRc::new_in((Loud(&drops), 5), pool).unwrap();
        assert!(core::ptr::eq(PoolRc::store(&first), pool));
        let second = first.clone();
        assert!(PoolRc::ptr_eq(&first, &second));
        assert_eq!((second.1, PoolRc::count(&first), PoolRc::count(&second)), (5, 2, 2));
        drop(first);
        assert_eq!((drops.get(), PoolRc::count(&second), pool.header().total()), (0, 1, GRAIN));
        drop(second);
        assert_eq!((drops.get(), pool.header().total()), (1, 0));
    });
}

#[test]
fn only_one_pointer_gives_its_object_out() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let mut first = PoolRc::new_in((Loud(&drops), 5), pool).unwrap();
        PoolRc::get_mut(&mut first).unwrap().1 = 6;
        let second = first.clone();
        assert!(PoolRc::get_mut(&mut first).is_none());
        let first = PoolRc::try_unwrap(first).unwrap_err();
        assert!(!PoolRc::ptr_eq(&first, &PoolRc::new_in((Loud(&drops), 6), pool).unwrap()));
        assert_eq!(drops.get(), 1, "the other object is gone");
        drop(second);
        let Ok((loud, value)) = PoolRc::try_unwrap(first) else { panic!("it is the only one") };
        assert_eq!((value, drops.get(), pool.header().total()), (6, 1, 0));
        drop(loud);
        assert_eq!(drops.get(), 2);
    });
}

#[test]
fn a_counted_pointer_takes_a_word_beside_its_object() {
    type Rc<'a, T> = PoolRc<'a, T, Whole<&'a ClientArena<'a>>>;
    assert_eq!(Rc::<u64>::layout(), Layout::new::<(usize, u64)>());
    assert_eq!(Rc::<[usize; 5]>::layout(), Layout::new::<[usize; 6]>());
}

#[test]
fn pointers_show_their_objects() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let boxed = PoolBox::new_in(Loud(&drops), pool).unwrap();
        assert_eq!((format!("{boxed}"), format!("{boxed:?}")), ("loud".into(), format!("{:?}", *boxed)));
        let counted = PoolRc::new_in(Loud(&drops), pool).unwrap();
        assert_eq!(
            (format!("{counted}"), format!("{counted:?}")),
            ("loud".into(), format!("{:?}", *counted))
        );
        assert!(format!("{:?}", *boxed).contains("Loud"));
    });
}

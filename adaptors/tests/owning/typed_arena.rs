//! A typed arena beside a vector that holds the same objects.

use core::alloc::Layout;
use core::cell::{Cell, RefCell};
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use std::panic::catch_unwind;
use std::rc::Rc;

use proptest::prelude::*;
use tripoint_adaptors::{PoolAllocator, TypedArena};
use tripoint_core::{Error, PoolClass, Store};

use crate::with_pool;

const CASES: u32 = if cfg!(miri) { 2 } else { 256 };
const STEPS: usize = if cfg!(miri) { 10 } else { 60 };

/// How often objects were dropped, by their numbers.
#[derive(Default)]
struct Drops(RefCell<Vec<usize>>);

impl Drops {
    fn object(self: &Rc<Self>) -> Counted {
        let mut drops = self.0.borrow_mut();
        drops.push(0);
        Counted { number: drops.len() - 1, drops: Rc::clone(self), panics: false }
    }

    fn panicking(self: &Rc<Self>) -> Counted {
        let mut object = self.object();
        object.panics = true;
        object
    }

    /// Whether each of these was dropped once, and no other was.
    fn are(&self, dropped: impl IntoIterator<Item = usize>) {
        let mut expected = vec![0; self.0.borrow().len()];
        dropped.into_iter().for_each(|number| expected[number] += 1);
        assert_eq!(*self.0.borrow(), expected);
    }
}

/// An object that counts when it is dropped.
struct Counted {
    number: usize,
    drops: Rc<Drops>,
    panics: bool,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.0.borrow_mut()[self.number] += 1;
        assert!(!self.panics, "object {} panics", self.number);
    }
}

fn numbers<S: tripoint_core::Store>(arena: &mut TypedArena<Counted, S>) -> Vec<usize> {
    arena.iter_mut().map(|object| object.number).collect()
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc,
    /// An iterator with this many objects, which says that there are at least that many.
    Extend(usize, usize),
    Reserve(usize),
    Reset,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => Just(Step::Alloc),
        3 => (0..200_usize).prop_flat_map(|count| (Just(count), 0..=count)).prop_map(|(count, least)| Step::Extend(count, least)),
        1 => (0..100_usize, 0..300_usize).prop_map(|(count, least)| Step::Extend(count, least)),
        1 => (0..100_usize).prop_map(Step::Reserve),
        1 => Just(Step::Reset),
    ]
}

/// An iterator that may say anything of its length.
struct Claims<I>(I, usize);

impl<I: Iterator> Iterator for Claims<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.1, None)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) })]

    #[test]
    fn an_arena_has_what_a_vector_has(steps in prop::collection::vec(step(), 0..STEPS), is_moved_out: bool) {
        with_pool(4 << 20, |pool| {
            let drops = Rc::new(Drops::default());
            let mut arena = TypedArena::new_in(PoolAllocator::new(pool));
            let (mut live, mut dead): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
            for step in steps {
                match step {
                    Step::Alloc => live.push(arena.alloc(drops.object()).number),
                    Step::Extend(count, least) => {
                        let row = arena.alloc_extend(Claims((0..count).map(|_| drops.object()), least));
                        assert_eq!(row.len(), count);
                        live.extend(row.iter().map(|object| object.number));
                    }
                    Step::Reserve(count) => arena.reserve(count).unwrap(),
                    Step::Reset => {
                        arena.reset();
                        dead.append(&mut live);
                    }
                }
                assert_eq!(arena.len(), live.len());
                drops.are(dead.iter().copied());
            }
            assert_eq!(numbers(&mut arena), live);
            if is_moved_out {
                let objects = arena.into_vec();
                drops.are(dead.iter().copied());
                assert!(objects.iter().map(|object| object.number).eq(live.iter().copied()));
            } else {
                drop(arena);
            }
            drops.are(dead.into_iter().chain(live));
        });
    }
}

/// A tree whose nodes know each other is an object of an arena without `unsafe` code or lifetimes of pools.
struct Node<'a> {
    parent: Cell<Option<&'a Node<'a>>>,
    children: RefCell<Vec<&'a Node<'a>>>,
    name: String,
}

/// An arena in a struct, as libraries have it.
#[derive(Default)]
struct Document<'a> {
    nodes: TypedArena<Node<'a>>,
}

impl<'a> Document<'a> {
    fn node(&'a self, name: &str, parent: Option<&'a Node<'a>>) -> &'a Node<'a> {
        let (parent, children) = (Cell::new(parent), RefCell::default());
        let node = &*self.nodes.alloc(Node { parent, children, name: name.to_owned() });
        if let Some(parent) = node.parent.get() {
            parent.children.borrow_mut().push(node);
        }
        node
    }
}

/// (design/adaptors.md `.req.drop-check`)
#[test]
fn nodes_refer_to_each_other() {
    let document = Document::default();
    let root = document.node("root", None);
    for name in ["a", "b", "c"] {
        document.node("leaf", Some(document.node(name, Some(root))));
    }
    let names: Vec<_> = root.children.borrow().iter().map(|child| child.name.clone()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    for child in &*root.children.borrow() {
        assert_eq!(child.children.borrow()[0].parent.get().unwrap().name, child.name);
    }
    assert_eq!(document.nodes.len(), 7);
}

/// (design/adaptors.md `.req.refused`)
#[test]
fn a_refusal_is_an_error_and_changes_nothing() {
    with_pool(64 << 10, |pool| {
        let drops = Rc::new(Drops::default());
        let mut arena = TypedArena::new_in(PoolAllocator::new(pool));
        let error = loop {
            if let Err(error) = arena.try_alloc(drops.object()) {
                break error;
            }
        };
        assert_eq!(error, Error::Limit);
        let count = arena.len();
        assert!(count > 500, "{count} objects in 64 KiB");
        drops.are([count]);
        assert_eq!(numbers(&mut arena), Vec::from_iter(0..count));
        let too_many = arena.try_alloc_extend(Claims((0..9).map(|_| drops.object()), usize::MAX)).map(|_| ());
        assert!(matches!(too_many, Err(Error::Parameter(_))), "{too_many:?}");
        assert_eq!(arena.len(), count);
        // What came before the refusal stays.
        assert_eq!(arena.try_alloc_extend((0..100).map(|_| drops.object())).map(|_| ()), Err(Error::Limit));
        let mut some = TypedArena::new_in(PoolAllocator::new(pool));
        let endless =
            some.try_alloc_extend(Claims(core::iter::repeat_with(|| drops.object()), 0)).map(|_| ());
        assert_eq!(endless, Err(Error::Limit));
        let all = drops.0.borrow().len();
        assert_eq!(some.len() + count + 2, all, "one object was refused each time");
        assert_eq!(numbers(&mut some), Vec::from_iter(count + 1..all - 1));
    });
}

/// (design/adaptors.md `.req.panics`)
#[test]
fn an_iterator_that_panics_leaves_what_it_yielded() {
    with_pool(256 << 10, |pool| {
        for (before, count) in [(0, 3), (5, 3), (5, 100), (0, 0)] {
            let drops = Rc::new(Drops::default());
            let mut arena = TypedArena::new_in(PoolAllocator::new(pool));
            (0..before).for_each(|_| _ = arena.alloc(drops.object()));
            let objects = (0..=count).map(|index| {
                assert!(index < count, "no more objects");
                drops.object()
            });
            catch_unwind(AssertUnwindSafe(|| arena.alloc_extend(Claims(objects, 0)).len())).unwrap_err();
            assert_eq!(numbers(&mut arena), Vec::from_iter(0..before + count));
            arena.alloc(drops.object());
            drops.are([]);
            drop(arena);
            drops.are(0..=before + count);
        }
    });
}

#[test]
fn an_iterator_may_use_the_arena() {
    with_pool(1 << 20, |pool| {
        let drops = Rc::new(Drops::default());
        let mut arena = TypedArena::new_in(PoolAllocator::new(pool));
        arena.alloc(drops.object());
        for (count, least) in [(3, 0), (3, 3), (100, 0), (100, 100), (0, 0)] {
            let inner = RefCell::new(Vec::new());
            let row = arena.alloc_extend(Claims(
                (0..count).map(|index| {
                    inner.borrow_mut().push(arena.alloc(drops.object()).number);
                    if index % 10 == 1 {
                        let row = arena.alloc_extend((0..7).map(|_| drops.object()));
                        inner.borrow_mut().extend(row.iter().map(|object| object.number));
                    }
                    drops.object()
                }),
                least,
            ));
            let row: Vec<_> = row.iter().map(|object| object.number).collect();
            assert_eq!(row.len(), count);
            assert!(row.is_sorted());
            assert!(inner.borrow().iter().all(|number| !row.contains(number)));
        }
        drops.are([]);
        let mut all = numbers(&mut arena);
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(0..drops.0.borrow().len()), "each object is there once");
        arena.reset();
        drops.are(all);
    });
}

/// (design/adaptors.md `.req.panics`)
#[test]
fn an_object_that_panics_keeps_none_from_being_dropped() {
    with_pool(256 << 10, |pool| {
        let drops = Rc::new(Drops::default());
        let fill = |arena: &TypedArena<Counted, _>| {
            (0..200).for_each(|index| {
                _ = arena.alloc(if index == 20 { drops.panicking() } else { drops.object() })
            });
        };
        let mut arena = TypedArena::new_in(PoolAllocator::new(pool));
        fill(&arena);
        catch_unwind(AssertUnwindSafe(|| arena.reset())).unwrap_err();
        drops.are(0..200);
        assert!(arena.is_empty());
        fill(&arena);
        catch_unwind(AssertUnwindSafe(|| drop(arena))).unwrap_err();
        drops.are(0..400);
    });
}

thread_local! {
    static ZERO_SIZED: Cell<usize> = const { Cell::new(0) };
}

#[derive(Debug)]
struct ZeroSized;

impl Drop for ZeroSized {
    fn drop(&mut self) {
        ZERO_SIZED.set(ZERO_SIZED.get() + 1);
    }
}

#[test]
fn objects_of_size_zero_are_counted_and_dropped() {
    let mut arena = TypedArena::with_capacity(1000);
    arena.alloc(ZeroSized);
    assert_eq!(arena.alloc_extend((0..5).map(|_| ZeroSized)).len(), 5);
    arena.reserve(usize::MAX).unwrap();
    assert_eq!((arena.len(), arena.iter_mut().count(), arena.allocated_bytes()), (6, 6, 0));
    arena.reset();
    assert_eq!((arena.len(), ZERO_SIZED.get()), (0, 6));
    arena.alloc(ZeroSized);
    let objects = arena.into_vec();
    assert_eq!((objects.len(), ZERO_SIZED.get()), (1, 6));
    drop(objects);
    let arena = TypedArena::new();
    arena.alloc(ZeroSized);
    drop(arena);
    assert_eq!(ZERO_SIZED.get(), 8);
    #[repr(align(64))]
    struct Aligned;
    assert!(core::ptr::from_ref(TypedArena::new().alloc(Aligned)).is_aligned());
}

#[test]
fn objects_are_aligned() {
    #[repr(align(4096))]
    struct Page(u8);
    #[repr(align(64))]
    struct Line(u8);

    with_pool(1 << 20, |pool| {
        let store = PoolAllocator::new(pool);
        let (pages, lines) = (TypedArena::new_in(store), TypedArena::new_in(store));
        for byte in 0..20 {
            let page = pages.alloc(Page(byte));
            let line = lines.alloc(Line(byte));
            assert!(core::ptr::from_ref(page).is_aligned() && core::ptr::from_ref(line).is_aligned());
            assert_eq!((page.0, line.0), (byte, byte));
        }
        assert!(lines.alloc_extend((20..99).map(Line)).iter().map(|line| line.0).eq(20..99));
    });
}

#[test]
fn objects_may_be_larger_than_a_chunk() {
    const LARGE: usize = if cfg!(miri) { 3 << 10 } else { 3 << 20 };
    let test = || {
        with_pool(6 * LARGE, |pool| {
            let mut large = TypedArena::new_in(PoolAllocator::new(pool));
            for byte in 0..3_u8 {
                assert_eq!(large.alloc([byte; LARGE])[LARGE - 1], byte);
            }
            assert!(large.iter_mut().map(|object| object[0]).eq(0..3));
            assert!(large.allocated_bytes() < 4 * LARGE);
        });
    };
    // The objects pass over the stack first.
    std::thread::Builder::new().stack_size(32 * LARGE).spawn(test).unwrap().join().unwrap();
}

/// (design/adaptors.md `.req.small`)
#[test]
fn a_small_arena_takes_little() {
    assert_eq!(TypedArena::<[u64; 4]>::new().allocated_bytes(), 0);
    const COUNT: usize = if cfg!(miri) { 20 } else { 10_000 };
    with_pool(COUNT * 1200 + (64 << 10), |pool| {
        let arenas: Vec<_> = (0..COUNT).map(|_| TypedArena::new_in(PoolAllocator::new(pool))).collect();
        for (index, arena) in arenas.iter().enumerate() {
            (0..30).for_each(|_| _ = arena.alloc([index; 4]));
        }
        let sizes = pool.sizes();
        assert!(sizes.total - sizes.free <= COUNT * 1024, "{sizes:?}");
        assert!(
            arenas.into_iter().enumerate().all(|(index, arena)| arena.into_vec() == vec![[index; 4]; 30])
        );
    });
}

/// (design/adaptors.md `.req.rounds`)
#[test]
fn the_same_round_again_takes_no_memory() {
    with_pool(1 << 20, |pool| {
        let mut arena = TypedArena::new_in(PoolAllocator::new(pool));
        let mut taken = Vec::new();
        for _ in 0..4 {
            for index in 0..if cfg!(miri) { 100 } else { 1000 } {
                arena.alloc(index);
                if index % 25 == 0 {
                    arena.alloc_extend(0..index);
                }
            }
            taken.push((arena.allocated_bytes(), pool.sizes().total));
            arena.reset();
        }
        assert!(taken.windows(2).all(|two| two[0] == two[1]), "{taken:?}");
    });
}

/// Objects that need no drop leave nothing behind, wherever they lay.
#[test]
fn a_reset_leaves_no_object_of_any_chunk() {
    const MANY: usize = if cfg!(miri) { 300 } else { 3000 };
    with_pool(1 << 20, |pool| {
        let mut arena = TypedArena::new_in(PoolAllocator::new(pool));
        for count in [MANY, 0, 1, MANY, 200, MANY] {
            let first = arena.allocated_bytes();
            (0..count).for_each(|number| _ = arena.alloc([number; 3]));
            assert_eq!(arena.len(), count);
            assert!(arena.iter_mut().map(|object| object[2]).eq(0..count));
            assert!(first == 0 || arena.allocated_bytes() == first, "the first round took the most");
            arena.reset();
            assert!(arena.is_empty() && arena.iter_mut().next().is_none());
        }
        arena.alloc([7; 3]);
        assert_eq!(arena.into_vec(), [[7; 3]]);
    });
}

#[test]
fn an_arena_may_be_sent() {
    let mut arena = TypedArena::new();
    arena.alloc(String::from("here"));
    let mut arena = std::thread::spawn(move || {
        arena.alloc(String::from("there"));
        arena.iter_mut().for_each(|text| text.push('!'));
        arena
    })
    .join()
    .unwrap();
    assert!(arena.iter_mut().map(|text| text.as_str()).eq(["here!", "there!"]));
}

/// A store whose calls allocate in the arena that calls it, as a hook may.
struct CallsBack<'s, S: Store> {
    store: PoolAllocator<'s, S>,
    arena: Cell<Option<&'s TypedArena<u64, &'s CallsBack<'s, S>>>>,
    left: Cell<u64>,
}

// SAFETY: each call is that of the store.
unsafe impl<S: Store> Store for &CallsBack<'_, S> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, Error> {
        let object = self.store.alloc(layout)?;
        if let (Some(arena), left @ 1..) = (self.arena.get(), self.left.get()) {
            self.left.set(left - 1);
            arena.try_alloc(1 << 40 | left)?;
        }
        Ok(object)
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller frees an object of this store, with its layout, once.
        unsafe { Store::free(&self.store, object, layout) };
    }
}

#[test]
fn a_store_may_allocate_in_the_arena_that_asks_it() {
    with_pool(1 << 20, |pool| {
        for first in [0, 200] {
            let hook =
                CallsBack { store: PoolAllocator::new(pool), arena: Cell::new(None), left: Cell::new(3) };
            let hook: *const _ = &hook;
            // SAFETY: the hook outlives the arena, which is dropped below, and is not moved.
            let hook: &CallsBack<'_, _> = unsafe { &*hook };
            let arena: *mut TypedArena<u64, _> = Box::into_raw(Box::new(TypedArena::new_in(hook)));
            // SAFETY: the arena lives until it is freed below.
            let shared = unsafe { &*arena };
            (0..first).for_each(|number| *shared.alloc(number) += 0);
            hook.arena.set(Some(shared));
            let mut objects: Vec<_> = (first..1000).map(|number| shared.alloc(number)).collect();
            let row = shared.alloc_extend(2000..2300);
            assert!(row.iter().copied().eq(2000..2300));
            assert!(objects.iter().map(|object| **object).eq(first..1000));
            objects.iter_mut().for_each(|object| **object += 1);
            assert_eq!((shared.len(), hook.left.get()), (1303, 0));
            hook.arena.set(None);
            // SAFETY: from a box above, and no longer shared.
            drop(unsafe { Box::from_raw(arena) });
        }
    });
}

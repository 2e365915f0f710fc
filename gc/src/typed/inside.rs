//! Inside a heap: allocation, while no collection can begin.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, needs_drop};
use core::ptr::{self, NonNull};

use tripoint_ap::AllocationPoint;
use tripoint_core::{Addr, Arena, BarrierPair, Error, PoolId, Result, SymmetricFence, aver};

use crate::classes::class::{Kind, Swept};
use crate::heaps::heap::Heap;
use crate::locations::dependency::LocationDependency;
use crate::segments::barrier;
use crate::typed::format::{FixedInside, FixedLeafInside, MovedInside, MovedLeafInside, Typed, WeakInside};
use crate::typed::home::Home;
use crate::typed::reference::{Brand, Gc};
use crate::typed::referent::{Shape, items_at, unwritten};
use crate::typed::roots::Roots;
use crate::typed::table::{Header, Table, WORD, value_at};
use crate::typed::trace::Trace;

const TOO_LARGE: Error = Error::Parameter("the items together would take more than isize::MAX bytes");

pub(crate) type Point<'p, 'h, A, B, K> = AllocationPoint<'p, Swept<'h, A, B, Typed, K>>;

/// The allocation points of a mutator, one for each pool.
pub(crate) struct Points<'p, 'h, A: Arena + Clone, B: BarrierPair> {
    pub(crate) moved: Point<'p, 'h, A, B, MovedInside>,
    pub(crate) moved_leaves: Point<'p, 'h, A, B, MovedLeafInside>,
    pub(crate) fixed: Point<'p, 'h, A, B, FixedInside>,
    pub(crate) fixed_leaves: Point<'p, 'h, A, B, FixedLeafInside>,
    pub(crate) weak: Point<'p, 'h, A, B, WeakInside>,
    /// The pools of objects with references.
    pub(crate) with_references: [PoolId; 3],
}

impl<A: Arena + Clone, B: BarrierPair> Points<'_, '_, A, B> {
    /// These points once more.
    ///
    /// # Safety
    /// - That of [`AllocationPoint::alias`], for each of them.
    #[inline(always)]
    const unsafe fn alias(&self) -> ManuallyDrop<Self> {
        let Self { moved, moved_leaves, fixed, fixed_leaves, weak, with_references } = self;
        // SAFETY: the caller promises that one of the points and its aliases is used at a time, on their thread, none after the
        // points were dropped, and that only they are dropped. Until they are in the result, these are not used.
        let (moved, moved_leaves, fixed, fixed_leaves, weak) = unsafe {
            (moved.alias(), moved_leaves.alias(), fixed.alias(), fixed_leaves.alias(), weak.alias())
        };
        ManuallyDrop::new(Self {
            moved: ManuallyDrop::into_inner(moved),
            moved_leaves: ManuallyDrop::into_inner(moved_leaves),
            fixed: ManuallyDrop::into_inner(fixed),
            fixed_leaves: ManuallyDrop::into_inner(fixed_leaves),
            weak: ManuallyDrop::into_inner(weak),
            with_references: *with_references,
        })
    }
}

/// The inside of a heap: what [`TypedMutator::enter`](crate::TypedMutator::enter) lends to its closure.
///
/// As long as the closure runs, no collection begins. So references need no roots, and an object may be used as a `&T`.
/// Stops wait meanwhile: a closure that runs for long should call [`Inside::wants_stop`] now and then, and return if it
/// is true.
pub struct Inside<'g, A: Arena + Clone, B: BarrierPair = SymmetricFence> {
    /// Copies of the mutator's points, which never change. So a loop that allocates keeps the address of a descriptor
    /// in a register (design/gc-typed.md `.typed.copies`).
    points: ManuallyDrop<Points<'g, 'g, A, B>>,
    heap: &'g Heap<'g, A, B>,
    roots: &'g Roots,
    brand: Brand<'g>,
    /// It belongs to one thread.
    is_here: PhantomData<*const ()>,
}

impl<'g, A: Arena + Clone, B: BarrierPair> Inside<'g, A, B> {
    /// The inside of a heap for a mutator with these points.
    ///
    /// # Safety
    /// - The mutator is running and does not give way as long as this value is used, and the lifetime `'g` is that of
    ///   the closure that uses it, of which the closure knows nothing.
    /// - `points` are the mutator's, and only this value uses them meanwhile.
    #[inline(always)]
    pub(crate) const unsafe fn begin(
        points: NonNull<Points<'g, 'g, A, B>>,
        heap: &'g Heap<'g, A, B>,
        roots: &'g Roots,
    ) -> Self {
        // SAFETY: the caller promises that these points are there.
        let points = unsafe { points.as_ref() };
        // SAFETY: the caller promises that only this value uses the points meanwhile: it stays on the thread that made it, is gone
        // before the mutator drops its points, and never drops these.
        let points = unsafe { points.alias() };
        Self { points, heap, roots, brand: PhantomData, is_here: PhantomData }
    }

    /// Whether a thread waits until this mutator is outside, to stop the heap: one load.
    #[inline(always)]
    #[must_use]
    pub fn wants_stop(&self) -> bool {
        self.heap.wants_stop()
    }

    /// A reference was stored at `place`. Does nothing if that is in no object, for example in a value from which one is
    /// to be made.
    #[inline(always)]
    pub(crate) fn note_write(&self, place: Addr) {
        // SAFETY: the mutator runs as long as this value is used, which is on its thread. The pools exist as long as
        // their points do, and are automatic.
        unsafe {
            barrier::note_write(self.heap.arena(), place, |pool| self.points.with_references.contains(&pool))
        };
    }

    /// The heap.
    pub(crate) const fn heap(&self) -> &'g Heap<'g, A, B> {
        self.heap
    }

    /// Whether this is the inside of the heap with these roots.
    #[inline(always)]
    pub(crate) fn has_roots(&self, roots: &Roots) -> bool {
        ptr::eq(self.roots, roots)
    }

    /// A dependency on no address so far, for a table that hashes [addresses of objects](Gc::as_ptr).
    #[must_use]
    pub fn reset_dependency(&self) -> LocationDependency {
        self.heap.history().dependency()
    }

    /// Whether an object may have moved since its address was [added](LocationDependency::add), as
    /// [`Mutator::is_stale`](crate::Mutator::is_stale) says it. The dependency has to be of this heap.
    #[must_use]
    pub fn is_stale(&self, dependency: LocationDependency) -> bool {
        self.heap.history().is_stale(dependency)
    }

    /// Allocates an object that holds `value`.
    ///
    /// This does not start a collection: the heap grows if it is full. If the heap may not grow, leave the closure,
    /// call [`TypedMutator::collect`](crate::TypedMutator::collect), and try again.
    ///
    /// A type whose values have something to drop does not compile: objects are freed without being dropped.
    ///
    /// ```compile_fail
    /// # use tripoint_core::{Arena, BarrierPair, ClientArena};
    /// # use tripoint_gc::{Inside, Plain};
    /// fn misuse<A: Arena + Clone, B: BarrierPair>(inside: &Inside<'_, A, B>) {
    ///     let _leaks = inside.alloc(Plain(String::from("text")));
    /// }
    /// # let _used: fn(&Inside<'static, &'static ClientArena<'static>>) = misuse;
    /// ```
    ///
    /// # Errors
    /// Those of [`Arena::alloc_tracts`], if the heap has to grow and cannot.
    #[inline(always)]
    pub fn alloc<T: Trace<At<'g> = T>>(&self, value: T) -> Result<Gc<'g, T>> {
        const { assert!(!needs_drop::<T>(), "objects of a heap are freed without being dropped") };
        let size = const { sized(<T as Shape>::TABLE) };
        let place = self.object(<T as Shape>::HOME, size, <T as Shape>::TABLE, |place| {
            // SAFETY: as many bytes were reserved as the table says: there is room for a `T` behind the header.
            let at = unsafe { value_at::<T>(place, 0) };
            // SAFETY: nothing uses this memory yet.
            unsafe { at.write(value) };
        })?;
        // SAFETY: the object was just made, in the heap that is entered for `'g`. Its address is that of the
        // reservation, which has the provenance of the whole arena.
        Ok(unsafe { Gc::at(place) })
    }

    /// Allocates a slice of `count` values. `make` returns each of them for its index.
    ///
    /// # Errors
    /// As [`Inside::alloc`], and [`Error::Parameter`] if the slice would have more than `isize::MAX` bytes.
    #[inline]
    pub fn slice<T: Trace<At<'g> = T>>(
        &self,
        count: usize,
        mut make: impl FnMut(usize) -> T,
    ) -> Result<Gc<'g, [T]>> {
        const { assert!(!needs_drop::<T>(), "objects of a heap are freed without being dropped") };
        let place = self.items::<T>(count)?;
        // SAFETY: it is an object with items of type `T`, whose count was written.
        let items = unsafe { items_at::<T>(place) }.cast::<T>();
        for index in 0..count {
            let item = make(index);
            // SAFETY: there is room for `count` items, and no reference leads to the object yet.
            unsafe { items.add(index).write(item) };
        }
        // SAFETY: the object was just made, with the provenance of the arena.
        unsafe { Header::behind(place) }.complete(<[T] as Shape>::TABLE);
        // SAFETY: it is whole now, in the heap that is entered for `'g`.
        Ok(unsafe { Gc::at(place) })
    }

    /// Copies a text into an object.
    ///
    /// # Errors
    /// As [`Inside::alloc`].
    #[inline]
    pub fn text(&self, text: &str) -> Result<Gc<'g, str>> {
        let place = self.items::<u8>(text.len())?;
        // SAFETY: it is an object with bytes, whose count was written.
        let bytes = unsafe { items_at::<u8>(place) }.cast::<u8>();
        // SAFETY: there is room for the text, and the memory is new, so the two do not overlap.
        unsafe { bytes.copy_from_nonoverlapping(NonNull::from(text).cast(), text.len()) };
        // SAFETY: the object was just made, with the provenance of the arena.
        unsafe { Header::behind(place) }.complete(<str as Shape>::TABLE);
        // SAFETY: it is whole now, in the heap that is entered for `'g`.
        Ok(unsafe { Gc::at(place) })
    }

    /// Makes room for `count` objects with a `T` each, so that the next ones need no more memory of their pool, and this
    /// thread's next calls of [`Inside::alloc`] that many times do not fill a buffer. Returns how many there is room for, which is
    /// often more. Other objects of the same pool take some of it.
    ///
    /// This is for programs that may not fill buffers at any time: they make room in a quiet moment. It does not start a
    /// collection.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use tripoint_core::{Arena, ClientArena, ClientArenaOptions};
    /// # use tripoint_gc::{Heap, HeapOptions, SweptOptions, TypedObjects};
    /// # let mut memory = Box::new_uninit_slice(256 << 10);
    /// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
    /// # let heap = Heap::create(&arena, HeapOptions::default())?;
    /// # let objects = TypedObjects::create(&heap, SweptOptions::default())?;
    /// let mut mutator = objects.register()?;
    /// let room = mutator.enter(|inside| inside.make_room::<u64>(100))?;
    /// let fills = arena.counts().fills.get();
    /// for _ in 0..room {
    ///     mutator.enter(|inside| inside.alloc(7_u64).map(drop))?;
    /// }
    /// assert!(room >= 100 && arena.counts().fills.get() == fills);
    /// # Ok::<(), tripoint_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Inside::alloc`], and [`Error::Parameter`] for more objects than `isize::MAX` bytes hold.
    pub fn make_room<T: Trace<At<'g> = T>>(&self, count: usize) -> Result<usize> {
        let size = const { sized(<T as Shape>::TABLE) };
        let wanted = size.checked_mul(count).ok_or(TOO_LARGE)?;
        let points = &self.points;
        // SAFETY: only this value uses the points (`begin`), and it belongs to one thread. No code of the client runs
        // meanwhile but event hooks, which cannot reach what has the lifetime of this closure.
        let room = unsafe {
            match <T as Shape>::HOME {
                Home::Moved => room_at(&points.moved, wanted),
                Home::MovedLeaves => room_at(&points.moved_leaves, wanted),
                Home::Fixed => room_at(&points.fixed, wanted),
                Home::FixedLeaves => room_at(&points.fixed_leaves, wanted),
                Home::Weak => room_at(&points.weak, wanted),
            }
        }?;
        Ok(room / size)
    }

    /// Allocates an object with `count` items, which are not written yet and which no collection would scan. So `make`
    /// of [`Inside::slice`] may unwind, or allocate.
    fn items<T: Trace>(&self, count: usize) -> Result<NonNull<u8>> {
        let table: &'static Table = const { &unwritten::<T>() };
        let size = table.size(count).ok_or(TOO_LARGE)?;
        self.object(<[T] as Shape>::HOME, size, table, |place| {
            // SAFETY: behind the header there is room for the count, and nothing uses this memory yet.
            unsafe { place.cast::<usize>().write(count) };
        })
    }

    /// Reserves, writes and commits an object. Returns the address behind its header.
    #[inline(always)]
    fn object(
        &self,
        home: Home,
        size: usize,
        table: &'static Table,
        write: impl FnOnce(NonNull<u8>),
    ) -> Result<NonNull<u8>> {
        let points = &self.points;
        // SAFETY: only this value uses the points (`begin`), and it belongs to one thread. No code of the client runs
        // until the object is made: `write` moves a value that was made before, and event hooks cannot reach what has
        // the lifetime of this closure.
        unsafe {
            match home {
                Home::Moved => object_at(&points.moved, size, table, write),
                Home::MovedLeaves => object_at(&points.moved_leaves, size, table, write),
                Home::Fixed => object_at(&points.fixed, size, table, write),
                Home::FixedLeaves => object_at(&points.fixed_leaves, size, table, write),
                Home::Weak => object_at(&points.weak, size, table, write),
            }
        }
    }
}

/// # Safety
/// - No other copy of the point is used meanwhile.
#[inline(always)]
unsafe fn object_at<A: Arena + Clone, B: BarrierPair, K: Kind<Typed>>(
    point: &Point<'_, '_, A, B, K>,
    size: usize,
    table: &'static Table,
    write: impl FnOnce(NonNull<u8>),
) -> Result<NonNull<u8>> {
    // SAFETY: the caller promises that this one alone is used meanwhile. It is gone before the point is, and is never dropped.
    let mut point = unsafe { point.alias() };
    let layout = Layout::from_size_align(size, WORD).map_err(|_| TOO_LARGE)?;
    let reservation = point.reserve(layout)?;
    // SAFETY: as many bytes are reserved as the table says (the caller, in this file), aligned to words as the format.
    let place = unsafe { Header::put(reservation.as_ptr(), table) };
    write(place);
    // SAFETY: the object has a header, from which its format knows its size and its references. It is used only inside
    // the heap, or if it is reachable.
    let committed = unsafe { reservation.commit() };
    // The points of these classes do not give way, and no stop begins while they are used.
    aver!(committed.is_ok(), "a commit at {place:p} failed inside a heap");
    Ok(place)
}

/// Fills the buffer of a point if it has less than `wanted` bytes. Returns how many it has.
///
/// # Safety
/// - No other copy of the point is used meanwhile.
unsafe fn room_at<A: Arena + Clone, B: BarrierPair, K: Kind<Typed>>(
    point: &Point<'_, '_, A, B, K>,
    wanted: usize,
) -> Result<usize> {
    // SAFETY: the caller promises that this one alone is used meanwhile. It is gone before the point is, and is never dropped.
    let mut point = unsafe { point.alias() };
    if point.room() < wanted {
        let layout = Layout::from_size_align(wanted, WORD).map_err(|_| TOO_LARGE)?;
        // What is not committed is there for the next one.
        drop(point.reserve(layout)?);
    }
    Ok(point.room())
}

/// The size of objects without items.
const fn sized(table: &Table) -> usize {
    match table.size(0) {
        Some(size) => size,
        None => panic!("a value has less than isize::MAX bytes"),
    }
}

impl<A: Arena + Clone, B: BarrierPair> fmt::Debug for Inside<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").field("wants_stop", &self.wants_stop()).finish_non_exhaustive()
    }
}

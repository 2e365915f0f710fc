//! Objects of one type that die together, in memory that their arena owns.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ptr::NonNull;
use core::slice;

use std::alloc::handle_alloc_error;
use std::vec::Vec;

use tripoint_core::{Result, Store};

use crate::chunks::{Chunks, Row};
use crate::process_pool::ProcessPool;

/// Objects of one type, which live as long as their arena and are dropped with it.
///
/// `alloc` takes `&self`, so objects may refer to each other, also in cycles. The arena owns its memory: it is a field
/// like a `Vec`, with no lifetime in its type.
///
/// ```
/// use std::cell::{Cell, RefCell};
/// use tripoint_adaptors::TypedArena;
///
/// struct Node<'a> {
///     name: String, // is dropped
///     parent: Cell<Option<&'a Node<'a>>>,
///     children: RefCell<Vec<&'a Node<'a>>>,
/// }
///
/// let arena = TypedArena::new();
/// let node = |name: &str| &*arena.alloc(Node {
///     name: name.to_owned(),
///     parent: Cell::new(None),
///     children: RefCell::default(),
/// });
/// let (root, leaf) = (node("root"), node("leaf"));
/// leaf.parent.set(Some(root));
/// root.children.borrow_mut().push(leaf);
/// assert_eq!(leaf.parent.get().map_or("", |parent| &parent.name), "root");
/// assert_eq!(arena.len(), 2);
/// ```
///
/// Memory comes from the [`ProcessPool`], or from a store that is passed to [`new_in`](Self::new_in), in chunks of 1 KiB to
/// 1 MiB, or of one object if that is larger. An arena without objects takes none.
///
/// **Without memory** `alloc` ends the program, as `Box::new` does; [`try_alloc`](Self::try_alloc) returns the error.
///
/// An object that is dropped with its arena may not use what is dropped before: as with a `Vec`, that does not compile.
///
/// ```compile_fail,E0597
/// # use tripoint_adaptors::TypedArena;
/// struct Last<'a>(&'a str);
///
/// impl Drop for Last<'_> {
///     fn drop(&mut self) {
///         println!("{}", self.0);
///     }
/// }
///
/// let arena = TypedArena::new();
/// let text = String::from("dropped before the arena");
/// arena.alloc(Last(&text));
/// ```
///
/// Nor may it be shared between threads, or hold objects of a shorter life than its type says:
///
/// ```compile_fail,E0277
/// # use tripoint_adaptors::TypedArena;
/// fn share<T: Sync>(_: T) {}
/// share(TypedArena::<u64>::new());
/// ```
///
/// ```compile_fail
/// # use tripoint_adaptors::TypedArena;
/// fn shorter<'a, 'short>(arena: &'a TypedArena<&'static str>) -> &'a TypedArena<&'short str> {
///     arena
/// }
/// ```
// No `Drop` of it names `T`: that of `Chunks` calls a function by its address. That the objects are dropped all the same is
// said by `PhantomData`, as `Vec` says it (design/adaptors.md `.own.drop-check`). `Cell` has it hold exactly `T`.
#[doc(alias("typed_arena", "region"))]
pub struct TypedArena<T, S: Store = ProcessPool> {
    chunks: Chunks<S>,
    objects: PhantomData<Cell<T>>,
}

impl<T> TypedArena<T> {
    /// An arena without objects, in the pool of the process.
    #[must_use]
    pub const fn new() -> Self {
        Self::new_in(ProcessPool)
    }

    /// As [`new`](Self::new), with room for this many objects. Ends the program if there is no memory.
    #[must_use]
    pub fn with_capacity(objects: usize) -> Self {
        let arena = Self::new();
        match arena.reserve(objects) {
            Ok(()) => arena,
            Err(_) => out_of_memory::<T>(objects),
        }
    }
}

impl<T, S: Store> TypedArena<T, S> {
    /// An arena without objects, in a store: such as a [`PoolAllocator`](crate::PoolAllocator) of a pool of your own.
    ///
    /// ```
    /// # use tripoint_core::{ClientArena, ClientArenaOptions};
    /// # let mut memory = Box::new_uninit_slice(256 << 10);
    /// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
    /// use tripoint_adaptors::{PoolAllocator, TypedArena};
    /// use tripoint_pools::{Tlsf, TlsfOptions};
    ///
    /// let pool = Tlsf::create(&arena, TlsfOptions::default())?;
    /// let names = TypedArena::new_in(PoolAllocator::new(&pool));
    /// assert_eq!(names.try_alloc("bid")?, &"bid");
    /// # Ok::<(), tripoint_core::Error>(())
    /// ```
    #[must_use]
    pub const fn new_in(store: S) -> Self {
        let drop_objects = if mem::needs_drop::<T>() { Some(drop_objects::<T> as _) } else { None };
        Self { chunks: Chunks::new(store, size_of::<T>(), drop_objects), objects: PhantomData }
    }

    /// Makes room for this many objects in a row, without another request for memory. If there is no room for them, what
    /// is left of the chunk is not used until the arena is reset.
    ///
    /// # Errors
    /// Those of [`try_alloc`](Self::try_alloc).
    pub fn reserve(&self, objects: usize) -> Result<()> {
        if size_of::<T>() == 0 {
            return Ok(());
        }
        Row::<T, S>::begin(&self.chunks, objects).map(drop)
    }

    /// Moves an object into the arena. Ends the program if there is no memory.
    #[inline(always)]
    pub fn alloc(&self, object: T) -> &mut T {
        if size_of::<T>() == 0 {
            return self.alloc_zero_sized(object);
        }
        if self.chunks.is_full() {
            self.grow_or_end();
        }
        self.put(object)
    }

    /// As [`alloc`](Self::alloc), but returns the error if there is no memory.
    ///
    /// # Errors
    /// Those of the store, such as [`Error::Limit`](tripoint_core::Error::Limit) and
    /// [`Error::Memory`](tripoint_core::Error::Memory). The object is dropped.
    #[inline(always)]
    pub fn try_alloc(&self, object: T) -> Result<&mut T> {
        if size_of::<T>() == 0 {
            return Ok(self.alloc_zero_sized(object));
        }
        if self.chunks.is_full() {
            self.chunks.grow(Layout::new::<T>())?;
        }
        Ok(self.put(object))
    }

    /// Moves all that an iterator yields into the arena, where it lies in a row. Ends the program if there is no memory.
    ///
    /// The iterator may itself allocate in this arena. If it panics, what it yielded stays in the arena.
    pub fn alloc_extend(&self, objects: impl IntoIterator<Item = T>) -> &mut [T] {
        match self.try_alloc_extend(objects) {
            Ok(row) => row,
            Err(_) => out_of_memory::<T>(1),
        }
    }

    /// As [`alloc_extend`](Self::alloc_extend), but returns the error if there is no memory.
    ///
    /// # Errors
    /// Those of [`try_alloc`](Self::try_alloc). What the iterator yielded before stays in the arena.
    #[expect(clippy::mut_from_ref, reason = "each call returns other objects")]
    pub fn try_alloc_extend(&self, objects: impl IntoIterator<Item = T>) -> Result<&mut [T]> {
        let objects = objects.into_iter();
        if size_of::<T>() == 0 {
            let count = objects.inspect(|_| self.chunks.count_zero_sized()).map(mem::forget).count();
            // SAFETY: objects of size zero lie anywhere; there are that many, and these are lent by this alone.
            return Ok(unsafe { slice::from_raw_parts_mut(NonNull::dangling().as_ptr(), count) });
        }
        let mut row = Row::begin(&self.chunks, objects.size_hint().0)?;
        for object in objects {
            row.push(object)?;
        }
        // SAFETY: objects in a row that is the arena's from here on, and that nothing else leads to. They stay in place, and are
        // dropped only by what borrows the arena mutably.
        Ok(unsafe { row.finish().as_mut() })
    }

    /// How many objects there are. Takes time in proportion to the number of chunks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.rows().map(|(_, size)| count::<T>(size)).sum()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects, in the order of their allocation. (Objects that an iterator allocated while
    /// [`alloc_extend`](Self::alloc_extend) ran it may be before or after those that it yielded.)
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.rows().flat_map(|(start, size)| {
            // SAFETY: the arena has this many objects there. It is borrowed mutably meanwhile, so nothing else uses them.
            unsafe { slice::from_raw_parts_mut(row_of::<T>(start).as_ptr(), count::<T>(size)) }
        })
    }

    /// Drops all objects, and keeps the memory for the next ones. The same objects again take no more memory.
    ///
    /// If an object panics when it is dropped, the others are dropped all the same.
    ///
    /// ```
    /// # use tripoint_adaptors::TypedArena;
    /// let mut arena = TypedArena::new();
    /// arena.alloc(String::from("one round"));
    /// arena.reset();
    /// assert!(arena.is_empty() && arena.allocated_bytes() > 0);
    /// ```
    pub fn reset(&mut self) {
        self.chunks.clear();
    }

    /// Moves all objects out, in the order of their allocation.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<T> {
        let mut objects: Vec<T> = Vec::with_capacity(self.len());
        for (start, size) in self.chunks.rows() {
            // SAFETY: the vector has room for all objects. These are initialised, do not overlap it, and are used nowhere
            // else from here on: below the arena forgets them, and nothing until then panics.
            unsafe {
                let end = objects.as_mut_ptr().add(objects.len());
                row_of::<T>(start).as_ptr().copy_to_nonoverlapping(end, count::<T>(size));
                objects.set_len(objects.len() + count::<T>(size));
            }
        }
        self.chunks.forget();
        objects
    }

    /// The bytes that the arena has from its store.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.chunks.allocated_bytes()
    }

    /// The store that the memory comes from.
    #[must_use]
    pub const fn store(&self) -> &S {
        self.chunks.store()
    }

    /// Moves an object to where there is room for it.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "each call returns another object")]
    fn put(&self, object: T) -> &mut T {
        let mut place = self.chunks.next().cast::<T>();
        // SAFETY: the chunk is not full, so the next object lies in it, whole and aligned, because all before it are of this
        // type too. Nothing else uses its memory, and the next one begins where it ends.
        unsafe {
            self.chunks.set_next(place.add(1).cast());
            place.write(object);
            place.as_mut()
        }
    }

    #[expect(clippy::mut_from_ref, reason = "each call returns another object")]
    fn alloc_zero_sized(&self, object: T) -> &mut T {
        mem::forget(object);
        self.chunks.count_zero_sized();
        // SAFETY: an object of size zero lies anywhere. It exists until it is dropped with the arena.
        unsafe { NonNull::dangling().as_mut() }
    }

    #[cold]
    #[inline(never)]
    fn grow_or_end(&self) {
        if self.chunks.grow(Layout::new::<T>()).is_err() {
            out_of_memory::<T>(1);
        }
    }
}

/// Ends the program as the standard library does without memory for this many objects.
#[cold]
fn out_of_memory<T>(objects: usize) -> ! {
    handle_alloc_error(Layout::array::<T>(objects).unwrap_or(Layout::new::<T>()))
}

/// How many objects take this many bytes. If they have no size, each counts as a byte.
const fn count<T>(size: usize) -> usize {
    if size_of::<T>() == 0 { size } else { size / size_of::<T>() }
}

/// The first object of a row.
const fn row_of<T>(start: NonNull<u8>) -> NonNull<T> {
    if size_of::<T>() == 0 { NonNull::dangling() } else { start.cast() }
}

/// Drops the objects of a row.
///
/// # Safety
/// - Those of [`DropObjects`](crate::chunks::DropObjects), for `T`.
unsafe fn drop_objects<T>(start: NonNull<u8>, size: usize) {
    let row = NonNull::slice_from_raw_parts(row_of::<T>(start), count::<T>(size));
    // SAFETY: initialised objects, which nothing uses, and which are not used again.
    unsafe { row.drop_in_place() };
}

impl<T> Default for TypedArena<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Store> fmt::Debug for TypedArena<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedArena")
            .field("len", &self.len())
            .field("allocated_bytes", &self.allocated_bytes())
            .finish()
    }
}

//! The table that an object's header leads to: how large the object is, and where its references are.
//!
//! ```text
//!   value       | header | padding | value           |
//!   slice, text | header | count   | padding | items |
//!                        ^
//!                        the address by which references know the object
//! ```
//!
//! Padding is there only if a value is more aligned than a word: objects are aligned to words, so the
//! padding depends on where the object is (design/gc-typed.md `.typed.align`).

use core::any::type_name;
use core::mem::offset_of;
use core::ptr::{self, NonNull};

use tripoint_core::Align;
use tripoint_core::internal::{AtomicPtr, Ordering};

use crate::outlines::type_outline::TypeOutline;
use crate::scans::scan::Scan;

/// The bytes of a header, and of a count.
pub(crate) const WORD: usize = size_of::<usize>();

/// What the objects of one type have in common. One is made for each type at compile time.
#[derive(Debug)]
pub struct Table {
    /// The bytes of an object without items.
    fixed: usize,
    /// The same in whole words.
    whole: usize,
    /// The bytes of an item; zero if there are none, or if they have no size.
    item: usize,
    /// Passes on the references behind a header. `None` for an object that has none.
    trace: Option<Trace>,
    /// The name of the type.
    name: fn() -> &'static str,
    /// What is behind the header, for readers outside of the process.
    contents: Contents,
    /// That of the value, or of an item.
    outline: &'static TypeOutline,
}

/// What is behind a header.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
enum Contents {
    Value = 0,
    Items = 1,
    Text = 2,
}

/// Passes on all references of the object that references know by this address.
///
/// # Safety
/// - The object is whole, and of the type that the function is for. No thread uses it meanwhile.
pub(crate) type Trace = unsafe fn(NonNull<u8>, &mut Scan<'_>);

impl Table {
    /// Where in a table a reader outside of the process finds what: the bytes without items, these in whole words, the
    /// bytes of an item, whether there are references, what the contents are, the outline; and the bytes of a header.
    pub(crate) const OFFSETS: [usize; 7] = [
        offset_of!(Self, fixed),
        offset_of!(Self, whole),
        offset_of!(Self, item),
        offset_of!(Self, trace),
        offset_of!(Self, contents),
        offset_of!(Self, outline),
        WORD,
    ];

    /// The table of objects that hold one `T`.
    pub(crate) const fn of_value<T>(outline: &'static TypeOutline, trace: Option<Trace>) -> Self {
        // The address behind the header has to be in the object, also if the value has no size.
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        let fixed = WORD + padding(align_of::<T>()) + size;
        Self { contents: Contents::Value, ..Self::with(fixed, 0, outline, trace, type_name::<T>) }
    }

    /// The table of objects that hold a count, and that many items of type `T`.
    pub(crate) const fn of_items<T>(outline: &'static TypeOutline, trace: Option<Trace>) -> Self {
        let fixed = WORD + WORD + padding(align_of::<T>());
        Self::with(fixed, size_of::<T>(), outline, trace, type_name::<[T]>)
    }

    const fn with(
        fixed: usize,
        item: usize,
        outline: &'static TypeOutline,
        trace: Option<Trace>,
        name: fn() -> &'static str,
    ) -> Self {
        // The sum is a size: no type is as large as the largest.
        let whole = fixed.div_ceil(WORD) * WORD;
        Self { fixed, whole, item, trace, name, contents: Contents::Items, outline }
    }

    /// The table of texts.
    pub(crate) const fn of_text() -> Self {
        let bytes = Self::of_items::<u8>(const { &TypeOutline::leaf::<u8>("u8") }, None);
        Self { name: type_name::<str>, contents: Contents::Text, ..bytes }
    }

    /// The bytes of an object with `count` items, in whole words. `None` if an object cannot have that many.
    pub(crate) const fn size(&self, count: usize) -> Option<usize> {
        let Some(items) = self.item.checked_mul(count) else { return None };
        let Some(size) = self.fixed.checked_add(items) else { return None };
        match Align::WORD.round_up(size) {
            Some(size) if size <= isize::MAX.unsigned_abs() => Some(size),
            _ => None,
        }
    }
}

/// The most that lies between a word's alignment and a value's.
const fn padding(align: usize) -> usize {
    align.saturating_sub(WORD)
}

/// The address of a value, or of the first item, that is `offset` bytes and its padding behind `place`.
///
/// # Safety
/// - The value's object has `offset` bytes behind `place`, and room for the value after its padding.
#[inline(always)]
pub(crate) unsafe fn value_at<T>(place: NonNull<u8>, offset: usize) -> NonNull<T> {
    // SAFETY: the caller promises that `offset` bytes of the object lie behind `place`.
    let base = unsafe { place.add(offset) };
    if align_of::<T>() <= WORD {
        return base.cast();
    }
    let padding = base.addr().get().wrapping_neg() & (align_of::<T>() - 1);
    // SAFETY: as the caller promises, the padding lies in the object too.
    unsafe { base.add(padding).cast() }
}

/// The header of an object, and what lies behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header(NonNull<AtomicPtr<Table>>);

impl Header {
    /// Writes the header of a new object. Returns the address by which references know it.
    ///
    /// # Safety
    /// - The bytes that the table says are reserved at `object`, which is aligned to a word.
    #[inline(always)]
    pub(crate) unsafe fn put(object: NonNull<u8>, table: &'static Table) -> NonNull<u8> {
        // SAFETY: the caller promises memory for the object, which begins with its header.
        unsafe { object.cast().write(AtomicPtr::new(ptr::from_ref(table).cast_mut())) };
        // SAFETY: an object has more bytes than its header.
        unsafe { object.add(WORD) }
    }

    /// The header of an object that is there.
    ///
    /// # Safety
    /// - `object` is where an object begins whose header was written.
    pub(crate) const unsafe fn of(object: NonNull<u8>) -> Self {
        Self(object.cast())
    }

    /// The header of the object that references know by `place`.
    ///
    /// # Safety
    /// - It is there, and `place` has the provenance of all of it.
    pub(crate) const unsafe fn behind(place: NonNull<u8>) -> Self {
        // SAFETY: as the caller promises, the header lies in front of this address.
        Self(unsafe { place.sub(WORD) }.cast())
    }

    #[inline]
    fn table(self) -> &'static Table {
        // SAFETY: a header is written as long as its object is there (`of`, `behind`), and only ever borrowed shared.
        let table = unsafe { self.0.as_ref() }.load(Ordering::Acquire);
        // SAFETY: only tables that are `'static` are stored in headers.
        unsafe { &*table }
    }

    /// The items of the object have been written: from here on they are found by `table`, which has the same sizes as
    /// the one before.
    pub(crate) fn complete(self, table: &'static Table) {
        // SAFETY: a header is written as long as its object is there (`of`, `behind`), and only ever borrowed shared.
        unsafe { self.0.as_ref() }.store(ptr::from_ref(table).cast_mut(), Ordering::Release);
    }

    /// The bytes of the object.
    #[inline]
    pub(crate) fn object_size(self) -> usize {
        let table = self.table();
        if table.item == 0 {
            return table.whole;
        }
        // SAFETY: an object of items has its count behind the header, from before it was committed.
        let count = unsafe { self.place().cast::<usize>().read() };
        // The object was reserved with this size, so it has one.
        table.size(count).unwrap_or(0)
    }

    /// The name of the object's type.
    pub(crate) fn name(self) -> &'static str {
        (self.table().name)()
    }

    /// The address behind the header.
    const fn place(self) -> NonNull<u8> {
        // SAFETY: an object has more bytes than its header.
        unsafe { self.0.cast::<u8>().add(WORD) }
    }

    /// Passes on all references of the object.
    ///
    /// # Safety
    /// - No thread uses the object meanwhile.
    pub(crate) unsafe fn trace_object(self, scan: &mut Scan<'_>) {
        if let Some(trace) = self.table().trace {
            // SAFETY: the table is of the object's type, and the caller promises that no thread uses the object.
            unsafe { trace(self.place(), scan) };
        }
    }
}

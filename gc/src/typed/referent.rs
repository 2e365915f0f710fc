//! What an object can hold: a value, a slice of values, or text.

use core::ptr::NonNull;

use crate::scans::scan::Scan;
use crate::typed::home::Home;
use crate::typed::table::{Table, WORD, value_at};
use crate::typed::trace::Trace;

/// Where the contents of an object are, and how its pool knows them.
pub trait Shape {
    /// The table of such objects.
    const TABLE: &'static Table;

    /// Which pool they are in.
    const HOME: Home;

    /// Where the contents of an object are.
    ///
    /// # Safety
    /// - References know such an object by `place`. It is whole, and stays while this is called.
    unsafe fn find(place: NonNull<u8>) -> NonNull<Self>;

    /// The contents of an object.
    ///
    /// # Safety
    /// - References know such an object by `place`. It is whole, stays as long as the result is used, and is changed
    ///   only as shared values may be.
    #[inline(always)]
    unsafe fn contents<'a>(place: NonNull<u8>) -> &'a Self {
        // SAFETY: the caller promises a whole object, which stays.
        let contents = unsafe { Self::find(place) };
        // SAFETY: the caller promises that the object stays as long as the result is used, and is changed only as shared
        // values may be.
        unsafe { contents.as_ref() }
    }
}

/// What a [`Gc`](crate::Gc) can refer to: a value that is [`Trace`], a slice of such values, or `str`. It cannot be
/// implemented for others.
pub trait Referent: Shape + Send + Sync {
    /// This type with references of the lifetime `'g`.
    type At<'g>: Referent + ?Sized;

    /// This type with references of the lifetime `'static`.
    type Static: Referent + ?Sized + 'static;
}

impl<T: Trace> Referent for T {
    type At<'g> = <T as Trace>::At<'g>;
    type Static = <T as Trace>::Static;
}

impl<T: Trace> Referent for [T] {
    type At<'g> = [<T as Trace>::At<'g>];
    type Static = [<T as Trace>::Static];
}

impl Referent for str {
    type At<'g> = Self;
    type Static = Self;
}

/// # Safety
/// - That of [`crate::typed::table::Trace`], for objects with one `T`.
unsafe fn trace_value<T: Trace>(place: NonNull<u8>, scan: &mut Scan<'_>) {
    // SAFETY: such an object has room for a `T` behind its header.
    let mut value = unsafe { value_at::<T>(place, 0) };
    // SAFETY: the caller promises that the value is there, and that no thread uses it.
    unsafe { value.as_mut() }.trace(scan);
}

/// # Safety
/// - That of [`crate::typed::table::Trace`], for objects with items of type `T`.
unsafe fn trace_items<T: Trace>(place: NonNull<u8>, scan: &mut Scan<'_>) {
    if size_of::<T>() == 0 {
        // There may be `usize::MAX` of them, and no reference is in nothing.
        return;
    }
    // SAFETY: such an object has a count, and that many items.
    let items = unsafe { items_at::<T>(place) };
    // SAFETY: the caller promises that the items are there, and that no thread uses them.
    for item in unsafe { &mut *items.as_ptr() } {
        item.trace(scan);
    }
}

/// The items of an object.
///
/// # Safety
/// - References know an object with items of type `T` by `place`, and its count was written.
pub(crate) unsafe fn items_at<T>(place: NonNull<u8>) -> NonNull<[T]> {
    // SAFETY: the caller promises that the count is there.
    let count = unsafe { place.cast::<usize>().read() };
    // SAFETY: behind the count there is room for the items and their padding.
    NonNull::slice_from_raw_parts(unsafe { value_at::<T>(place, WORD) }, count)
}

/// The table of objects with items that have not been written.
pub(crate) const fn unwritten<T: Trace>() -> Table {
    Table::of_items::<T>(T::OUTLINE, None)
}

impl<T: Trace> Shape for T {
    const TABLE: &'static Table =
        &Table::of_value::<T>(T::OUTLINE, if T::HAS_REFERENCES { Some(trace_value::<T>) } else { None });

    const HOME: Home = Home::of::<T>();

    #[inline(always)]
    unsafe fn find(place: NonNull<u8>) -> NonNull<Self> {
        // SAFETY: the caller promises a whole object with a `T` behind its header.
        unsafe { value_at::<T>(place, 0) }
    }
}

impl<T: Trace> Shape for [T] {
    const TABLE: &'static Table =
        &Table::of_items::<T>(T::OUTLINE, if T::HAS_REFERENCES { Some(trace_items::<T>) } else { None });

    const HOME: Home = Home::of::<T>();

    #[inline(always)]
    unsafe fn find(place: NonNull<u8>) -> NonNull<Self> {
        // SAFETY: the caller promises a whole object with a count and that many items.
        unsafe { items_at::<T>(place) }
    }
}

impl Shape for str {
    const TABLE: &'static Table = &Table::of_text();

    const HOME: Home = Home::MovedLeaves;

    #[inline(always)]
    unsafe fn find(place: NonNull<u8>) -> NonNull<Self> {
        // SAFETY: the caller promises a whole object with a count and that many bytes, which were copied from a text.
        let bytes = unsafe { items_at::<u8>(place) };
        // SAFETY: this is the same address, which is not null.
        unsafe { NonNull::new_unchecked(bytes.as_ptr() as *mut str) }
    }
}

//! Measuring and writing an image of objects of a heap (design/gc.md `.image.write`, `.image.outside`).
//!
//! A search, as for a path, enters all objects to be written in the table that the caller provides. The table is then
//! sorted by address, and each object has its offset in this order. References are written as they are at the base of
//! the image. Objects of the heap do not change.

use core::ptr::{self, NonNull};

use tripoint_core::internal::Defer;
use tripoint_core::{Addr, Align, Arena, BarrierPair, RankSet};

use crate::at_stop::Flipped;
use crate::collect::flip::know_objects;
use crate::heaps::member::MemberLink;
use crate::heaps::own::Own;
use crate::heaps::stopped::Stopped;
use crate::images::error::WriteImageError;
use crate::images::header::{IMAGE_ALIGN, ImageHeader};
use crate::list::List;
use crate::scans::scan::{Scan, Shown};
use crate::segments::object::Object;

const WORD: usize = size_of::<usize>();

/// Options for an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageOptions {
    /// The address at which the image needs no relocation: a multiple of [`IMAGE_ALIGN`], not zero, that is free in all
    /// processes that map the image.
    pub base: usize,
    /// A number of your choice for the layout of the objects: readers that expect another number refuse the image.
    pub fingerprint: u64,
}

/// An object of an image: an entry of the table that an [`ImagePlan`] needs.
#[derive(Clone, Copy, Debug)]
pub struct ImageEntry {
    base: *const u8,
    size: usize,
    /// From the first object.
    offset: usize,
}

impl Default for ImageEntry {
    fn default() -> Self {
        Self { base: ptr::null(), size: 0, offset: 0 }
    }
}

/// An image that was measured and not yet written. It borrows the guard of the stop, so the heap stays stopped.
#[derive(Debug)]
pub struct ImagePlan<'a, 'h, A: Arena, B: BarrierPair> {
    stopped: &'a Stopped<'a, 'h, A, B>,
    flipped: Flipped<'a>,
    /// Sorted by address.
    entries: &'a [ImageEntry],
    /// What to begin with.
    roots: &'a [*const u8],
    header: ImageHeader,
}

impl<'h, A: Arena, B: BarrierPair> Stopped<'_, 'h, A, B> {
    /// Plans an image of the objects that `roots` refer to, and of all that these lead to. `table` needs an entry for
    /// each of them; as many as [`Stopped::census`] counts are enough.
    ///
    /// Typed objects are refused: each begins with an address of the program that made it, which another process does not
    /// have.
    ///
    /// # Errors
    /// [`WriteImageError`]: a root that is not an object, a table that is full, objects that an image cannot have, or a
    /// base that is not aligned or leaves too little room.
    pub fn plan_image<'a>(
        &'a self,
        roots: &'a [*const u8],
        table: &'a mut [ImageEntry],
        options: ImageOptions,
    ) -> Result<ImagePlan<'a, 'h, A, B>, WriteImageError> {
        let members = self.heap().members().lock();
        let flipped = know_objects(self.at_stop(), self.heap(), &members);
        let count = meet_all(flipped, &Own::new(self.heap().arena(), &members), &members, roots, table)?;
        let entries = table.get_mut(..count).unwrap_or_default();
        entries.sort_unstable_by_key(|entry| entry.base.addr());
        let mut objects_size = 0_usize;
        for entry in &mut *entries {
            let align = alignment(&Own::new(self.heap().arena(), &members), entry.base)?;
            entry.offset = align.round_up(objects_size).ok_or(WriteImageError::Base)?;
            objects_size = entry.offset.checked_add(entry.size).ok_or(WriteImageError::Base)?;
        }
        let objects_size = Align::WORD.round_up(objects_size).ok_or(WriteImageError::Base)?;
        let ImageOptions { base, fingerprint } = options;
        let header = ImageHeader { fingerprint, base, roots: roots.len(), objects_size, count, index_sum: 0 };
        let end = header.checked_size().and_then(|size| base.checked_add(size));
        if !base.is_multiple_of(IMAGE_ALIGN) || base == 0 || end.is_none() {
            return Err(WriteImageError::Base);
        }
        Ok(ImagePlan { stopped: self, flipped, entries, roots, header })
    }
}

/// Enters all objects that `roots` lead to into the table. Returns how many there are.
fn meet_all<A: Arena>(
    flipped: Flipped<'_>,
    own: &Own<'_, A>,
    members: &List<MemberLink>,
    roots: &[*const u8],
    table: &mut [ImageEntry],
) -> Result<usize, WriteImageError> {
    // Also if a format panics: a mark that stays would keep an object from being scanned.
    let _forget = Defer::new(|| {
        // SAFETY: no collection begins before the caller returns, which has locked the pools.
        members.for_each(|link| unsafe { link.member().forget_seen(flipped.at_stop()) });
    });
    let (mut met, mut is_full) = (0, false);
    let mut meet = |table: &mut [ImageEntry], met: &mut usize, shown: &Shown<'_>| {
        let Some((link, segment, base)) = own.referent(shown) else { return false };
        if segment.see(base) {
            // SAFETY: the segment is of that pool, and an object begins there.
            let block = unsafe { link.member().object(segment, base) }.block;
            match table.get_mut(*met) {
                Some(entry) => {
                    *entry = ImageEntry { base: block.base().as_ptr(), size: block.size(), offset: 0 };
                    *met += 1;
                }
                None => is_full = true,
            }
        }
        true
    };
    for &root in roots {
        let mut reference = root.cast_mut();
        if !meet(table, &mut met, &Shown::Exact(&mut reference)) {
            return Err(WriteImageError::NoObject(Addr::of(root)));
        }
    }
    let mut next = 0;
    while next < met {
        let base = Addr::of(table[next].base);
        let mut show = |shown: Shown<'_>| {
            meet(table, &mut met, &shown);
        };
        // SAFETY: an object begins there.
        unsafe { scan_at(flipped, own, base, &mut show) };
        next += 1;
    }
    if is_full { Err(WriteImageError::Full) } else { Ok(met) }
}

/// Passes the references of the object that begins at `base` to `show`. Returns the object.
///
/// # Safety
/// - An object of the heap begins there.
unsafe fn scan_at<A: Arena>(
    flipped: Flipped<'_>,
    own: &Own<'_, A>,
    base: Addr,
    show: &mut dyn FnMut(Shown<'_>),
) -> Option<Object> {
    let (link, segment) = own.find(base)?;
    // SAFETY: the caller promises that an object begins there, in the segment that was found.
    let object = unsafe { link.member().object(segment, base) };
    // SAFETY: the object is of this pool.
    unsafe { link.member().scan_object(object, &mut Scan::show(flipped.at_stop(), show)) };
    Some(object)
}

/// What an object has to be aligned to, if its pool has objects that can be in an image.
fn alignment<A: Arena>(own: &Own<'_, A>, base: *const u8) -> Result<Align, WriteImageError> {
    let object = Addr::of(base);
    let (link, segment) = own.find(object).ok_or(WriteImageError::NoObject(object))?;
    if !link.member().is_for_images() {
        return Err(WriteImageError::NotForImages { object });
    }
    if segment.get().ranks().contains(RankSet::WEAK) {
        return Err(WriteImageError::Weak { object });
    }
    let align = segment.get().shape().align;
    if align.get() <= IMAGE_ALIGN { Ok(align) } else { Err(WriteImageError::Align) }
}

impl<A: Arena, B: BarrierPair> ImagePlan<'_, '_, A, B> {
    /// The size of the image, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.header.size()
    }

    /// The number of objects of the image.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.entries.len()
    }

    /// Writes the image to `out`, for example a mapped file. Returns the number of references in the image.
    ///
    /// # Errors
    /// [`WriteImageError`]: `out` does not have the size of the image, or an object has a reference that an image
    /// cannot have. What is in `out` is then not an image.
    ///
    /// # Safety
    /// - All bytes of the objects were written since they were reserved, those between their fields included.
    /// - Since the plan was made no pool of the heap was dropped. (Nothing was collected: the plan borrows the stop.)
    pub unsafe fn write_to(&self, out: &mut [u8]) -> Result<usize, WriteImageError> {
        if out.len() != self.size() {
            return Err(WriteImageError::Size { needed: self.size() });
        }
        let members = self.stopped.heap().members().lock();
        let own = Own::new(self.stopped.heap().arena(), &members);
        out.fill(0);
        for (index, &root) in self.roots.iter().enumerate() {
            let addr =
                self.translate(&own, Addr::of(root)).ok_or(WriteImageError::NoObject(Addr::of(root)))?;
            let offset = addr - self.header.base;
            out[self.header.root(index)..][..8].copy_from_slice(&(offset as u64).to_ne_bytes());
        }
        let mut references = 0;
        for entry in self.entries {
            // SAFETY: an entry is an object of the heap, which is stopped. Its bytes were written (the caller's
            // promise).
            let bytes = unsafe { core::slice::from_raw_parts(entry.base, entry.size) };
            out[self.header.objects().start + entry.offset..][..entry.size].copy_from_slice(bytes);
            // SAFETY: this is an object of the heap, which was there when the plan was made. Nothing was collected since.
            references += unsafe { self.write_references(&own, entry, out) }?;
        }
        ImageHeader { index_sum: self.header.sum_index(out), ..self.header }.write_header(out);
        Ok(references)
    }

    /// Writes the references of an object as they are in the image, and the bits of their places.
    ///
    /// # Safety
    /// - The object is there.
    unsafe fn write_references(
        &self,
        own: &Own<'_, A>,
        entry: &ImageEntry,
        out: &mut [u8],
    ) -> Result<usize, WriteImageError> {
        let object = Addr::of(entry.base);
        let (mut count, mut outcome) = (0, Ok(()));
        let mut show = |shown: Shown<'_>| {
            if outcome.is_err() {
                return;
            }
            let to = shown.addr();
            match self.translate(own, to) {
                Some(addr) => match place_in(entry, &shown) {
                    Some(place) => {
                        self.enter(out, entry.offset + place, addr);
                        count += 1;
                    }
                    None => outcome = Err(WriteImageError::Place { object }),
                },
                None if self.is_of_process(to) => outcome = Err(WriteImageError::Outside { object, to }),
                None => {}
            }
        };
        // SAFETY: the caller promises that the object is there.
        unsafe { scan_at(self.flipped, own, object, &mut show) };
        outcome.map(|()| count)
    }

    /// Writes a reference to its place among the objects, and sets the bit of that place.
    fn enter(&self, out: &mut [u8], place: usize, addr: usize) {
        out[self.header.objects().start + place..][..WORD].copy_from_slice(&addr.to_ne_bytes());
        let word = place / WORD;
        out[self.header.places().start + word / 8] |= 1 << (word % 8);
    }

    /// The address in the image that a reference to `addr` has there.
    fn translate(&self, own: &Own<'_, A>, addr: Addr) -> Option<usize> {
        own.find(addr)?;
        let after = self.entries.partition_point(|entry| entry.base.addr() <= addr.get());
        let entry = self.entries.get(after.checked_sub(1)?)?;
        let within = addr.get() - entry.base.addr();
        (within < entry.size).then(|| self.header.base + self.header.objects().start + entry.offset + within)
    }

    /// Whether `addr` is memory that other processes do not have: of the arena, or frozen.
    fn is_of_process(&self, addr: Addr) -> bool {
        let heap = self.stopped.heap();
        heap.arena().contains(addr) || heap.frozen().contains(addr)
    }
}

/// The byte of an object at which a reference lies, if that is an aligned word of it.
fn place_in(entry: &ImageEntry, shown: &Shown<'_>) -> Option<usize> {
    let Shown::Exact(reference) = shown else { return None };
    let place = NonNull::from(&**reference).addr().get().wrapping_sub(entry.base.addr());
    (place < entry.size && place.is_multiple_of(WORD)).then_some(place)
}

//! Zeroing pages: written if they have memory, and left without it if they have none
//! ([design/arena-vm.md `.zero`](crate::design::arena_vm)).

use core::ptr::NonNull;

use super::PlatformError;
use super::errno::errno;

/// How many pages are asked about at a time.
const ASKED: usize = 1024;
/// How many pages are zeroed in the same way.
const PIECE: usize = 16;

/// What makes pages zero.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Write,
    Discard,
}

impl Way {
    /// The cheaper one, by which pages have memory (the low bit of each byte). To write costs a fault for each that has none;
    /// to discard costs less for each that has some, but its next use a fault.
    fn of(pages: &[u8]) -> Self {
        let resident = pages.iter().filter(|&&page| page & 1 != 0).count();
        if 2 * resident > pages.len() { Self::Write } else { Self::Discard }
    }

    /// # Safety
    /// - The range is committed pages of a reservation, which nothing else uses.
    unsafe fn apply(self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        match self {
            // SAFETY: committed pages are valid for writes.
            Self::Write => unsafe { base.write_bytes(0, size) },
            // A page that the system wrote out counts as one without memory, but is not zero.
            //
            // SAFETY: committed pages of a reservation, whose contents are not needed.
            Self::Discard if size > 0 => unsafe { discard("zero", base, size) }?,
            Self::Discard => {}
        }
        Ok(())
    }
}

/// [`Platform::zero`](super::Platform::zero).
///
/// # Safety
/// - The range is committed pages of a reservation, which nothing else uses.
pub(super) unsafe fn zero(base: NonNull<u8>, size: usize, page_size: usize) -> Result<(), PlatformError> {
    let mut answers = [0; ASKED];
    // What is to be zeroed in one way: it ends at `done`.
    let (mut way, mut begun, mut done) = (Way::Discard, 0, 0);
    while done < size {
        let asked = (size - done).min(ASKED * page_size);
        // SAFETY: the offset lies in the range.
        let from = unsafe { base.add(done) };
        // SAFETY: the range is mapped, and there is a byte for each of its pages. The call only asks.
        if unsafe { libc::mincore(from.as_ptr().cast(), asked, answers.as_mut_ptr()) } != 0 {
            return Err(PlatformError {
                call: "zero",
                code: errno(),
                addr: from.addr().get(),
                size,
                limit: None,
            });
        }
        for pages in answers[..asked / page_size].chunks(PIECE) {
            let next = Way::of(pages);
            if next != way {
                // SAFETY: whole pages of the caller's range.
                unsafe { way.apply(base.add(begun), done - begun) }?;
                (way, begun) = (next, done);
            }
            done += pages.len() * page_size;
        }
    }
    // SAFETY: the rest of the caller's range, in whole pages.
    unsafe { way.apply(base.add(begun), done - begun) }
}

/// Takes the memory from pages.
///
/// # Safety
/// - The range is committed pages of a reservation, which nothing else uses and whose contents are not needed.
pub(super) unsafe fn discard(
    call: &'static str,
    base: NonNull<u8>,
    size: usize,
) -> Result<(), PlatformError> {
    // SAFETY: private anonymous pages, which are replaced by zeros; their contents are not needed.
    match unsafe { libc::madvise(base.as_ptr().cast(), size, libc::MADV_DONTNEED) } {
        0 => Ok(()),
        _ => Err(PlatformError { call, code: errno(), addr: base.addr().get(), size, limit: None }),
    }
}

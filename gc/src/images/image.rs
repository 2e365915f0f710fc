//! An image that was checked, and relocation.

use crate::images::error::ImageError;
use crate::images::header::{IMAGE_ALIGN, ImageHeader, number_at};

const WORD: usize = size_of::<usize>();

/// An image in memory, at any address. Only its header was checked: [`Image::check`] checks all references.
#[derive(Clone, Copy, Debug)]
pub struct Image<'m> {
    header: ImageHeader,
    bytes: &'m [u8],
}

impl<'m> Image<'m> {
    /// Takes bytes as an image of objects with this `fingerprint`. Bytes behind the image are ignored.
    ///
    /// # Errors
    /// [`ImageError`]: what is wrong with the header, or how many bytes are missing.
    pub fn open(bytes: &'m [u8], fingerprint: u64) -> Result<Self, ImageError> {
        let header = ImageHeader::parse(bytes, fingerprint)?;
        let size = bytes.len();
        let bytes = bytes.get(..header.size()).ok_or(ImageError::Short { size, needed: header.size() })?;
        Ok(Self { header, bytes })
    }

    /// The header of the image.
    #[must_use]
    pub const fn header(&self) -> &ImageHeader {
        &self.header
    }

    /// Whether the image lies at its base, so that its references lead to its objects. If not,
    /// [relocate](relocate_image) a copy.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.bytes.as_ptr().addr() == self.header.base
    }

    /// The image's roots, in the order in which they were passed to
    /// [`Stopped::plan_image`](crate::Stopped::plan_image): pointers to the objects, with the provenance of the image.
    ///
    /// # Errors
    /// [`ImageError::Reference`] in the place of a root that does not lead to the objects of the image.
    pub fn roots(&self) -> impl Iterator<Item = Result<*const u8, ImageError>> + '_ {
        (0..self.header.roots).map(|index| {
            let at = self.header.root(index);
            let offset = usize::try_from(number_at(self.bytes, at)).unwrap_or(usize::MAX);
            let is_inside = self.header.objects().contains(&offset);
            is_inside.then(|| self.bytes.as_ptr().wrapping_add(offset)).ok_or(ImageError::Reference { at })
        })
    }

    /// The pointer for a reference that was read from an object of the image, with the provenance of the image; `None`
    /// if it does not lead to an object of the image. The image has to be in place.
    #[must_use]
    pub fn pointer(&self, reference: *const u8) -> Option<*const u8> {
        let offset = reference.addr().wrapping_sub(self.bytes.as_ptr().addr());
        self.header.objects().contains(&offset).then(|| self.bytes.as_ptr().wrapping_add(offset))
    }

    /// Checks that the roots and the places of references are those that were written, and that all references lead into
    /// the objects of the image. This reads each page that has a reference. Other damage to the objects is not found.
    ///
    /// # Errors
    /// [`ImageError::Index`], or [`ImageError::Reference`], the first that does not.
    pub fn check(&self) -> Result<(), ImageError> {
        if self.header.sum_index(self.bytes) != self.header.index_sum {
            return Err(ImageError::Index);
        }
        self.roots().try_for_each(|root| root.map(drop))?;
        for_each_place(&self.header, self.bytes, |bytes, at| {
            translate(&self.header, word_at(bytes, at), 0).map(drop).ok_or(ImageError::Reference { at })
        })
    }
}

/// Changes all references of an image so that they lead to where `bytes` lie now. The image is then in place. Returns
/// the number of its references, also if it was in place before.
///
/// `bytes` have to begin at a multiple of [`IMAGE_ALIGN`].
///
/// # Errors
/// [`ImageError`], after which nothing was changed.
pub fn relocate_image(bytes: &mut [u8], fingerprint: u64) -> Result<usize, ImageError> {
    let image = Image::open(bytes, fingerprint)?;
    image.check()?;
    let header = image.header;
    let base = bytes.as_ptr().addr();
    if !base.is_multiple_of(IMAGE_ALIGN) {
        return Err(ImageError::Unaligned);
    }
    let delta = base.wrapping_sub(header.base);
    let mut count = 0;
    for_each_place(&header, &mut *bytes, |bytes, at| {
        let word = translate(&header, word_at(bytes, at), delta).ok_or(ImageError::Reference { at })?;
        count += 1;
        bytes[at..][..WORD].copy_from_slice(&word.to_ne_bytes());
        Ok(())
    })?;
    ImageHeader { base, ..header }.write_header(bytes);
    Ok(count)
}

/// The address that `addr` has in an image that was moved by `delta`; `None` if it is not among the image's objects.
fn translate(header: &ImageHeader, addr: usize, delta: usize) -> Option<usize> {
    header.objects().contains(&addr.wrapping_sub(header.base)).then(|| addr.wrapping_add(delta))
}

fn word_at(bytes: &[u8], at: usize) -> usize {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| usize::from_ne_bytes(*word))
}

/// Calls `visit` with the bytes, once for the place of each reference in them.
fn for_each_place<T: AsRef<[u8]>>(
    header: &ImageHeader,
    mut bytes: T,
    mut visit: impl FnMut(&mut T, usize) -> Result<(), ImageError>,
) -> Result<(), ImageError> {
    let objects = header.objects();
    for (byte, at) in header.places().enumerate() {
        let mut bits = bytes.as_ref().get(at).copied().unwrap_or(0);
        while bits != 0 {
            let place = objects.start + (byte * 8 + bits.trailing_zeros() as usize) * WORD;
            // Bits behind the last word are ignored.
            if place < objects.end {
                visit(&mut bytes, place)?;
            }
            bits &= bits - 1;
        }
    }
    Ok(())
}

//! The first bytes of an image: what is where (design/gc.md `.image.header`, `.image.places`, `.image.index`).
//!
//! ```text
//!   0       128                             objects (a multiple of 4096)
//!   | header | roots: offsets | places: bits | ... | objects, each as in the heap |
//! ```
//!
//! Numbers have 64 bits in the machine's own order. The bits of the places say of each word of the objects, in order,
//! whether it is a reference: the address that an object has when the image lies at its base. Roots and places, with the
//! bytes behind them, are the *index*, of which the header has a checksum.

use core::ops::Range;

use crate::images::error::ImageError;

/// The alignment of the base of an image, in bytes, and the largest alignment that its objects may have.
pub const IMAGE_ALIGN: usize = 4096;

const MAGIC: [u8; 8] = *b"TRIPOIMG";
/// In version 1 the index had no checksum.
const VERSION: u32 = 2;
/// Read in another order of bytes this is another number.
const ORDER: u16 = 0x0102;
const WORD: usize = size_of::<usize>();

/// The header of an image, after it was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageHeader {
    pub(crate) fingerprint: u64,
    pub(crate) base: usize,
    pub(crate) roots: usize,
    pub(crate) objects_size: usize,
    pub(crate) count: usize,
    pub(crate) index_sum: u64,
}

impl ImageHeader {
    /// The bytes of a header. Read that much of a file to know where to map it.
    pub const SIZE: usize = 128;

    /// Reads and checks a header.
    ///
    /// # Errors
    /// [`ImageError`], unless `bytes` begin with the header of an image of this version, from a machine with the same
    /// words and order of bytes, with this `fingerprint`.
    pub fn parse(bytes: &[u8], fingerprint: u64) -> Result<Self, ImageError> {
        let header =
            bytes.get(..Self::SIZE).ok_or(ImageError::Short { size: bytes.len(), needed: Self::SIZE })?;
        if header[..8] != MAGIC {
            return Err(ImageError::Magic);
        }
        let [low, high] =
            [2, 1].map(|part: usize| u16::from_ne_bytes([header[10 + 2 * part], header[11 + 2 * part]]));
        if usize::from(high) != WORD || low != ORDER {
            return Err(ImageError::Machine);
        }
        let version = u32::from_ne_bytes([header[8], header[9], header[10], header[11]]);
        if version != VERSION {
            return Err(ImageError::Version(version));
        }
        let number = |index: usize| number_at(header, 16 + 8 * index);
        if number(13) != checksum(&header[..Self::SIZE - 8]) {
            return Err(ImageError::Header);
        }
        if number(0) != fingerprint {
            return Err(ImageError::Fingerprint(number(0)));
        }
        let [base, roots, objects_size, count] =
            [1, 2, 3, 4].map(|index| usize::try_from(number(index)).ok());
        let (Some(base), Some(roots), Some(objects_size), Some(count)) = (base, roots, objects_size, count)
        else {
            return Err(ImageError::Header);
        };
        let header = Self { fingerprint, base, roots, objects_size, count, index_sum: number(5) };
        let fits = header.checked_size().is_some_and(|size| base.checked_add(size).is_some());
        let is_whole = base.is_multiple_of(IMAGE_ALIGN) && objects_size.is_multiple_of(WORD);
        if fits && is_whole { Ok(header) } else { Err(ImageError::Header) }
    }

    /// Writes the header to the first bytes.
    pub(crate) fn write_header(&self, bytes: &mut [u8]) {
        let Some(header) = bytes.get_mut(..Self::SIZE) else { return };
        header.fill(0);
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_ne_bytes());
        header[12..14].copy_from_slice(&(WORD as u16).to_ne_bytes());
        header[14..16].copy_from_slice(&ORDER.to_ne_bytes());
        let numbers = [
            self.fingerprint,
            self.base as u64,
            self.roots as u64,
            self.objects_size as u64,
            self.count as u64,
            self.index_sum,
        ];
        for (index, number) in numbers.into_iter().enumerate() {
            header[16 + 8 * index..][..8].copy_from_slice(&number.to_ne_bytes());
        }
        let sum = checksum(&header[..Self::SIZE - 8]);
        header[Self::SIZE - 8..].copy_from_slice(&sum.to_ne_bytes());
    }

    /// The address at which the image needs no relocation: a multiple of [`IMAGE_ALIGN`].
    #[must_use]
    pub const fn preferred_base(&self) -> usize {
        self.base
    }

    /// The size of the image, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.objects().end
    }

    /// The number of objects.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Where the objects are: bytes from the base of the image. Pass this range to
    /// [`Heap::register_frozen`](crate::Heap::register_frozen).
    #[must_use]
    pub fn objects(&self) -> Range<usize> {
        let places = self.places();
        let first = places.end.next_multiple_of(IMAGE_ALIGN);
        first..first + self.objects_size
    }

    /// Where the offsets of the image's roots are.
    pub(crate) const fn root(&self, index: usize) -> usize {
        Self::SIZE + 8 * index
    }

    /// Where the bits are that say which words are references.
    pub(crate) fn places(&self) -> Range<usize> {
        let first = self.root(self.roots);
        first..first + (self.objects_size / WORD).div_ceil(8)
    }

    /// Where the index is: the roots, the places, and what is in front of the objects.
    fn index(&self) -> Range<usize> {
        Self::SIZE..self.objects().start
    }

    /// The checksum that the index has in these bytes.
    pub(crate) fn sum_index(&self, bytes: &[u8]) -> u64 {
        checksum(bytes.get(self.index()).unwrap_or_default())
    }

    /// The bytes of the image, if the sum does not overflow.
    pub(crate) fn checked_size(&self) -> Option<usize> {
        let roots = self.roots.checked_mul(8)?.checked_add(Self::SIZE)?;
        let places = roots.checked_add((self.objects_size / WORD).div_ceil(8))?;
        places.checked_next_multiple_of(IMAGE_ALIGN)?.checked_add(self.objects_size)
    }
}

/// The number of 64 bits at byte `at`; zero behind the end.
pub(crate) fn number_at(bytes: &[u8], at: usize) -> u64 {
    let number = bytes.get(at..).and_then(|rest| rest.first_chunk());
    number.map_or(0, |number| u64::from_ne_bytes(*number))
}

/// FNV-1a of bytes, by words of 64 bits: no change within one word leaves the sum as it was. Bytes behind the last whole
/// word do not count.
fn checksum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks();
    words.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &word| {
        (sum ^ u64::from_ne_bytes(word)).wrapping_mul(0x100_0000_01b3)
    })
}

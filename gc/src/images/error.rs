//! Why bytes are refused as an image, and why no image was written.

use core::fmt;

use tripoint_core::Addr;

/// Why bytes are refused as an image.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageError {
    /// There are fewer bytes than the image has.
    Short {
        /// The bytes that were passed.
        size: usize,
        /// The bytes that are needed.
        needed: usize,
    },
    /// The bytes do not begin as an image does.
    Magic,
    /// The image is of another version of the layout.
    Version(u32),
    /// The image was written on a machine with another size of words or another order of bytes.
    Machine,
    /// The objects are of another format than the caller expects.
    Fingerprint(u64),
    /// The header is damaged: its checksum is wrong, or its parts do not fit together.
    Header,
    /// The roots or the places of references are damaged: their checksum is wrong. It is compared by
    /// [`Image::check`](crate::Image::check) and [`relocate_image`](crate::relocate_image).
    Index,
    /// The bytes do not lie at a multiple of [`IMAGE_ALIGN`](crate::IMAGE_ALIGN), so they cannot be relocated to where
    /// they are.
    Unaligned,
    /// A reference leads to no object of the image.
    Reference {
        /// Where it is: bytes from the beginning of the image.
        at: usize,
    },
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { size, needed } => {
                write!(
                    f,
                    "{size} bytes of an image of {needed}: it was not written to its end, or not mapped whole"
                )
            }
            Self::Magic => f.write_str("not an image of objects: pass a file that an image was written to"),
            Self::Version(version) => {
                write!(f, "an image of version {version} of the layout: write it anew")
            }
            Self::Machine => f.write_str(
                "an image of a machine with other words, or another order of bytes: write it on this one",
            ),
            Self::Fingerprint(found) => {
                write!(
                    f,
                    "an image of objects of another format, with the fingerprint {found:#x}: write it anew"
                )
            }
            Self::Unaligned => {
                f.write_str("an image is relocated to a multiple of 4096: copy it to the beginning of a page")
            }
            Self::Index => {
                f.write_str("the roots or the places of references of the image are damaged: write it anew")
            }
            Self::Header => f.write_str("the header of the image is damaged: write it anew"),
            Self::Reference { at } => {
                write!(
                    f,
                    "the reference at byte {at} leads to no object of the image, which is damaged: write it anew"
                )
            }
        }
    }
}

tripoint_core::debug_as_text!(ImageError: Short, Magic, Version, Machine, Fingerprint, Header, Index, Unaligned, Reference);

impl core::error::Error for ImageError {}

/// Why no image of objects was written.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteImageError {
    /// One of the roots is this address, at which the heap has no object.
    NoObject(Addr),
    /// The roots lead to more objects than the table has entries.
    Full,
    /// The place at which the image is to be mapped is not aligned to [`IMAGE_ALIGN`](crate::IMAGE_ALIGN), or
    /// the image does not fit between it and the end of the address space.
    Base,
    /// Objects are aligned to more than [`IMAGE_ALIGN`](crate::IMAGE_ALIGN).
    Align,
    /// An object refers to memory of the arena that is not an object of the heap, or to a frozen segment. Another
    /// process does not have this memory.
    Outside {
        /// The object's base.
        object: Addr,
        /// What it refers to.
        to: Addr,
    },
    /// The format passes a reference that does not lie at an aligned place in its object, because it has a tag, or one
    /// that is ambiguous. The image cannot say where such references are.
    Place {
        /// The object's base.
        object: Addr,
    },
    /// An object has weak references: nothing would clear them in an image.
    Weak {
        /// The object's base.
        object: Addr,
    },
    /// An object is of a format that is not for images ([`Format::is_for_images`](crate::Format::is_for_images)), as
    /// typed objects are: it has an address of its program in it, which another process does not have.
    NotForImages {
        /// The object's base.
        object: Addr,
    },
    /// The memory to write to does not have the size of the image.
    Size {
        /// The bytes of the image.
        needed: usize,
    },
}

impl fmt::Display for WriteImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoObject(addr) => {
                write!(f, "no object of the heap is at {addr}: begin with references to objects")
            }
            Self::Full => f.write_str("the table is full: pass one entry for each object of the heap"),
            Self::Base => {
                f.write_str("the image does not fit at its base: pass a multiple of 4096 with room above it")
            }
            Self::Align => f.write_str("objects of an image are aligned to 4096 bytes at most"),
            Self::Outside { object, to } => write!(
                f,
                "the object at {object} refers to {to}, which another process does not have: refer to objects of the heap"
            ),
            Self::Place { object } => write!(
                f,
                "a reference of the object at {object} is tagged, ambiguous or not aligned: its format serves no images"
            ),
            Self::Weak { object } => write!(
                f,
                "the object at {object} has weak references, which nothing clears in an image: refer to it from none of its objects"
            ),
            Self::NotForImages { object } => write!(
                f,
                "the object at {object} is typed, or of another format that has addresses of this program: write objects of a format for images"
            ),
            Self::Size { needed } => write!(f, "the image has {needed} bytes: pass memory of that size"),
        }
    }
}

tripoint_core::debug_as_text!(WriteImageError: NoObject, Full, Base, Align, Outside, Place, Weak, NotForImages, Size);

impl core::error::Error for WriteImageError {}

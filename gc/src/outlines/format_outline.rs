//! What is known of a format, whose functions a reader outside of the process does not call (design/inspection.md
//! `.formats`).

use crate::outlines::type_outline::head;

/// The words of a description.
const WORDS: usize = 7;

/// What the words of a description are.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
enum Form {
    /// There are none: the memory of such objects is counted, and no object of it is known.
    Unknown = 0,
    /// Objects begin with the address of a table of their type. The words are where in it a reader finds what.
    Tables = 1,
    /// A word of an object says which kind it is. The words are where that is and its bits that matter, how many kinds
    /// there are, and which bits of a reference are its tag and what they are.
    Kinds = 2,
}

/// How the objects of a format are laid out, for [readers outside of the process](crate::design::inspection), which call no
/// function of the format. An author of a format returns one from [`Format::outline`](crate::Format::outline). Nothing in
/// the process depends on it.
///
/// ```
/// use tripoint_gc::{FormatOutline, ObjectKind};
///
/// // An object begins with a word whose lowest byte is its kind. Above that, an array has its length.
/// const KINDS: &[ObjectKind] = &[
///     ObjectKind::new(1, "pair", 24).with_references(&[8, 16]),
///     ObjectKind::new(2, "number", 16),
///     ObjectKind::new(3, "array", 8).with_items(0, 8, 8, &[0]),
/// ];
/// const OUTLINE: FormatOutline = FormatOutline::of_kinds(0, 0xff, KINDS);
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FormatOutline {
    form: Form,
    words: [usize; WORDS],
    kinds: Option<&'static ObjectKind>,
}

impl FormatOutline {
    /// Nothing is known: readers count the memory of such objects, and say that it is not known what is in it.
    pub const UNKNOWN: Self = Self { form: Form::Unknown, words: [0; WORDS], kinds: None };

    /// That of typed objects, with these offsets in their tables.
    pub(crate) const fn typed(words: [usize; WORDS]) -> Self {
        Self { form: Form::Tables, words, kinds: None }
    }

    /// The outline of a format whose objects are of some kinds. The word that is `word` bytes from the base of an object says
    /// which: by its bits in `mask`. References are words without a tag.
    #[must_use]
    pub const fn of_kinds(word: usize, mask: usize, list: &'static [ObjectKind]) -> Self {
        let words = [word, mask, list.len(), 0, 0, 0, 0];
        Self { form: Form::Kinds, words, kinds: head(list) }
    }

    /// As this, for references with a tag: only words are references whose bits in `mask` are `pattern`, and these are no part
    /// of the address.
    #[must_use]
    pub const fn with_tag(self, mask: usize, pattern: usize) -> Self {
        let [word, bits, count, ..] = self.words;
        Self { words: [word, bits, count, mask, pattern, 0, 0], ..self }
    }
}

/// Objects of a kind, in a [`FormatOutline`]. Sizes and offsets are in bytes, offsets from the base of an object.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ObjectKind {
    value: usize,
    name: Option<&'static u8>,
    name_size: usize,
    size: usize,
    references: Option<&'static usize>,
    reference_count: usize,
    /// Where the count of items is, and by how many bits it is shifted.
    count: usize,
    shift: usize,
    item: usize,
    item_references: Option<&'static usize>,
    item_reference_count: usize,
}

impl ObjectKind {
    /// Objects whose word has this `value`, by the name of their type. They have `size` bytes, header included, rounded up to
    /// the alignment of the format.
    #[must_use]
    pub const fn new(value: usize, name: &'static str, size: usize) -> Self {
        Self {
            value,
            name: head(name.as_bytes()),
            name_size: name.len(),
            size,
            references: None,
            reference_count: 0,
            count: 0,
            shift: 0,
            item: 0,
            item_references: None,
            item_reference_count: 0,
        }
    }

    /// As this, with references at these offsets.
    #[must_use]
    pub const fn with_references(self, offsets: &'static [usize]) -> Self {
        Self { references: head(offsets), reference_count: offsets.len(), ..self }
    }

    /// As this, with items of `item` bytes behind the other bytes. How many there are is in the word at the offset `count`,
    /// shifted to the left by `shift` bits. An item has references at these offsets, from its beginning.
    #[must_use]
    pub const fn with_items(
        self,
        count: usize,
        shift: usize,
        item: usize,
        offsets: &'static [usize],
    ) -> Self {
        let (item_references, item_reference_count) = (head(offsets), offsets.len());
        Self { count, shift, item, item_references, item_reference_count, ..self }
    }
}

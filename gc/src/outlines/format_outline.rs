//! What is known of a format, whose functions a reader outside of the process does not call (design/inspection.md
//! `.formats`).

/// The most words of a description.
const WORDS: usize = 7;

/// What the words of a description are.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
enum Form {
    /// There are none: the memory of such objects is counted, and no object of it is known.
    Unknown = 0,
    /// Objects begin with the address of a table of their type. The words are where in it a reader finds what.
    Typed = 1,
}

/// How the objects of a format are laid out, for [readers outside of the process](crate::design::inspection).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FormatOutline {
    form: Form,
    words: [usize; WORDS],
}

impl FormatOutline {
    /// Nothing is known: readers count the memory of such objects, and say that it is not known what is in it.
    pub const UNKNOWN: Self = Self { form: Form::Unknown, words: [0; WORDS] };

    /// That of typed objects, with these offsets in their tables.
    pub(crate) const fn typed(words: [usize; WORDS]) -> Self {
        Self { form: Form::Typed, words }
    }
}

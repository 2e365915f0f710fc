//! Objects: a header of one word, and fields of a word each.
//!
//! ```text
//!   kind, detail | field | field | ...
//!
//!   pair       line    first, rest
//!   symbol             name, value
//!   function           parameters, body, scope
//!   macro              parameters, body, scope
//!   scope      fields  outer scope, names, later definitions, values ...
//!   vector     fields  values ...
//!   table              keys
//!   text       bytes   bytes ...
//!   port               number
//!   keys       slots   values or null, used slots, dependency (two words), weak references ...
//!   values     fields  values ...
//! ```

use core::marker::PhantomData;
use core::ops::Range;
use core::ptr::NonNull;

use super::stack::Stack;
use super::value::{Value, Word};

const KIND_BITS: u32 = 8;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Kind {
    /// The detail is the line of a program that it was read from, or zero.
    Pair,
    Symbol,
    Function,
    Macro,
    Scope,
    Vector,
    Table,
    Text,
    Port,
    Keys,
    Values,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Pair,
        Self::Symbol,
        Self::Function,
        Self::Macro,
        Self::Scope,
        Self::Vector,
        Self::Table,
        Self::Text,
        Self::Port,
        Self::Keys,
        Self::Values,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Symbol => "symbol",
            Self::Function => "function",
            Self::Macro => "macro",
            Self::Scope => "scope",
            Self::Vector => "vector",
            Self::Table => "table",
            Self::Text => "string",
            Self::Port => "port",
            Self::Keys => "weak keys",
            Self::Values => "values of weak keys",
        }
    }
}

/// The first word of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header(usize);

impl Header {
    /// The header of an object; `None` if the detail is too large for it.
    pub(super) fn new(kind: Kind, detail: usize) -> Option<Self> {
        let shifted = detail.checked_mul(1 << KIND_BITS)?;
        Some(Self(shifted | kind as usize))
    }

    pub(super) const fn kind(self) -> Kind {
        Kind::ALL[self.0 & ((1 << KIND_BITS) - 1)]
    }

    pub(super) const fn detail(self) -> usize {
        self.0 >> KIND_BITS
    }

    /// The number of fields.
    pub(super) const fn fields(self) -> usize {
        match self.kind() {
            Kind::Table | Kind::Port => 1,
            Kind::Pair | Kind::Symbol => 2,
            Kind::Function | Kind::Macro => 3,
            Kind::Scope | Kind::Vector | Kind::Values => self.detail(),
            Kind::Text => self.detail().div_ceil(size_of::<Word>()),
            Kind::Keys => super::keys::SLOTS + self.detail(),
        }
    }

    /// The fields that are values, and keep what they refer to.
    pub(super) const fn values(self) -> Range<usize> {
        match self.kind() {
            Kind::Text | Kind::Port | Kind::Keys => 0..0,
            _ => 0..self.fields(),
        }
    }

    /// The bytes of the object.
    pub(super) const fn size(self) -> usize {
        (1 + self.fields()) * size_of::<Word>()
    }
}

/// An object that is there as long as nothing is allocated in the store that it borrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object<'s> {
    base: NonNull<usize>,
    store: PhantomData<&'s Stack>,
}

impl<'s> Object<'s> {
    /// The object at `base`.
    ///
    /// # Safety
    /// - An object begins there whose header was written, and it stays there during `'s`.
    pub(super) const unsafe fn at(base: NonNull<u8>) -> Self {
        Self { base: base.cast(), store: PhantomData }
    }

    pub(super) fn header(self) -> Header {
        // SAFETY: an object begins with its header (`at`).
        Header(unsafe { self.base.read() })
    }

    /// Where a field is.
    pub(super) fn place(self, field: usize) -> NonNull<Word> {
        assert!(field < self.header().fields(), "a {:?} has no field {field}", self.header().kind());
        // SAFETY: the object has that many words behind its header.
        unsafe { self.base.cast::<Word>().add(1 + field) }
    }

    /// The word in a field.
    pub(super) fn word(self, field: usize) -> Word {
        // SAFETY: the field is in the object, all of whose fields were written when it was made.
        unsafe { self.place(field).read() }
    }

    pub(super) fn set_word(self, field: usize, word: Word) {
        // SAFETY: the field is in the object, and only this thread uses it.
        unsafe { self.place(field).write(word) };
    }

    /// The value in a field.
    pub(super) fn value(self, field: usize) -> Value<'s> {
        assert!(self.header().values().contains(&field), "field {field} is no value");
        // SAFETY: it is a value, and refers to an object of the same store, which stays as long as this one.
        unsafe { Value::of_word(self.word(field)) }
    }

    pub(super) fn set_value(self, field: usize, value: Value<'_>) {
        assert!(self.header().values().contains(&field), "field {field} is no value");
        self.set_word(field, value.word());
    }

    /// The bytes of a text.
    pub(super) fn bytes(self) -> &'s [u8] {
        let header = self.header();
        let count = if header.kind() == Kind::Text { header.detail() } else { 0 };
        // SAFETY: a text has that many bytes behind its header, which never change, and stay there during `'s`.
        unsafe { core::slice::from_raw_parts(self.base.cast::<u8>().add(size_of::<Word>()).as_ptr(), count) }
    }

    /// Writes the header and the fields of a new object.
    ///
    /// # Safety
    /// - The bytes of the header's object are reserved at `base`.
    pub(super) unsafe fn put(base: NonNull<u8>, header: Header, field: impl Fn(usize) -> Word) {
        // SAFETY: the caller promises room for the object, which begins with its header.
        unsafe { base.cast::<usize>().write(header.0) };
        for index in 0..header.fields() {
            // SAFETY: as the caller promises, there is room for all fields.
            unsafe { base.cast::<Word>().add(1 + index).write(field(index)) };
        }
    }
}

//! Words: what a field of an object, a register or a place on the stack holds.
//!
//! ```text
//!   n ... n n 1    a number, shifted by one
//!   n ... c 1 0    a constant: its class, and a number for some
//!   a ... a 0 0    the address of an object
//! ```

use core::marker::PhantomData;
use core::ptr;

use super::stack::Stack;

/// A word, as objects and the stack hold it.
pub(crate) type Word = *mut u8;

/// The bits that say what a word is.
const TAG: usize = 0b11;
const CONSTANT: usize = 0b10;
/// The bits of the class of a constant.
const CLASS: usize = 0xf << 2;
const CLASS_SHIFT: u32 = 2;
const NUMBER_SHIFT: u32 = 6;

/// Values that are no objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    /// The empty list.
    Nil,
    True,
    False,
    /// The value of a symbol without one.
    Unbound,
    /// The result of what has none.
    Unspecified,
    /// The end of a port.
    End,
    /// A slot of a table that was never used.
    Empty,
    /// A slot of a table whose key was deleted, or has died.
    Deleted,
    /// A special form, by number.
    Form(usize),
    /// A function of the interpreter, by number.
    Builtin(usize),
}

/// A value, as long as nothing is allocated in the store that it borrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value<'s> {
    word: Word,
    store: PhantomData<&'s Stack>,
}

impl<'s> Value<'s> {
    pub(crate) const NIL: Value<'static> = Value::constant(Constant::Nil);
    pub(crate) const FALSE: Value<'static> = Value::constant(Constant::False);
    pub(crate) const UNSPECIFIED: Value<'static> = Value::constant(Constant::Unspecified);

    /// The value that a word is.
    ///
    /// # Safety
    /// - If it is a reference, it leads to an object of the store that `'s` borrows, and nothing is allocated there
    ///   during `'s`.
    pub(super) const unsafe fn of_word(word: Word) -> Self {
        Self { word, store: PhantomData }
    }

    pub(super) const fn word(self) -> Word {
        self.word
    }

    pub(crate) const fn constant(constant: Constant) -> Value<'static> {
        let (class, number) = match constant {
            Constant::Nil => (0, 0),
            Constant::True => (1, 0),
            Constant::False => (2, 0),
            Constant::Unbound => (3, 0),
            Constant::Unspecified => (4, 0),
            Constant::End => (5, 0),
            Constant::Empty => (6, 0),
            Constant::Deleted => (7, 0),
            Constant::Form(number) => (8, number),
            Constant::Builtin(number) => (9, number),
        };
        Value::of_bits(number << NUMBER_SHIFT | class << CLASS_SHIFT | CONSTANT)
    }

    /// The value of a number; `None` if it has too many digits.
    pub(crate) fn number(number: i64) -> Option<Value<'static>> {
        let word = isize::try_from(number).ok()?.checked_mul(2)?;
        Some(Value::of_bits(word.cast_unsigned() | 1))
    }

    /// The value of a count of something that is in memory.
    pub(crate) fn count(count: usize) -> Value<'static> {
        Value::of_bits(count << 1 | 1)
    }

    pub(crate) const fn truth(truth: bool) -> Value<'static> {
        Value::constant(if truth { Constant::True } else { Constant::False })
    }

    const fn of_bits(bits: usize) -> Value<'static> {
        Value { word: ptr::without_provenance_mut(bits), store: PhantomData }
    }

    pub(crate) fn is_nil(self) -> bool {
        self == Self::NIL
    }

    /// All values are true but one.
    pub(crate) fn is_true(self) -> bool {
        self != Self::FALSE
    }

    pub(crate) fn as_number(self) -> Option<i64> {
        let bits = self.word.addr();
        (bits & 1 == 1).then_some((bits.cast_signed() >> 1) as i64)
    }

    pub(crate) fn as_constant(self) -> Option<Constant> {
        let bits = self.word.addr();
        if bits & TAG != CONSTANT {
            return None;
        }
        let number = bits >> NUMBER_SHIFT;
        Some(match (bits & CLASS) >> CLASS_SHIFT {
            0 => Constant::Nil,
            1 => Constant::True,
            2 => Constant::False,
            3 => Constant::Unbound,
            4 => Constant::Unspecified,
            5 => Constant::End,
            6 => Constant::Empty,
            7 => Constant::Deleted,
            8 => Constant::Form(number),
            _ => Constant::Builtin(number),
        })
    }
}

/// Whether a word is the address of an object, or null.
pub(super) fn is_reference(word: Word) -> bool {
    word.addr() & TAG == 0
}

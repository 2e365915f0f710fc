//! What a law is: a function of some numbers, which says whether it holds of them.

use core::fmt;

/// What the function of a law returns: it does not hold of these numbers.
pub const FAILS: u8 = 0;
/// It holds.
pub const HOLDS: u8 = 1;
/// The law says nothing of these numbers.
pub const NOT_ASKED: u8 = 2;

/// A law, for who tries it with numbers.
#[derive(Clone, Copy)]
pub struct Law {
    /// What it says.
    pub name: &'static str,
    /// Tries it with numbers from a source.
    pub run: fn(&mut dyn FnMut() -> u64) -> u8,
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A number of a law.
pub trait Number {
    /// One made of what the source has next.
    fn draw(source: &mut dyn FnMut() -> u64) -> Self;
}

macro_rules! numbers {
    ($($kind:ty),*) => {$(
        impl Number for $kind {
            fn draw(source: &mut dyn FnMut() -> u64) -> Self {
                source() as Self
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, usize);

impl Number for bool {
    fn draw(source: &mut dyn FnMut() -> u64) -> Self {
        source() & 1 == 1
    }
}

impl<T: Number, const COUNT: usize> Number for [T; COUNT] {
    fn draw(source: &mut dyn FnMut() -> u64) -> Self {
        core::array::from_fn(|_| T::draw(source))
    }
}

/// Laws of a file: each has numbers, what is `given` of them, and what then holds.
///
/// ```text
/// laws! {
///     /// Why it matters.
///     fn a_sum_is_no_less(a: u32, b: u32) given a < 10 && b < 10; { a + b >= a }
/// }
/// ```
macro_rules! laws {
    ($(
        $(#[$note:meta])*
        fn $name:ident($($number:ident: $kind:ty),* $(,)?) given $given:expr; $holds:block
    )*) => {
        $(
            $(#[$note])*
            // SAFETY: no two laws have one name, nor does anything else.
            #[unsafe(no_mangle)]
            pub fn $name($($number: $kind),*) -> u8 {
                if !$given {
                    return $crate::law::NOT_ASKED;
                }
                if $holds { $crate::law::HOLDS } else { $crate::law::FAILS }
            }
        )*

        /// The laws of this file.
        pub const LAWS: &[$crate::law::Law] = &[$($crate::law::Law {
            name: stringify!($name),
            run: |source| $name($(<$kind as $crate::law::Number>::draw(source)),*),
        }),*];
    };
}
pub(crate) use laws;

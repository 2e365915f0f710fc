//! `Debug` of an error is its text, because that is what is printed if `main` returns it, or `unwrap` meets it.

/// Implements `Debug` of an error by its text. For an enum, name its variants: the text begins with the name.
///
/// ```
/// use core::fmt;
///
/// enum Refused {
///     Full,
///     Other(u32),
/// }
///
/// impl fmt::Display for Refused {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         match self {
///             Self::Full => f.write_str("the table is full: raise its size"),
///             Self::Other(number) => write!(f, "it is of table {number}: pass it there"),
///         }
///     }
/// }
///
/// tripoint_core::debug_as_text!(Refused: Full, Other);
/// assert_eq!(format!("{:?}", Refused::Full), "Full: the table is full: raise its size");
/// assert_eq!(format!("{:?}", Refused::Other(3)), "Other: it is of table 3: pass it there");
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_text {
    ($error:ty) => {
        impl ::core::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, f)
            }
        }
    };
    ($error:ty: $($variant:ident),+ $(,)?) => {
        impl ::core::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(match self {
                    $(Self::$variant { .. } => ::core::concat!(::core::stringify!($variant), ": "),)+
                })?;
                ::core::fmt::Display::fmt(self, f)
            }
        }
    };
}

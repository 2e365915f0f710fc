//! One macro for what no caller can bring about (MPS: AVER).

/// Averts that `condition` fails where no caller can bring that about: a debug build
/// panics with the text, and a release build returns `false` for the caller to fall back.
///
/// The value is that of the condition. Put the values that explain a failure into the
/// text, which is formatted only in debug builds. Input that can be wrong gets an error,
/// never this ([design/core.md](crate::design::overview) `.aver`).
///
/// ```
/// use tripoint_core::aver;
///
/// fn middle(low: usize, high: usize) -> usize {
///     if !aver!(low <= high, "the range {low}..{high} is out of order") {
///         return low;
///     }
///     low + (high - low) / 2
/// }
/// assert_eq!(middle(2, 6), 4);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! aver {
    ($condition:expr, $($text:tt)+) => {{
        let holds: bool = $condition;
        if ::core::cfg!(debug_assertions) && !holds {
            ::core::panic!($($text)+);
        }
        holds
    }};
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::string::String;

    /// What `aver!` says of a range: its value, or the text that it panics with.
    fn averred(low: usize, high: usize) -> Result<bool, String> {
        let outcome =
            catch_unwind(|| aver!(low <= high, "the range {low}..{high} is out of order, of {}", 9));
        outcome.map_err(|payload| *payload.downcast::<String>().unwrap())
    }

    #[test]
    fn what_holds_is_true() {
        assert_eq!(averred(2, 6), Ok(true));
    }

    #[test]
    #[cfg(debug_assertions)]
    fn what_does_not_hold_panics_with_the_values() {
        assert_eq!(averred(6, 2), Err("the range 6..2 is out of order, of 9".into()));
    }

    #[test]
    #[cfg(not(debug_assertions))]
    fn what_does_not_hold_is_left_to_the_caller() {
        assert_eq!(averred(6, 2), Ok(false));
    }

    #[test]
    fn the_condition_is_evaluated_once() {
        let mut evaluations = 0;
        let mut condition = || {
            evaluations += 1;
            true
        };
        assert!(aver!(condition(), "never"));
        assert_eq!(evaluations, 1);
    }
}

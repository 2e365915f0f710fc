//! Values of other crates' types, in objects.

use core::ops::Deref;

use crate::outlines::type_outline::TypeOutline;
use crate::scans::scan::Scan;
use crate::typed::trace::Trace;

/// A value without references into a heap, of a type that is not [`Trace`], for example one of another crate.
///
/// The type has to be `'static`. No type with references into a heap is: they have the lifetime of the closure in which
/// they were made.
///
/// ```
/// use core::time::Duration;
/// use tripoint_gc::{Plain, object_types};
///
/// object_types! {
///     /// An entry of a log.
///     #[derive(Debug)]
///     pub struct Entry {
///         after: Plain<Duration>,
///         number: u64,
///     }
/// }
///
/// let entry = Entry { after: Plain(Duration::from_millis(2)), number: 7 };
/// assert_eq!((entry.after.as_millis(), entry.number), (2, 7));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Plain<T>(pub T);

// SAFETY: a reference of a heap has the lifetime of a closure that works with any lifetime (`TypedMutator::enter`), so
// a value with one is of no type that is `'static`.
unsafe impl<T: Send + Sync + 'static> Trace for Plain<T> {
    type At<'g> = Self;
    type Static = Self;

    const HAS_REFERENCES: bool = false;
    const HAS_WEAK_LINKS: bool = false;
    const OUTLINE: &'static TypeOutline = &TypeOutline::leaf::<Self>("Plain");

    fn trace(&mut self, _scan: &mut Scan<'_>) {}
}

impl<T> Deref for Plain<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

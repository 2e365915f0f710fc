//! Routes: the ways through the hot path that must be passed in a warm-up.

use tripoint_core::internal::{AtomicUsize, Ordering};

/// The number of passes that [`Route::new`] asks for.
pub const ROUTE_MINIMUM: usize = 200_000;

/// One way through the hot path. Its passes are counted until there are enough.
///
/// ```
/// use tripoint_contract::Route;
///
/// static ROUTES: [Route; 2] = [Route::new("depth update"), Route::with_minimum("snapshot", 1_000)];
/// ROUTES[1].pass();
/// assert_eq!(ROUTES[1].passes(), 1);
/// ```
#[derive(Debug)]
pub struct Route {
    name: &'static str,
    minimum: usize,
    passes: AtomicUsize,
}

impl Route {
    /// A route that needs [`ROUTE_MINIMUM`] passes.
    #[cfg(not(tripoint_loom))]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self::with_minimum(name, ROUTE_MINIMUM)
    }

    /// A route that needs `minimum` passes.
    #[cfg(not(tripoint_loom))]
    #[must_use]
    pub const fn with_minimum(name: &'static str, minimum: usize) -> Self {
        Self { name, minimum, passes: AtomicUsize::new(0) }
    }

    /// A route that needs `minimum` passes.
    #[cfg(tripoint_loom)]
    #[must_use]
    pub fn with_minimum(name: &'static str, minimum: usize) -> Self {
        Self { name, minimum, passes: AtomicUsize::new(0) }
    }

    /// Counts a pass. Once there are enough, this is one load and one compare.
    #[inline]
    pub fn pass(&self) {
        if !self.is_done() {
            self.passes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The name in reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The number of passes needed.
    #[must_use]
    pub const fn minimum(&self) -> usize {
        self.minimum
    }

    /// The number of passes so far; counting ends when there are enough.
    #[inline]
    #[must_use]
    pub fn passes(&self) -> usize {
        self.passes.load(Ordering::Relaxed)
    }

    /// Whether the route was passed often enough.
    #[inline]
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.passes() >= self.minimum
    }
}

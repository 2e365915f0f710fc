//! A call on a point, as a control observes it from its beginning to its end.

/// What ends a call.
pub(crate) trait EndsCall {
    /// Notifies a control that observes calls that one is over.
    fn end_call(&mut self);
}

/// A call that has begun. It is over when this is dropped, also if a hook or a control unwinds: others may wait for that
/// (design/ap.md `.stop.calls`).
pub(crate) struct Call<T: EndsCall>(pub(crate) T);

impl<T: EndsCall> Drop for Call<T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.end_call();
    }
}

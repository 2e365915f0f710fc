//! The control that samples at an allocation point.

use core::fmt;

use tripoint_core::{Control, Stop};
use tripoint_stack::Site;

use crate::numbering::thread_number;
use crate::sample::Sample;
use crate::sampled_object::{ObjectKind, SampledObject};
use crate::sampler::draws::Draws;
use crate::sampler::sampling::Sampling;

/// Samples what is allocated at an allocation point: its [`Control`].
///
/// The point gives way at the bytes that are drawn. It calls `on_sample` in the next slow path after their
/// object is committed. Objects that were abandoned, or whose commit failed, are never sampled. While
/// nothing is drawn, and while sampling is off, the fast path has not one instruction more
/// ([design/sampling.md `.point`](crate::design::sampling)).
///
/// ```
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::{BufferKind, ClientArena, ClientArenaOptions, PoolClass};
/// use tripoint_pools::{Mvff, MvffOptions};
/// use tripoint_telemetry::{Estimate, Mean, PointSampler, Sampling};
///
/// static SAMPLING: Sampling = Sampling::off(42);
///
/// let mut memory = Box::new_uninit_slice(1 << 20);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let pool = Mvff::create(&arena, MvffOptions::default())?;
/// let mean = Mean::new(500).unwrap();
/// SAMPLING.set_mean(Some(mean));
///
/// let mut estimate = Estimate::new(mean);
/// let sampler = PointSampler::new(&SAMPLING, |sampled| estimate.add(&sampled.sample));
/// let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, sampler)?;
/// for number in 0..500_u64 {
///     drop(point.boxed([number; 12])?);
/// }
/// drop(point);
/// // Of 48,000 bytes, some 96 were drawn.
/// assert!((estimate.bytes() / 48_000.0 - 1.0).abs() < 0.4);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
///
/// To use another control at the same point, join both in a
/// [`ControlPair`](tripoint_core::ControlPair).
pub struct PointSampler<'s, F> {
    draws: Draws<'s>,
    /// The byte that was drawn last, counted from the end of what was sampled last; none if that draw
    /// is still to be made.
    drawn: Option<usize>,
    /// The call that reserved the object that may be sampled next, if sites are walked.
    site: Option<Site>,
    on_sample: F,
}

impl<'s, F: FnMut(SampledObject)> PointSampler<'s, F> {
    /// A sampler that follows `sampling`. `on_sample` is called on the thread that owns the
    /// point, in a slow path. It must not use the point.
    pub fn new(sampling: &'s Sampling, on_sample: F) -> Self {
        Self { draws: Draws::new(sampling), drawn: None, site: None, on_sample }
    }
}

impl<F: FnMut(SampledObject)> Control for PointSampler<'_, F> {
    fn next_stop(&mut self) -> usize {
        self.drawn.take().unwrap_or_else(|| self.draws.next_distance())
    }

    /// The call that allocates is on the stack now, and no longer when the sample is reported.
    fn reserved(&mut self, _stop: Stop) {
        self.site = self.draws.sampling().has_sites().then(Site::here);
    }

    /// Samples the object of each byte that is drawn. In a batch there may be several; the last draw
    /// is for a byte beyond the batch (design/sampling.md `.batch`).
    fn stopped(&mut self, stop: Stop) {
        let mut drawn = stop.offset;
        while drawn < stop.size {
            let Some(mean) = self.draws.mean() else { return };
            let object = stop.object_at(drawn);
            let end = drawn - object.offset + object.size;
            drawn = end.saturating_add(self.draws.next_distance());
            if let Some(sample) = Sample::new(object.size as u64, object.offset as u64, mean) {
                let is_alone = object.size == stop.fill_size;
                let kind = if is_alone { ObjectKind::Large } else { ObjectKind::Small };
                (self.on_sample)(SampledObject {
                    object: object.object,
                    sample,
                    kind,
                    thread: thread_number(),
                    pool: Some(stop.pool),
                    class: Some(stop.class),
                    type_name: stop.type_name,
                    site: self.site.unwrap_or(Site::UNKNOWN),
                });
            }
        }
        self.drawn = Some(if drawn == usize::MAX { drawn } else { drawn - stop.size });
    }

    /// A draw that was made stays, unless the switch, the mean or the seed was changed.
    fn move_stop(&mut self, _left: usize) -> Option<usize> {
        self.draws.are_outdated().then(|| self.draws.next_distance())
    }
}

impl<F> fmt::Debug for PointSampler<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointSampler").field("mean", &self.draws.mean()).finish_non_exhaustive()
    }
}

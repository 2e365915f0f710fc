//! The control that reports every object of an allocation point.

#![forbid(unsafe_code)]

use core::fmt;

use tripoint_core::{Control, Event, EventHook, Stop};
use tripoint_stack::Site;

/// Reports every call on an allocation point: its [`Control`]. The hook is called with [`Event::Reserve`] or
/// [`Event::RefuseReserve`], with what was asked for; [`Event::Commit`] or [`Event::Abandon`];
/// [`Event::FreeAtPoint`], [`Event::EmptyPoint`], [`Event::PushFrame`] and [`Event::PopFrame`].
///
/// The switch is a function. While it returns true, every reserve takes the slow path, which takes some tens
/// of ns, and the time of the hook. While it returns false, the fast path has not one instruction more. The point looks
/// at the switch after each object that it reports, and after trips. So trip the point when
/// you switch its log on ([design/telemetry.md `.log`](crate::design::telemetry)).
///
/// What is not called on the point is not reported here: objects that are freed without it, such as a box that is
/// dropped, are reported by a [`LoggedPool`](crate::LoggedPool).
///
/// A commit is reported in the point's next slow path: before the next object is reserved, or
/// when the point is emptied or dropped.
///
/// ```
/// use core::sync::atomic::{AtomicBool, Ordering};
/// use std::sync::Mutex;
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::{BufferKind, ClientArena, ClientArenaOptions, Event, EventHook};
/// use tripoint_pools::{Mvff, MvffOptions};
/// use tripoint_telemetry::PointLogger;
///
/// static IS_ON: AtomicBool = AtomicBool::new(false);
///
/// struct Events(Mutex<Vec<Event>>);
///
/// impl EventHook for Events {
///     fn event(&self, event: Event) {
///         self.0.lock().unwrap().push(event);
///     }
/// }
///
/// let mut memory = Box::new_uninit_slice(1 << 20);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let pool = Mvff::create(&arena, MvffOptions::default())?;
/// let events = Events(Mutex::default());
/// let logger = PointLogger::new(|| IS_ON.load(Ordering::Relaxed), &events);
/// let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, logger)?;
/// point.alloc(1_u64)?; // not reported
/// IS_ON.store(true, Ordering::Relaxed);
/// point.tripper().trip();
/// point.alloc(2_u64)?; // reserve and commit
/// drop(point);
/// assert_eq!(events.0.lock().unwrap().len(), 2);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
///
/// To use another control at the same point, such as a [`PointSampler`](crate::PointSampler), join
/// both in a [`ControlPair`](tripoint_core::ControlPair).
pub struct PointLogger<W, H: EventHook> {
    is_on: W,
    hook: H,
    has_sites: bool,
    /// Whether the switch was on when the point last looked at it.
    is_logging: bool,
    /// Whether the hook was notified that a call began, and not that it is over.
    is_in_call: bool,
}

impl<W: Fn() -> bool, H: EventHook> PointLogger<W, H> {
    /// Reports to `hook` while `is_on` returns true. Both are called on the thread that owns the
    /// point, in a slow path, and may not use the point.
    pub const fn new(is_on: W, hook: H) -> Self {
        Self { is_on, hook, has_sites: false, is_logging: false, is_in_call: false }
    }

    /// Has the stack walked at each reserve, for [`EventHook::event_at`]. That takes 1 to 3 µs. Without
    /// the feature `std`, and on systems other than Linux, sites stay unknown.
    #[must_use]
    pub const fn with_sites(mut self) -> Self {
        self.has_sites = true;
        self
    }
}

impl<W, H: EventHook> PointLogger<W, H> {
    fn end(&mut self) {
        if core::mem::take(&mut self.is_in_call) {
            self.hook.end_call();
        }
    }
}

impl<W: Fn() -> bool, H: EventHook> Control for PointLogger<W, H> {
    const OBSERVES_CALLS: bool = true;

    fn next_stop(&mut self) -> usize {
        self.is_logging = (self.is_on)();
        if self.is_logging { 0 } else { usize::MAX }
    }

    fn reserved(&mut self, stop: Stop) {
        let Stop { pool, buffer, object, size, unit, requested, align, type_name, .. } = stop;
        let event = Event::Reserve { pool, buffer, object, size, unit, requested, align, type_name };
        if self.has_sites {
            self.hook.event_at(event, Site::here().frames());
        } else {
            self.hook.event(event);
        }
    }

    fn stopped(&mut self, Stop { pool, buffer, object, size, .. }: Stop) {
        self.hook.event(Event::Commit { pool, buffer, object, size });
    }

    fn withdrawn(&mut self, Stop { pool, buffer, object, .. }: Stop) {
        self.hook.event(Event::Abandon { pool, buffer, object });
    }

    fn called(&mut self, event: Event) {
        if self.is_logging {
            self.hook.event(event);
        }
    }

    fn begin_call(&mut self) {
        if self.is_logging && !self.is_in_call {
            self.hook.begin_call();
            self.is_in_call = true;
        }
    }

    fn end_call(&mut self) {
        self.end();
    }

    fn move_stop(&mut self, left: usize) -> Option<usize> {
        let distance = self.next_stop();
        (distance != left).then_some(distance)
    }
}

/// The call that drops the point is over, and one that unwound.
impl<W, H: EventHook> Drop for PointLogger<W, H> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<W, H: EventHook> fmt::Debug for PointLogger<W, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointLogger").field("is_logging", &self.is_logging).finish_non_exhaustive()
    }
}

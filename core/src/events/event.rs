//! Events of slow paths, which the program that owns the arena can observe.

use crate::primitive::defer::Defer;
use crate::shared::counters::BufferKind;
use crate::values::addr::{Addr, AddrRange};
use crate::values::pool_id::PoolId;
use crate::values::step_time::StepTime;

/// Declares the events of the table ([`for_each_event`](crate::for_each_event)).
macro_rules! declare {
    ([$(#[$about:meta])* pub enum $Event:ident] $(
        $(#[$doc:meta])*
        $number:literal: $name:ident, $probe:ident, since $since:literal $(, of $arena:ident)? {
            $($(#[$field_doc:meta])* $field:ident: $type:ty as $form:ident,)*
        } $(parts {
            $($(#[$part_doc:meta])* $part:ident: $part_type:ty as $words:tt,)+
        })? $(texts {
            $($(#[$text_doc:meta])* $text:ident: $text_type:ty,)+
        })?
    )+) => {
        $(#[$about])*
        pub enum $Event {
            $($(#[$doc])* $name {
                $($(#[$field_doc])* $field: $type,)*
                $($($(#[$part_doc])* $part: $part_type,)+)?
                $($($(#[$text_doc])* $text: $text_type,)+)?
            },)+
        }
    };
}

crate::for_each_event! {
    declare

    /// Something that a slow path did. There is one list for all layers. Sizes are in bytes.
    ///
    /// | events | are reported by |
    /// |---|---|
    /// | of arenas, pools and points; trips, flips, commits that failed | the arena in which they happen, to its hook |
    /// | of heaps: stops and collections | the heap, to the hook of its arena |
    /// | of frames and of single objects | a control or a store that was switched on to report them |
    /// | of the contract | the contract |
    ///
    /// `buffer` is the address of a point's buffer, which tells the points of an arena apart. After a
    /// point is destroyed, another point may have its buffer. `heap` is the address of a collector's heap, which tells
    /// the heaps of an arena apart as long as each exists.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Event
}

/// What a collection in steps kept and freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// The bytes that were kept: in objects, and in buffers that are still attached.
    pub kept: usize,
    /// The bytes that were freed.
    pub freed: usize,
}

/// A hook that observes [`Event`]s.
///
/// It is called on the thread that runs the slow path, sometimes while a pool is locked. So
/// it must not call any pool of the arena that it observes, not even to read sizes, and should
/// return soon.
///
/// A hook should not unwind. If one does, the step that it observes was already done and
/// counted, or is done nevertheless, so nothing is lost; tracts that a pool was about to get
/// ([`Event::Extend`]) are returned to the arena. The exception is an event of memory in the middle of a
/// collection, between [`Event::BeginCollection`] and [`Event::EndCollection`] on the same thread: if a hook
/// unwinds there, the process ends.
///
/// A pair of hooks is a hook, and so is a reference to a hook, shared or exclusive. The second of a
/// pair observes an event even if the first unwinds.
///
/// ```
/// use tripoint_core::{Counter, Event, EventHook};
///
/// struct Growth(Counter);
///
/// impl EventHook for Growth {
///     fn event(&self, event: Event) {
///         if let Event::Grow { size } = event {
///             self.0.add(size as u64);
///         }
///     }
/// }
///
/// let growth = Growth(Counter::new());
/// growth.event(Event::Grow { size: 4096 }); // an arena's call
/// assert_eq!(growth.0.get(), 4096);
/// ```
pub trait EventHook: Sync {
    /// Observes one event.
    fn event(&self, event: Event);

    /// Observes one event whose call site is known: return addresses, the innermost
    /// first. By default this calls [`event`](EventHook::event), without the site.
    fn event_at(&self, event: Event, site: &[usize]) {
        let _ = site;
        self.event(event);
    }
}

impl<H: EventHook + ?Sized> EventHook for &H {
    fn event(&self, event: Event) {
        (**self).event(event);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        (**self).event_at(event, site);
    }
}

/// What `Box::leak` returns is a hook as well.
impl<H: EventHook + ?Sized> EventHook for &mut H {
    fn event(&self, event: Event) {
        (**self).event(event);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        (**self).event_at(event, site);
    }
}

/// Both hooks observe all events, the first hook first.
impl<A: EventHook, B: EventHook> EventHook for (A, B) {
    fn event(&self, event: Event) {
        let _second = Defer::new(|| self.1.event(event));
        self.0.event(event);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        let _second = Defer::new(|| self.1.event_at(event, site));
        self.0.event_at(event, site);
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use crate::primitive::{AtomicUsize, Ordering};
    use std::sync::Mutex;
    use std::vec::Vec;

    /// Records what it observes, and unwinds at shrinks.
    #[derive(Default)]
    struct Recorder(Mutex<Vec<(Event, Vec<usize>)>>);

    impl Recorder {
        fn take(&self) -> Vec<(Event, Vec<usize>)> {
            core::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl EventHook for Recorder {
        fn event(&self, event: Event) {
            self.event_at(event, &[]);
        }

        fn event_at(&self, event: Event, site: &[usize]) {
            self.0.lock().unwrap().push((event, site.to_vec()));
            if let Event::Shrink { .. } = event {
                std::panic::resume_unwind(std::boxed::Box::new("on purpose"));
            }
        }
    }

    /// A hook that takes no sites.
    struct Siteless<'r>(&'r Recorder);

    impl EventHook for Siteless<'_> {
        fn event(&self, event: Event) {
            self.0.event(event);
        }
    }

    #[test]
    fn both_of_a_pair_observe_events_and_their_sites() {
        let (first, second, third) = (Recorder::default(), Recorder::default(), Recorder::default());
        let hooks = (&first, (&second, Siteless(&third)));
        let (grow, refused) = (Event::Grow { size: 1 }, Event::GrowthRefused { size: 2 });
        hooks.event(grow);
        hooks.event_at(refused, &[7, 8]);
        for hook in [&first, &second] {
            assert_eq!(hook.take(), [(grow, Vec::new()), (refused, Vec::from([7, 8]))]);
        }
        assert_eq!(third.take(), [(grow, Vec::new()), (refused, Vec::new())]);
    }

    #[test]
    fn an_exclusive_reference_to_a_hook_observes_what_the_hook_does() {
        let (mut first, second) = (Recorder::default(), Recorder::default());
        let hooks = (&mut first, &second);
        let (grow, refused) = (Event::Grow { size: 1 }, Event::GrowthRefused { size: 2 });
        hooks.event(grow);
        hooks.event_at(refused, &[7, 8]);
        for hook in [&first, &second] {
            assert_eq!(hook.take(), [(grow, Vec::new()), (refused, Vec::from([7, 8]))]);
        }
    }

    /// Counts events.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl EventHook for Count {
        fn event(&self, _: Event) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_second_of_a_pair_observes_what_the_first_unwinds_at() {
        let (first, second) = (Recorder::default(), Count::default());
        let hooks = (&first, &second);
        let unwound =
            |event: &dyn Fn()| std::panic::catch_unwind(core::panic::AssertUnwindSafe(event)).is_err();
        assert!(unwound(&|| hooks.event(Event::Shrink { size: 1 })));
        assert!(unwound(&|| hooks.event_at(Event::Shrink { size: 1 }, &[3])));
        assert_eq!(second.0.load(Ordering::Relaxed), 2);
    }
}

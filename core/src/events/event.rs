//! Events of slow paths, which the program that owns the arena can observe.

use crate::events::contract_words::ContractWords;
use crate::primitive::AtomicUsize;
use crate::primitive::defer::Defer;
use crate::shared::counters::BufferKind;
use crate::values::addr::{Addr, AddrRange};
use crate::values::error::{Error, Result};
use crate::values::pool_id::PoolId;
use crate::values::pool_options::PoolOptions;
use crate::values::rank::RankSet;
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
    /// | of heaps: mutators, roots, frozen segments, stops, collections and what they flip | the heap, to the hook of its arena |
    /// | of calls: frames, single objects, what was refused | a control or a store that was switched on to report them |
    /// | of packets | their pool, if it was created to report them |
    /// | of the contract | the contract |
    ///
    /// `buffer` is the address of a point's buffer, which tells the points of an arena apart. After a
    /// point is destroyed, another point may have its buffer. `heap` is the address of a collector's heap, which tells
    /// the heaps of an arena apart as long as each exists; `root` and `segment` do the same for the roots and the frozen
    /// segments of a heap.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Event
}

impl Event {
    /// The kind of an [`Event::Violation`] of an armed thread that no amnesty excused.
    pub const VIOLATION: &str = "violation";

    /// The kind of an [`Event::Violation`] that is an alarm.
    pub const ALARM: &str = "alarm";

    /// Whether an [`Event::Violation`] of this kind says that a contract was violated. Others say of what was excused or
    /// rehearsed, or was seen from outside of a thread without a contract.
    #[must_use]
    pub fn is_breach(kind: &str) -> bool {
        [Self::VIOLATION, Self::ALARM].contains(&kind)
    }
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

    /// Is notified that a call of the program begins on this thread, all events of which follow before
    /// [`end_call`](EventHook::end_call). A hook that has to know in which order calls of several threads are carried out
    /// holds a lock from here to there. Only controls and stores that report calls notify it, while they report.
    fn begin_call(&self) {}

    /// Is notified that the call which began last on this thread is over.
    fn end_call(&self) {}

    /// Words in which a steady-state contract that this hook observes keeps what it counts of its threads, so that
    /// those who read what the hook records find there the numbers by which the contract judges. At least
    /// [`ContractWords::of_thread`] for each of its threads, zeroed, and nothing else writes them. `None` if the hook
    /// keeps none, which is the default: the contract keeps them itself then. A hook that passes events on to another one
    /// has to pass this on, too: otherwise readers of the other find events, and no counts.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) if it has words, and not for this contract.
    fn words_for(&self, contract: &ContractWords<'_>) -> Result<Option<&'static [AtomicUsize]>> {
        let _ = contract;
        Ok(None)
    }
}

impl<H: EventHook + ?Sized> EventHook for &H {
    fn event(&self, event: Event) {
        (**self).event(event);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        (**self).event_at(event, site);
    }

    fn begin_call(&self) {
        (**self).begin_call();
    }

    fn end_call(&self) {
        (**self).end_call();
    }

    fn words_for(&self, contract: &ContractWords<'_>) -> Result<Option<&'static [AtomicUsize]>> {
        (**self).words_for(contract)
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

    fn begin_call(&self) {
        (**self).begin_call();
    }

    fn end_call(&self) {
        (**self).end_call();
    }

    fn words_for(&self, contract: &ContractWords<'_>) -> Result<Option<&'static [AtomicUsize]>> {
        (**self).words_for(contract)
    }
}

/// Both hooks observe all events, the first hook first. A contract has the words of the first that has any.
impl<A: EventHook, B: EventHook> EventHook for (A, B) {
    fn event(&self, event: Event) {
        let _second = Defer::new(|| self.1.event(event));
        self.0.event(event);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        let _second = Defer::new(|| self.1.event_at(event, site));
        self.0.event_at(event, site);
    }

    fn begin_call(&self) {
        self.0.begin_call();
        self.1.begin_call();
    }

    fn end_call(&self) {
        let _first = Defer::new(|| self.0.end_call());
        self.1.end_call();
    }

    fn words_for(&self, contract: &ContractWords<'_>) -> Result<Option<&'static [AtomicUsize]>> {
        match self.0.words_for(contract)? {
            None => self.1.words_for(contract),
            words => Ok(words),
        }
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

    /// Has words for contracts of one thread.
    struct Keeps(&'static [AtomicUsize]);

    impl EventHook for Keeps {
        fn event(&self, _: Event) {}

        fn words_for(&self, contract: &ContractWords<'_>) -> Result<Option<&'static [AtomicUsize]>> {
            let why = "too many threads";
            if contract.threads == 1 { Ok(Some(self.0)) } else { Err(crate::Error::Parameter(why)) }
        }
    }

    #[test]
    fn a_contract_has_the_words_of_the_first_hook_that_has_any() {
        static WORDS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
        let (none, mut one, two) = (Count::default(), Keeps(&WORDS[..1]), Keeps(&WORDS[1..]));
        let contract =
            ContractWords { threads: 1, thread_words: 1, numbers: 2, classes: &["a", "b"], detectors: &[] };
        assert_eq!(contract.of_thread(), 5);
        let words = |hook: &dyn EventHook| hook.words_for(&contract).unwrap().map(<[_]>::len);
        assert_eq!(words(&none), None);
        assert_eq!(words(&(&none, &two)), Some(2));
        assert_eq!(words(&((&none, &mut one), &two)), Some(1));
        let many = ContractWords { threads: 2, ..contract };
        assert!((&none, &two).words_for(&many).is_err(), "no other is asked after a refusal");
        assert!((&two, &none).words_for(&many).is_err(), "no other is asked after a refusal");
    }
}

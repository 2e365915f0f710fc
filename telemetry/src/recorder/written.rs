//! What is written of each event of the table ([design/telemetry.md `.kinds`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::{Addr, Event};

use crate::format::EventKind;
use crate::recorder::values::{Parts, Text, Word};

/// How the addresses of an event are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) left_out: bool,
}

impl Addresses {
    /// The address, or zero if addresses are left out.
    #[inline(always)]
    const fn of(self, address: u64) -> u64 {
        if self.left_out { 0 } else { address }
    }
}

/// A way to write an event.
pub(crate) trait Way {
    /// Writes the event if its kind is on. Returns false if that is not possible in this way; then nothing has
    /// changed.
    fn write<const FIELDS: usize, const TEXTS: usize>(
        self,
        kind: EventKind,
        texts: [&str; TEXTS],
        fields: impl FnOnce(Addresses) -> [u64; FIELDS],
    ) -> bool;
}

/// The word that is written of a field.
macro_rules! word_of {
    (Handle, $field:expr, $number:ident, $addresses:ident) => {
        $number($field)
    };
    (Address, $field:expr, $number:ident, $addresses:ident) => {
        $addresses.of($field.word())
    };
    ($form:ident, $field:expr, $number:ident, $addresses:ident) => {
        $field.word()
    };
}

/// Defines a function for each event of the table, with the name of its probe, and one for all.
macro_rules! define {
    ([] $(
        $(#[$doc:meta])*
        $kind:literal: $name:ident, $probe:ident, since $since:literal $(, of $arena:ident)? {
            $($(#[$field_doc:meta])* $field:ident: $type:ty as $form:ident,)*
        } $(parts {
            $($(#[$part_doc:meta])* $part:ident: $part_type:ty as {
                $($(#[$word_doc:meta])* $word:ident: $word_form:ident,)+
            },)+
        })? $(texts {
            $($(#[$text_doc:meta])* $text:ident: $text_type:ty,)+
        })?
    )+) => {
        $(
            /// Writes this event in some way. Returns false if that is not possible, or if it is another event;
            /// then nothing has changed. `number` returns the number of a buffer or a heap.
            // Events are matched by reference: their fields are read when they are written.
            #[allow(unused_variables, reason = "some events have no address, and no buffer")]
            #[inline(always)]
            pub(super) fn $probe(
                arena: u64,
                event: &Event,
                number: impl Fn(Addr) -> u64,
                way: impl Way,
            ) -> bool {
                let Event::$name { $($field,)* $($($part,)+)? $($($text,)+)? } = event else { return false };
                way.write(EventKind::$name, [$($($text.text()),+)?], |addresses| {
                    $(let $arena = arena;)?
                    $($(let [$($word),+] = $part.parts();)+)?
                    [
                        $($arena,)?
                        $(word_of!($form, *$field, number, addresses),)*
                        $($($(word_of!($word_form, $word, number, addresses),)+)+)?
                    ]
                })
            }
        )+

        /// Writes any event by the function of its kind.
        #[allow(
            clippy::redundant_closure_call,
            reason = "each event has a stack frame of its own, even in a build without optimisation"
        )]
        #[cold]
        #[inline(never)]
        pub(crate) fn any(arena: u64, event: &Event, number: impl Fn(Addr) -> u64, way: impl Way) -> bool {
            match event {
                $(Event::$name { .. } => (|| $probe(arena, event, number, way))(),)+
                _ => false,
            }
        }
    };
}

tripoint_core::for_each_event! { define }

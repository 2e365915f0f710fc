//! Static probes: events for tracers of the system
//! ([design/telemetry.md `.probes`](crate::design::telemetry)).

use probe::probe;
use tripoint_core::{Event, EventHook};

use crate::format::MAX_TEXT_BYTES;
use crate::format::text::cut;
use crate::recorder::values::{Parts, Text, Word};

/// A hook that fires a static probe (USDT) for each event, for tracers such as bpftrace, perf, SystemTap
/// and gdb. It needs no [`Telemetry`](crate::Telemetry).
///
/// The provider is `tripoint`. A probe has the name of its event's [kind](crate::format::EventKind), with `_` for
/// each space, and the kind's [fields](crate::format::EventKind::fields) as arguments: texts first, then words, then
/// the arena, then the site.
///
/// - a number, an address or a handle is itself: buffers have their address here;
/// - a text is the address of a copy of at most 64 bytes that ends with a zero, as C's strings do;
/// - a site is two arguments: the address of its code addresses, the innermost first, and how many there are.
///
/// What the addresses of texts and sites point to is there while the probe fires.
///
/// As long as no program traces it, a probe is one instruction that does nothing. Texts are copied all the same.
///
/// A pair of hooks is a hook, so an arena can have probes beside another hook:
///
/// ```
/// use tripoint_core::{ClientArena, ClientArenaOptions, Counter, Event, EventHook, PoolClass};
/// use tripoint_pools::{Mvff, MvffOptions};
/// use tripoint_telemetry::Probes;
///
/// struct Events(Counter);
///
/// impl EventHook for Events {
///     fn event(&self, _: Event) {
///         self.0.add(1);
///     }
/// }
///
/// let hooks = (Events(Counter::new()), Probes::of_arena(1));
/// let mut memory = Box::new_uninit_slice(1 << 20);
/// let options = ClientArenaOptions { event_hook: Some(&hooks), ..ClientArenaOptions::default() };
/// let arena = ClientArena::create(&mut memory, options)?;
/// let pool = Mvff::create(&arena, MvffOptions::default())?; // fires tripoint:create_pool
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
///
/// This is on Linux, x86-64 and AArch64.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probes {
    arena: u32,
}

impl Probes {
    /// Probes of no arena: for the contract, and for the program's global allocator.
    #[must_use]
    pub const fn new() -> Self {
        Self::of_arena(0)
    }

    /// Probes of the arena with this number, which is the probes' argument `arena`. The program chooses it; beside
    /// a hook of telemetry it should be [`ArenaHook::arena`](crate::ArenaHook::arena).
    #[must_use]
    pub const fn of_arena(number: u32) -> Self {
        Self { arena: number }
    }
}

impl EventHook for Probes {
    fn event(&self, event: Event) {
        fire(self.arena, &event, &[]);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        fire(self.arena, &event, site);
    }
}

/// A text as C has it.
struct Copied([u8; MAX_TEXT_BYTES + 1]);

impl Copied {
    fn new(text: &str) -> Self {
        let mut bytes = [0; MAX_TEXT_BYTES + 1];
        let kept = cut(text, MAX_TEXT_BYTES);
        bytes[..kept.len()].copy_from_slice(kept);
        Self(bytes)
    }

    /// Where the text lies. The probe's code reads memory, as far as the compiler knows, so the copy is
    /// there when it runs.
    fn address(&self) -> usize {
        self.0.as_ptr().expose_provenance()
    }
}

/// Defines the probes of the events of the table.
macro_rules! define {
    ([] $(
        $(#[$doc:meta])*
        $number:literal: $name:ident, $probe:ident, since $since:literal $(, of $arena:ident)? {
            $($(#[$field_doc:meta])* $field:ident: $type:ty as $form:ident,)*
        } $(parts {
            $($(#[$part_doc:meta])* $part:ident: $part_type:ty as {
                $($(#[$word_doc:meta])* $word:ident: $word_form:ident,)+
            },)+
        })? $(texts {
            $($(#[$text_doc:meta])* $text:ident: $text_type:ty,)+
        })?
    )+) => {
        /// Fires the probe of an event. Each has one place in the program: this function is not copied into others.
        /// The copies of texts live until the probe has fired.
        #[inline(never)]
        fn fire(arena: u32, event: &Event, site: &[usize]) {
            match *event {
                $(Event::$name { $($field,)* $($($part,)+)? $($($text,)+)? } => {
                    $(let $arena = arena;)?
                    $($(let [$($word),+] = $part.parts();)+)?
                    probe!(
                        tripoint,
                        $probe,
                        $($(Copied::new($text.text()).address(),)+)?
                        $($field.word(),)*
                        $($($($word,)+)+)?
                        $($arena,)?
                        site.as_ptr().expose_provenance(),
                        site.len()
                    );
                })+
                _ => {}
            }
        }
    };
}

tripoint_core::for_each_event! { define }

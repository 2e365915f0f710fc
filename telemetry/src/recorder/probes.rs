//! Static probes: events for tracers of the system
//! ([design/telemetry.md `.probes`](crate::design::telemetry)).

use probe::probe;
use tripoint_core::{Event, EventHook, PoolId};

use crate::format::MAX_TEXT_BYTES;
use crate::format::text::cut;
use crate::recorder::counters::kind_name;
use crate::recorder::heaps::numbers_of_step;

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

/// A probe: texts, words and the site. The copies of texts are there until the probe has fired.
macro_rules! fire {
    ($site:ident, $name:ident, [$($text:expr),+] $(, $word:expr)*) => {
        fire!($site, $name $(, Copied::new($text).address())* $(, $word)*)
    };
    ($site:ident, $name:ident $(, $word:expr)*) => {
        probe!(tripoint, $name, $($word,)* $site.as_ptr().expose_provenance(), $site.len())
    };
}

/// Fires the probe of an event. Each has one place in the program: this function is not copied into others.
#[inline(never)]
fn fire(arena: u32, event: &Event, site: &[usize]) {
    let number = |pool: PoolId| pool.get();
    match *event {
        Event::CreateArena { range } => fire!(site, create_arena, range.base().get(), range.size(), arena),
        Event::DestroyArena { range } => fire!(site, destroy_arena, range.base().get(), range.size(), arena),
        Event::Grow { size } => fire!(site, grow, size, arena),
        Event::Shrink { size } => fire!(site, shrink, size, arena),
        Event::GrowthRefused { size } => fire!(site, growth_refused, size, arena),
        Event::CreatePool { pool, class } => fire!(site, create_pool, [class], number(pool), arena),
        Event::DestroyPool { pool, class } => fire!(site, destroy_pool, [class], number(pool), arena),
        Event::Extend { pool, base, size } => fire!(site, extend, number(pool), base.get(), size, arena),
        Event::Retract { pool, base, size } => fire!(site, retract, number(pool), base.get(), size, arena),
        Event::Sample { kind, pool, class, object, size, offset, mean, type_name } => {
            let (class, name) = (class.unwrap_or(""), type_name.unwrap_or(""));
            let pool = pool.map_or(0, number);
            fire!(site, sample, [kind, class, name], pool, object.get(), size, offset, mean, arena);
        }
        Event::Alloc { pool, object, size, align, type_name } => {
            let name = type_name.unwrap_or("");
            fire!(site, alloc, [name], number(pool), object.get(), size, align, arena);
        }
        Event::Free { pool, object, size, align } => {
            fire!(site, free, number(pool), object.get(), size, align, arena);
        }
        Event::Phase { from, to } => fire!(site, phase, [from, to]),
        Event::Violation { kind, class, slot, count, bytes, address, call } => {
            fire!(site, violation, [kind, class], slot, count, bytes, address, call);
        }
        Event::BeginAmnesty { slot, reason } => fire!(site, begin_amnesty, [reason], slot),
        Event::EndAmnesty { slot, reason } => fire!(site, end_amnesty, [reason], slot),
        Event::BeginStop { .. }
        | Event::Stop { .. }
        | Event::PostponeStop { .. }
        | Event::EndStop { .. }
        | Event::GiveWay { .. }
        | Event::GoOn { .. }
        | Event::BeginCollection { .. }
        | Event::BeginSweep { .. }
        | Event::EndCollection { .. }
        | Event::BeginStep { .. }
        | Event::EndStep { .. } => fire_at_heap(arena, event, site),
        _ => fire_at_point(arena, event, site),
    }
}

/// Those of heaps.
#[inline(never)]
fn fire_at_heap(arena: u32, event: &Event, site: &[usize]) {
    match *event {
        Event::BeginStop { heap, mutator } => fire!(site, begin_stop, heap.get(), mutator, arena),
        Event::Stop { heap } => fire!(site, stop, heap.get(), arena),
        Event::PostponeStop { heap, mutator } => fire!(site, postpone_stop, heap.get(), mutator, arena),
        Event::EndStop { heap } => fire!(site, end_stop, heap.get(), arena),
        Event::GiveWay { heap, mutator } => fire!(site, give_way, heap.get(), mutator, arena),
        Event::GoOn { heap, mutator } => fire!(site, go_on, heap.get(), mutator, arena),
        Event::BeginCollection { heap, reason } => {
            fire!(site, begin_collection, [reason], heap.get(), arena);
        }
        Event::EndCollection { heap, examined, kept, freed } => {
            fire!(site, end_collection, heap.get(), examined, kept, freed, arena);
        }
        Event::BeginSweep { heap, copied } => fire!(site, begin_sweep, heap.get(), copied, arena),
        Event::BeginStep { heap } => fire!(site, begin_step, heap.get(), arena),
        Event::EndStep { heap, examined, collected, time } => {
            let [done, kept, freed, allowed, taken] = numbers_of_step(collected, time);
            fire!(site, end_step, heap.get(), examined, done, kept, freed, allowed, taken, arena);
        }
        _ => {}
    }
}

/// Those of points.
#[inline(never)]
fn fire_at_point(arena: u32, event: &Event, site: &[usize]) {
    match *event {
        Event::CreatePoint { pool, buffer, kind } => {
            fire!(site, create_point, [kind_name(kind)], pool.get(), buffer.get(), arena);
        }
        Event::DestroyPoint { pool, buffer } => {
            fire!(site, destroy_point, pool.get(), buffer.get(), arena);
        }
        Event::Fill { pool, buffer, base, size } => {
            fire!(site, fill, pool.get(), buffer.get(), base.get(), size, arena);
        }
        Event::Empty { pool, buffer, base, size } => {
            fire!(site, empty, pool.get(), buffer.get(), base.get(), size, arena);
        }
        Event::Trip { pool, buffer, requests } => {
            fire!(site, trip, pool.get(), buffer.get(), requests, arena);
        }
        Event::Flip { pool, buffer, objects } => {
            let base = objects.base().get();
            fire!(site, flip, pool.get(), buffer.get(), base, objects.size(), arena);
        }
        Event::CommitFailed { pool, buffer, object, size } => {
            fire!(site, commit_failed, pool.get(), buffer.get(), object.get(), size, arena);
        }
        Event::PushFrame { pool, buffer, init } => {
            fire!(site, push_frame, pool.get(), buffer.get(), init.get(), arena);
        }
        Event::PopFrame { pool, buffer, init, size } => {
            fire!(site, pop_frame, pool.get(), buffer.get(), init.get(), size, arena);
        }
        Event::Reserve { pool, buffer, object, size, unit, type_name } => {
            let (pool, buffer, object) = (pool.get(), buffer.get(), object.get());
            fire!(site, reserve, [type_name.unwrap_or("")], pool, buffer, object, size, unit, arena);
        }
        Event::Commit { pool, buffer, object, size } => {
            fire!(site, commit, pool.get(), buffer.get(), object.get(), size, arena);
        }
        Event::Abandon { pool, buffer, object } => {
            fire!(site, abandon, pool.get(), buffer.get(), object.get(), arena);
        }
        _ => {}
    }
}

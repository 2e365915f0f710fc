//! What an arena and its pools report, and that a hook that unwinds takes nothing away
//! (design/core.md `.event`).

use core::mem::MaybeUninit;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{Mutex, OnceLock};

use tripoint_core::{
    Addr, AddrRange, Arena, Block, Check, CheckLevel, ClientArena, ClientArenaOptions, Event, EventHook,
    PoolClass, PoolId, PoolOptions,
};

use crate::GRAIN;
use crate::whole::Whole;

/// What the hook of these tests unwinds with.
struct OnPurpose;

/// Keeps all events, and unwinds at one of them.
#[derive(Default)]
struct Recorder {
    events: Mutex<Vec<Event>>,
    /// The number of the event to unwind at, counted from one.
    last: usize,
}

impl Recorder {
    fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }
}

impl EventHook for Recorder {
    fn event(&self, event: Event) {
        let number = {
            let mut events = self.events.lock().unwrap();
            events.push(event);
            events.len()
        };
        if number == self.last {
            resume_unwind(Box::new(OnPurpose));
        }
    }
}

fn observed<'m>(memory: &'m mut [MaybeUninit<u8>], hook: &'m Recorder) -> ClientArena<'m> {
    let options = ClientArenaOptions { grain: Some(GRAIN), event_hook: Some(hook) };
    ClientArena::create(memory, options).unwrap()
}

fn retract(pool: &Whole<&ClientArena<'_>>, block: Block) {
    // SAFETY: the test got the block from `extend` of this header, returns it once, and never uses it.
    unsafe { pool.header().retract(block) };
}

#[test]
fn an_arena_and_its_pools_report_their_lives() {
    let (recorder, mut memory) = (Recorder::default(), Box::new_uninit_slice(64 << 10));
    let given = AddrRange::with_size(Addr::of(memory.as_ptr()), memory.len()).unwrap();
    let arena = observed(&mut memory, &recorder);
    let range = arena.range();
    let pool = Whole::create(&arena);
    let id = pool.header().id();
    let block = pool.header().extend(3 * GRAIN).unwrap();
    let (first, rest) = block.split_at(GRAIN).unwrap();
    retract(&pool, rest);
    assert!(pool.header().extend(usize::MAX).is_err());
    drop(pool);
    drop(arena);
    let [base, rest_base] = [first, rest].map(|block| block.range().base());
    let expected = [
        Event::CreateArena {
            grain: GRAIN,
            commit_limit: range.size(),
            commit_policy: 0,
            prefault_size: 0,
            range,
            memory: given,
            class: "ClientArena",
        },
        Event::CreatePool { pool: id, options: PoolOptions::NONE, class: "Whole" },
        Event::Extend { pool: id, base, size: 3 * GRAIN },
        Event::Retract { pool: id, base: rest_base, size: 2 * GRAIN },
        Event::DestroyPool { pool: id, class: "Whole" },
        Event::DestroyArena { range },
    ];
    assert_eq!(recorder.events(), expected);
}

/// An arena whose hook looks at the arena.
static OBSERVED: OnceLock<ClientArena<'static>> = OnceLock::new();

/// The tracts that its pools got.
static EXTENDED: Mutex<Vec<Addr>> = Mutex::new(Vec::new());

/// What tracts it returned, and whose each of those in [`EXTENDED`] was when that was reported.
static OWNERS: Mutex<Vec<(Event, Vec<Option<PoolId>>)>> = Mutex::new(Vec::new());

struct Owners;

impl EventHook for Owners {
    fn event(&self, event: Event) {
        match event {
            Event::Extend { base, .. } => EXTENDED.lock().unwrap().push(base),
            Event::Retract { .. } | Event::DestroyPool { .. } => {
                let owner = |base: &Addr| OBSERVED.get().unwrap().pool_of(*base);
                let owners = EXTENDED.lock().unwrap().iter().map(owner).collect();
                OWNERS.lock().unwrap().push((event, owners));
            }
            _ => {}
        }
    }
}

/// Otherwise a hook that forgets what is in this memory could forget what another pool has put there since
/// (design/core.md `.event.order`).
#[test]
fn tracts_are_the_pool_s_until_their_return_is_reported() {
    let arena = OBSERVED.get_or_init(|| {
        let memory = Box::leak(Box::new_uninit_slice(64 << 10));
        let options = ClientArenaOptions { grain: Some(GRAIN), event_hook: Some(&Owners) };
        ClientArena::create(memory, options).unwrap()
    });
    let pool = Whole::create(arena);
    let id = pool.header().id();
    let [first, second] = [(); 2].map(|()| pool.header().extend(GRAIN).unwrap());
    let (base, size) = (first.range().base(), first.size());
    retract(&pool, first);
    drop(pool);
    let expected = [
        (Event::Retract { pool: id, base, size }, vec![Some(id), Some(id)]),
        (Event::DestroyPool { pool: id, class: "Whole" }, vec![None, Some(id)]),
    ];
    assert_eq!(*OWNERS.lock().unwrap(), expected);
    assert_eq!([first, second].map(|block| arena.pool_of(block.range().base())), [None, None]);
}

/// Returns what `step` returns, or none if the hook unwinds.
fn attempt<R>(step: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(value) => Some(value),
        Err(thrown) if thrown.is::<OnPurpose>() => None,
        Err(thrown) => resume_unwind(thrown),
    }
}

#[test]
fn a_hook_that_unwinds_at_any_of_them_takes_nothing_away() {
    for last in 1..=7 {
        let recorder = Recorder { last, ..Recorder::default() };
        let mut memory = Box::new_uninit_slice(64 << 10);
        if let Some(arena) = attempt(|| observed(&mut memory, &recorder)) {
            if let Some(pool) = attempt(|| Whole::create(&arena)) {
                let header = pool.header();
                let extended = attempt(|| header.extend(2 * GRAIN).unwrap());
                // Tracts that the pool did not get are the arena's.
                assert_eq!(header.total(), extended.map_or(0, |block| block.size()));
                assert_eq!(arena.next_tracts(header.id(), arena.range().base()), extended);
                extended.and_then(|block| attempt(|| retract(&pool, block)));
                assert_eq!(header.total(), 0);
                attempt(|| drop(pool));
            }
            arena.check(CheckLevel::Deep).unwrap();
            let sizes = arena.sizes();
            assert_eq!(sizes.spare, sizes.committed - sizes.own, "every grain is spare");
            attempt(|| drop(arena));
        }
        let events = recorder.events();
        assert!(
            events.len() >= last.min(6) && matches!(events.last(), Some(Event::DestroyArena { .. })),
            "{events:?}"
        );
    }
}

//! Logs that no program can have made, though their checks are right: the replay is refused or diverges, and nothing
//! else happens (design/point-log.md `.replay.safe`).

use tripoint::author::PoolId;
use tripoint::events::{Event, EventHook as _};
use tripoint::{Addr, Mvff, MvffOptions, PoolClass as _};

use super::programs::{self, Log, Logged};
use super::replay;
use crate::run::Ran;

/// A pool and a point in it, of which a log is to say what they did not do.
struct Liar<'l> {
    log: &'l Log,
    pool: PoolId,
    buffer: Addr,
    /// An array of six words, which was allocated at the point as a batch.
    words: Addr,
}

impl Liar<'_> {
    fn free(&self, object: Addr, size: usize, align: usize) {
        self.log.event(Event::Free { pool: self.pool, object, size, align });
    }
}

/// The log of a program that allocates six words, and then says something else.
fn log_of(lie: impl FnOnce(&Liar<'_>)) -> Logged {
    programs::log_of(256 << 10, |arena, log| {
        let pool = programs::logged(Mvff::create(arena, MvffOptions::default()).unwrap(), log);
        let mut point = programs::point(&pool, log);
        let mut batch = point.batch::<u64>(6).unwrap();
        while batch.push(0).is_ok() {}
        let words = Addr::of(batch.commit().as_ptr());
        point.empty();
        lie(&Liar { log, pool: pool.header().id(), buffer: point.buffer().id(), words });
    })
}

/// Replays a lie on the same class, and on another one.
fn replays(Logged { log, .. }: &Logged) -> [Ran; 2] {
    [replay(&[], log), replay(&["--on", "tlsf", "--json"], log)]
}

/// On the same class the lie is refused for this reason; on another one it is left out.
fn assert_refused(logged: &Logged, why: &str) {
    let [same, other] = replays(logged);
    assert_eq!(same.status, Some(2), "{}{}", same.out, same.err);
    assert!(same.err.contains("event ") && same.err.contains(why), "{}", same.err);
    assert_eq!(other.status, Some(0), "{}", other.err);
    assert!(other.json()["otherwise"]["left_out"].as_u64() > Some(0), "{}", other.out);
}

#[test]
fn what_lies_between_two_granules_of_a_batch_is_not_freed() {
    for offset in [8, 24, 40] {
        let logged = log_of(|liar| liar.free(Addr::new(liar.words.get() + offset), 8, 8));
        assert_refused(&logged, "with another layout than it has");
    }
}

#[test]
fn an_object_that_is_less_aligned_than_its_layout_is_not_freed() {
    assert_refused(&log_of(|liar| liar.free(liar.words, 48, 1 << 20)), "with another layout than it has");
}

#[test]
fn a_reservation_of_which_nothing_was_committed_is_no_object() {
    let logged = log_of(|&Liar { log, pool, buffer, .. }| {
        let object = Addr::new(64);
        log.event(Event::Reserve {
            pool,
            buffer,
            object,
            size: 32,
            unit: 32,
            requested: 0,
            align: 1,
            type_name: None,
        });
        log.event(Event::Commit { pool, buffer, object, size: 16 });
        log.event(Event::Free { pool, object, size: 16, align: 1 });
    });
    assert_refused(&logged, "fewer bytes were committed than any object has");
}

#[test]
fn more_trips_than_a_replay_can_request_are_refused() {
    let logged = log_of(|&Liar { log, pool, buffer, .. }| {
        for requests in [usize::MAX, 2] {
            log.event(Event::Trip { pool, buffer, requests });
        }
        log.event(Event::EmptyPoint { pool, buffer });
    });
    let [same, other] = replays(&logged);
    for ran in [same, other] {
        assert!(ran.status == Some(2) && ran.err.contains("more trips than are replayed"), "{}", ran.err);
    }
}

/// The sums of a log may be larger than any number.
#[test]
fn fills_of_all_memory_diverge() {
    let logged = log_of(|&Liar { log, pool, buffer, words }| {
        for size in [usize::MAX, usize::MAX] {
            log.event(Event::Fill { pool, buffer, base: words, size });
        }
        log.event(Event::EmptyPoint { pool, buffer });
    });
    let ran = replay(&[], &logged.log);
    assert!(
        ran.status == Some(1) && ran.out.contains("logged    fill"),
        "{:?}{}{}",
        ran.status,
        ran.out,
        ran.err
    );
}

/// An arena that is dropped does nothing else, and the log ends with it.
#[test]
fn nothing_is_passed_over_where_the_arena_is_destroyed() {
    let logged = programs::log_of(256 << 10, |_, log| log.event(Event::Grow { size: 4096 }));
    let json = replay(&["--json"], &logged.log).json();
    assert_eq!(json["divergence"]["event"], 1, "{json}");
    let ran = replay(&[], &programs::two_arenas().log);
    assert!(ran.status == Some(2) && ran.err.contains("event 2: a second arena"), "{}", ran.err);
}

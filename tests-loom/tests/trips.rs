//! Trips against the owner that they trip: no trip is lost (design/ap.md
//! `.trip.protocol`). Allocation points and caches share this protocol, and these models
//! of it: a point has one limit, a cache one for each size class.
//!
//! A trip would be lost if it was requested and not yet observed, and a limit that it
//! closed were open again, so that the owner would never observe it.
//!
//! Bound: none with one trip and one limit that is armed once, otherwise three
//! preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{model, model_unbounded, thread};
use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::internal::{Limit, Trips};

const OPEN: usize = 0x2000;
/// A limit below that one, at which the owner stops by itself.
const STOP: usize = 0x1800;

/// The words of an owner with `LIMITS` limits.
struct Words<const LIMITS: usize> {
    trips: Trips,
    limits: [AtomicUsize; LIMITS],
}

impl<const LIMITS: usize> Words<LIMITS> {
    fn new() -> Self {
        Self { trips: Trips::new(), limits: core::array::from_fn(|_| AtomicUsize::new(OPEN)) }
    }

    fn trip(&self) {
        self.trips.request(&self.limits);
    }

    fn is_open(&self, limit: usize) -> bool {
        self.limits[limit].load(Ordering::Acquire) != 0
    }
}

/// What an owner knows: how many trips it has observed, and how many of those it handled.
#[derive(Default)]
struct Account {
    observed: usize,
    handled: usize,
}

/// Arms one of the limits: the step of the owner that is modelled.
type Rearm<const LIMITS: usize> = fn(&Words<LIMITS>, usize, usize, &mut Account);

/// Runs the owner against that many trips.
fn race<const LIMITS: usize>(trips: usize, owner: impl FnOnce(&Words<LIMITS>, &mut Account)) {
    let words = Arc::new(Words::new());
    let threads = Vec::from_iter((0..trips).map(|_| {
        let words = Arc::clone(&words);
        thread::spawn(move || words.trip())
    }));
    let mut account = Account::default();
    owner(&words, &mut account);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(account.handled <= trips, "a trip was handled twice");
    let is_open = (0..LIMITS).any(|limit| words.is_open(limit));
    assert!(!is_open || account.handled == trips, "a trip was lost");
}

fn protocol<const LIMITS: usize>(
    words: &Words<LIMITS>,
    limit: usize,
    value: usize,
    Account { observed, handled }: &mut Account,
) {
    words.trips.rearm(observed, &words.limits[limit], value, |requests| *handled += requests);
}

/// Re-arms without counting the requests again.
fn without_second_look<const LIMITS: usize>(
    words: &Words<LIMITS>,
    limit: usize,
    value: usize,
    Account { observed, handled }: &mut Account,
) {
    *handled += words.trips.observe(observed);
    words.limits[limit].publish(value);
}

fn rearm_once(words: &Words<1>, account: &mut Account) {
    protocol(words, 0, OPEN, account);
}

#[test]
fn one_trip_is_not_lost() {
    model_unbounded(|| race(1, rearm_once));
}

#[test]
fn two_trips_are_not_lost() {
    model(|| race(2, rearm_once));
}

#[test]
#[should_panic(expected = "a trip was lost")]
fn without_a_second_look_trips_are_lost() {
    model_unbounded(|| race(1, |words: &Words<1>, account| without_second_look(words, 0, OPEN, account)));
}

/// Of two trips the second comes while the first is handled.
#[test]
#[should_panic(expected = "a trip was lost")]
fn a_second_look_that_handles_nothing_loses_the_second_trip() {
    model(|| {
        race(2, |words: &Words<1>, account| {
            without_second_look(words, 0, OPEN, account);
            // Observes the first trip, and arms again without looking for a
            // second.
            without_second_look(words, 0, OPEN, account);
        });
    });
}

/// A trip that comes while the limit is being armed. It is handled while the limit is closed: if what handles it unwinds,
/// the owner takes its slow path again (design/cache.md `.trip`).
fn race_with_a_look(rearm: fn(&Words<1>, &mut Account, &mut dyn FnMut())) {
    model_unbounded(move || {
        race(1, |words: &Words<1>, account| {
            let mut is_first = true;
            rearm(words, account, &mut || {
                let was_first = core::mem::replace(&mut is_first, false);
                assert!(was_first || !words.is_open(0), "a trip is handled while its limit is open");
            });
        });
    });
}

#[test]
fn a_trip_that_comes_late_is_handled_while_its_limit_is_closed() {
    race_with_a_look(|words, Account { observed, handled }, look| {
        words.trips.rearm(observed, &words.limits[0], OPEN, |requests| {
            look();
            *handled += requests;
        });
    });
}

#[test]
#[should_panic(expected = "a trip is handled while its limit is open")]
fn without_closing_it_a_late_trip_is_handled_while_its_limit_is_open() {
    race_with_a_look(|words, account, look| {
        look();
        without_second_look(words, 0, OPEN, account);
        if words.trips.requests() != account.observed {
            look();
            protocol(words, 0, OPEN, account);
        }
    });
}

/// A limit that is armed at a stop, reached, and armed again beyond it.
fn race_at_a_stop(trips: usize, raise: Rearm<1>) {
    model(move || {
        race(trips, |words, account| {
            protocol(words, 0, STOP, account);
            raise(words, 0, OPEN, account);
        });
    });
}

#[test]
fn one_trip_is_not_lost_at_a_stop() {
    race_at_a_stop(1, protocol);
}

#[test]
fn two_trips_are_not_lost_at_a_stop() {
    race_at_a_stop(2, protocol);
}

#[test]
#[should_panic(expected = "a trip was lost")]
fn without_a_second_look_trips_are_lost_at_a_stop() {
    race_at_a_stop(1, without_second_look);
}

/// The stop is raised only if it is still there: a look, and then a store.
#[test]
#[should_panic(expected = "a trip was lost")]
fn raising_a_limit_that_looked_open_loses_trips() {
    race_at_a_stop(1, |words, limit, value, _| {
        if words.is_open(limit) {
            words.limits[limit].publish(value);
        }
    });
}

/// Two limits, one armed after the other.
fn race_with_two_limits(trips: usize, rearm: Rearm<2>) {
    model(move || {
        race(trips, |words, account| {
            rearm(words, 0, OPEN, account);
            rearm(words, 1, OPEN, account);
        });
    });
}

#[test]
fn one_trip_of_two_limits_is_not_lost() {
    race_with_two_limits(1, protocol);
}

#[test]
fn two_trips_of_two_limits_are_not_lost() {
    race_with_two_limits(2, protocol);
}

#[test]
#[should_panic(expected = "a trip was lost")]
fn without_a_second_look_trips_of_two_limits_are_lost() {
    race_with_two_limits(1, without_second_look);
}

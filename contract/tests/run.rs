//! Hot threads in a scope: whichever side fails, the run ends and says why. Before there was one, the scope never ended
//! for a hot thread that no thread stopped.
//!
//! Not with `interpose-malloc`: the tests' own allocations would be foreign.
#![cfg(not(feature = "interpose-malloc"))]

mod common;

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{Reason, contract};
use tripoint_contract::{
    Criterion, DetectorSet, HotLoop, HotThread, Phase, Route, ViolationSet, WarmupFailure, WarmupOptions,
};
use tripoint_core::Error;
use tripoint_oracle::{forever, in_time, wait_until};

const MILLISECOND: u64 = 1_000_000;

/// A warm-up whose patience ends only in tests that say so.
const OPTIONS: WarmupOptions =
    WarmupOptions { quiet_window: MILLISECOND, retries: 3, patience: u64::MAX, on_wait: None };

type Done = Result<(), Box<dyn core::error::Error + Send + Sync>>;

/// Held to nothing: what a test's thread allocates is no concern of these tests.
fn thread(name: &str) -> HotThread<'_> {
    HotThread { classes: ViolationSet::empty(), detectors: DetectorSet::empty(), ..HotThread::new(name) }
}

fn turn_until_stopped(hot: &HotLoop<'_, Reason, 4>, route: &Route) -> Done {
    let guard = hot.register()?;
    while hot.goes_on() {
        route.pass();
        guard.check();
        std::thread::yield_now();
    }
    Ok(())
}

#[test]
fn a_run_that_succeeds_stops_its_threads_and_returns_what_the_coordinator_does() {
    let (contract, value) = in_time(|| {
        let (contract, routes) = (contract(), [Route::with_minimum("tick", 3)]);
        let value = contract.run(|run| {
            for name in ["one", "two"] {
                run.hot(thread(name), |hot| turn_until_stopped(hot, &routes[0]))?;
            }
            run.warm_up(&routes, &(), OPTIONS)?;
            assert!(run.goes_on());
            Ok(7)
        });
        (contract, value)
    });
    assert_eq!((value.unwrap(), contract.phase()), (7, Phase::SteadyState));
    assert!(contract.threads().all(|slot| slot.was_armed() && !slot.is_present()));
}

/// Whatever the routes are: a thread that registers in SteadyState is refused.
#[test]
fn a_warm_up_waits_until_all_threads_have_registered() {
    /// The warm-up waits for a thread that has not registered.
    static WAITS: AtomicBool = AtomicBool::new(false);

    let outcome = in_time(|| {
        let (contract, routes) = (contract(), [Route::with_minimum("tick", 3)]);
        let on_wait = |wait: &WarmupFailure| {
            if wait.criterion == Criterion::Registered {
                WAITS.store(true, Ordering::Release);
            }
        };
        contract.run(|run| {
            run.hot(thread("quick"), |hot| turn_until_stopped(hot, &routes[0]))?;
            run.hot(thread("slow"), |hot| {
                wait_until(|| WAITS.load(Ordering::Acquire) || !hot.goes_on());
                turn_until_stopped(hot, &routes[0])
            })?;
            run.warm_up(&routes, &(), WarmupOptions { on_wait: Some(on_wait), ..OPTIONS })?;
            Ok(contract.threads().all(|slot| slot.was_armed()))
        })
    });
    assert!(outcome.unwrap());
}

#[test]
fn a_thread_that_does_not_register_is_named() {
    let failure = in_time(|| {
        let (contract, tick) = (contract(), Route::with_minimum("tick", 1));
        contract.run(|run| {
            run.hot(thread("good"), |hot| turn_until_stopped(hot, &tick))?;
            wait_until(|| tick.is_done());
            run.hot(thread("shy"), |hot| {
                while hot.goes_on() {
                    std::thread::yield_now();
                }
                Ok(())
            })?;
            run.warm_up(&[], &(), WarmupOptions { patience: 50 * MILLISECOND, ..OPTIONS })?;
            Ok(())
        })
    });
    assert_eq!(
        failure.unwrap_err().to_string(),
        "a hot thread has not registered; thread shy: call HotLoop::register in each thread of Contract::run, before its loop"
    );
}

/// A warm-up that fails by patience, with `?`.
#[test]
fn a_failed_warm_up_stops_the_hot_threads() {
    let failure = in_time(|| {
        let (contract, routes) = (contract(), [Route::with_minimum("tick", 3), Route::new("never")]);
        contract.run(|run| {
            run.hot(thread("hot"), |hot| turn_until_stopped(hot, &routes[0]))?;
            wait_until(|| routes[0].is_done());
            run.warm_up(&routes, &(), WarmupOptions { patience: MILLISECOND, ..OPTIONS })?;
            Ok(())
        })
    });
    let failure = failure.unwrap_err();
    let warm_up = failure.error.downcast_ref::<WarmupFailure>().unwrap();
    assert_eq!((failure.thread.is_none(), warm_up.criterion), (true, Criterion::Routes));
    assert_eq!(format!("{failure:?}"), warm_up.to_string(), "what `main` prints");
}

/// It fails before it registers, after, and once all are armed; its error is kept, and the others are stopped.
#[test]
fn the_error_of_a_hot_thread_is_kept_with_its_name() {
    for when in ["before", "registered", "armed"] {
        let (coordinator_failed, failure) = in_time(move || {
            let (contract, routes) = (contract(), [Route::with_minimum("tick", 3)]);
            let coordinator_failed = AtomicBool::new(false);
            let failure = contract.run(|run| {
                run.hot(thread("good"), |hot| turn_until_stopped(hot, &routes[0]))?;
                run.hot(thread("audio"), |hot| {
                    let fails = || Err(Error::CommitLimit.into());
                    if when == "before" {
                        return fails();
                    }
                    let guard = hot.register()?;
                    while when == "armed" && guard.phase() != Phase::SteadyState {
                        guard.check();
                        std::thread::yield_now();
                    }
                    guard.check();
                    fails()
                })?;
                // All could be warm before the thread has failed.
                let never = [Route::with_minimum("never", 1)];
                let routes = if when == "armed" { &routes } else { &never };
                run.warm_up(routes, &(), OPTIONS)
                    .inspect_err(|_| coordinator_failed.store(true, Ordering::SeqCst))?;
                while run.goes_on() {
                    std::thread::yield_now();
                }
                Ok(())
            });
            (coordinator_failed.into_inner(), failure.unwrap_err())
        });
        assert_eq!(failure.thread.unwrap().as_str(), "audio", "{when}");
        assert_eq!(failure.error.downcast_ref::<Error>(), Some(&Error::CommitLimit), "{when}");
        assert_eq!(failure.coordinator.is_some(), coordinator_failed, "{when}");
        if when != "armed" {
            let warm_up = failure.coordinator.as_ref().unwrap().downcast_ref::<WarmupFailure>().unwrap();
            assert_eq!((warm_up.criterion, warm_up.thread.unwrap().as_str()), (Criterion::Present, "audio"));
        }
        let begin = format!("hot thread audio failed: {}", Error::CommitLimit);
        assert!(failure.to_string().starts_with(&begin), "{failure}");
    }
}

#[test]
fn a_panic_of_a_hot_thread_is_its_error() {
    let failure = in_time(|| {
        contract().run(|run| {
            run.hot(thread("hot"), |_| std::panic::resume_unwind(Box::new("on purpose")))?;
            run.warm_up(&[Route::new("never")], &(), OPTIONS)?;
            Ok(())
        })
    });
    let failure = failure.unwrap_err();
    assert!(
        failure
            .to_string()
            .starts_with("hot thread hot failed: it panicked: on purpose\nthen the coordinator")
    );
}

/// What it panics with is not dropped.
#[test]
fn a_panic_with_what_panics_when_it_is_dropped_ends_the_run() {
    struct Again;

    impl Drop for Again {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("dropped"));
        }
    }

    let failure = in_time(|| {
        contract().run(|run| {
            run.hot(thread("hot"), |_| std::panic::resume_unwind(Box::new(Again)))?;
            run.warm_up(&[Route::new("never")], &(), OPTIONS)?;
            Ok(())
        })
    });
    assert!(failure.unwrap_err().to_string().starts_with("hot thread hot failed: it panicked"));
}

#[test]
fn a_panic_of_the_coordinator_stops_the_hot_threads() {
    let ended: &'static AtomicUsize = forever(AtomicUsize::new(0));
    let outcome = in_time(move || {
        let route = Route::new("tick");
        let run = || {
            contract().run(|run| -> Result<(), _> {
                run.hot(thread("hot"), |hot| {
                    turn_until_stopped(hot, &route)?;
                    ended.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                })?;
                std::panic::resume_unwind(Box::new("on purpose"))
            })
        };
        std::panic::catch_unwind(core::panic::AssertUnwindSafe(run)).is_err()
    });
    assert!(outcome && ended.load(Ordering::SeqCst) == 1);
}

//! What events of telemetry cost in time.
//!
//! One operation is the report of an allocation, or of a fill, to the hook of an arena. A fill is
//! counted at its pool and its point as well. (design/telemetry.md `.req.cost`.)

use core::hint::black_box;
use core::time::Duration;
use std::time::Instant;

use benches::compare::{Contender, compare, print};
use benches::reported::{ALLOC, FILL, FREE, create};
use tripoint::events::{Event, EventHook};
use tripoint::telemetry::format::EventKind;
use tripoint::telemetry::{FileOptions, Telemetry};

/// Operations of a contender in one round: fewer than the system lets a thread make before it has another go on,
/// so that some rounds are not interrupted.
const OPERATIONS: usize = 1 << 14;

fn report(hook: &dyn EventHook, event: Event) -> impl FnMut() -> Duration {
    move || {
        let start = Instant::now();
        for _ in 0..OPERATIONS {
            hook.event(black_box(event));
        }
        start.elapsed()
    }
}

fn measure(rounds: usize) {
    let telemetry = Telemetry::create(&FileOptions::default()).unwrap();
    println!("{}", telemetry.report());
    telemetry.switches().switch(EventKind::Free, false);
    let hook = telemetry.arena_hook();
    create(&hook);
    let mut contenders = [
        Contender::new("an allocation", report(&hook, ALLOC)),
        Contender::new("switched off", report(&hook, FREE)),
        Contender::new("a fill", report(&hook, FILL)),
    ];
    print("an event, reported to telemetry", &compare(&mut contenders, rounds, OPERATIONS));
}

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    measure(if is_quick { 64 } else { 2001 });
}

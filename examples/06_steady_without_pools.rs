//! For any program with a loop that must not allocate, whatever allocator it uses: the
//! steady-state contract alone, without an arena or a pool.
//!
//! The contract counts, for each thread, calls of the global allocator, page faults and
//! system calls for memory. When warm-up is over it is armed; from then on each of them is a
//! violation that names the line.
//!
//! ```sh
//! cargo run --example 06_steady_without_pools            # steady
//! cargo run --example 06_steady_without_pools -- leak    # allocates in the loop, and is caught
//! ```

use core::error::Error;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use std::{env, thread};

use tripoint::contract::{Contract, ContractAllocator, HotThread, Report, Route, WarmupOptions};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();
static CONTRACT: Contract = Contract::new();
/// What has to have happened before the program is warm.
static ROUTES: [Route; 1] = [Route::with_minimum("packet", 1_000)];
static STOP: AtomicBool = AtomicBool::new(false);

/// The loop that must be steady.
fn hot_loop(leak: bool) {
    let mut packet = Vec::with_capacity(64);
    let guard = CONTRACT.register(HotThread::new("packets")).expect("the contract has room");
    let mut warm_turns = 0;
    while !STOP.load(Relaxed) {
        packet.clear();
        packet.extend_from_slice(b"one turn");
        if leak && CONTRACT.is_armed() && warm_turns == 0 {
            warm_turns += 1;
            black_box(packet.clone()); // the mistake
        }
        ROUTES[0].pass();
        guard.check();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let leak = env::args().any(|argument| argument == "leak");
    CONTRACT.begin_init()?;
    let hot = thread::spawn(move || hot_loop(leak));
    let options = WarmupOptions { quiet_window: 50_000_000, ..WarmupOptions::default() }; // ns
    let summary = CONTRACT.warm_up(&ROUTES, &(), options)?; // (): there are no arenas
    println!("{summary}");

    thread::sleep(Duration::from_millis(100)); // the steady part: the program's real work
    STOP.store(true, Relaxed);
    hot.join().expect("the loop does not panic");

    let mut records = Vec::new();
    let report = Report { routes: &ROUTES, ..Report::drained(&CONTRACT, &mut records) };
    println!("{report}");
    assert!(report.was_armed());
    assert_eq!(report.alarms() > 0, leak, "exactly the mistake raises an alarm");
    Ok(())
}

//! The smallest image of use on this board.
#![no_std]
#![no_main]

/// What start-up calls.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    // SAFETY: start-up calls this once.
    let passed = unsafe { firmware::smallest::run() };
    board::exit(passed)
}

/// What the timer's interrupt handler calls. The timer is never set.
#[unsafe(no_mangle)]
extern "C" fn on_timer() {}

/// What the interrupt handler of devices calls. None is enabled.
#[unsafe(no_mangle)]
extern "C" fn on_device(_interrupt: u32) {}

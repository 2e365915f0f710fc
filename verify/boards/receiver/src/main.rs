//! Packets on a board without an operating system (design/bare-metal.md `.receiver`): the 32-bit RISC-V board with a
//! network device, whose descriptors point at units of a pool in a static.
//!
//! | file | shows |
//! |---|---|
//! | `memory.rs` | an arena in a static, the pool of packets and the pool of records |
//! | `queue.rs` | which unit is with which descriptor |
//! | `network.rs` | the device: its rings are filled, read and emptied |
//! | `session.rs` | datagrams in order, asked for if they are lost, and made records |
//!
//! The framing and the recovery window are those of `apps/packet-path`.
#![no_std]
#![no_main]

use core::fmt::Write as _;
use core::sync::atomic::{AtomicUsize, Ordering};

use board::Board;
use tripoint::Tripper;
use tripoint_core::internal::Once;

mod failure;
mod memory;
mod network;
mod queue;
mod session;

#[path = "../../../../apps/packet-path/src/belief.rs"]
#[allow(dead_code, reason = "the packet path uses all of it")]
mod belief;
#[path = "../../../../apps/packet-path/src/moldudp64.rs"]
#[allow(dead_code, reason = "the packet path uses all of it")]
mod moldudp64;
#[path = "../../../../apps/packet-path/src/window.rs"]
#[allow(dead_code, reason = "the packet path uses all of it")]
mod window;

/// The allocation point that the handler trips.
static TRIPPED: Once<Tripper<'static>> = Once::new();

static INTERRUPTS: AtomicUsize = AtomicUsize::new(0);

/// How many interrupts the device made.
fn interrupts() -> usize {
    INTERRUPTS.load(Ordering::Acquire)
}

/// What start-up calls.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    // SAFETY: start-up calls this once, and no other code takes the board.
    let mut board = unsafe { Board::take() };
    let outcome = session::run(&mut board);
    // A console that refuses text does not change the outcome.
    let _ = match &outcome {
        Ok(report) => writeln!(board, "{report}\npassed"),
        Err(failure) => writeln!(board, "FAILED: {failure}"),
    };
    board::exit(outcome.is_ok())
}

/// What the timer's interrupt handler calls. The timer only ends a sleep.
#[unsafe(no_mangle)]
extern "C" fn on_timer() {}

/// What the interrupt handler of devices calls: the device has written packets, or read some.
#[unsafe(no_mangle)]
extern "C" fn on_device(interrupt: u32) {
    network::acknowledge(interrupt);
    if let Some(tripper) = TRIPPED.get() {
        tripper.trip();
        INTERRUPTS.fetch_add(1, Ordering::AcqRel);
    }
}

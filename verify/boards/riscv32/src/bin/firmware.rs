//! The whole firmware on this board.
#![no_std]
#![no_main]

/// What start-up calls.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    // SAFETY: start-up calls this once, and no other code takes the board.
    let mut board = unsafe { board::Board::take() };
    board::exit(firmware::run(&mut board))
}

/// What the timer's interrupt handler calls.
#[unsafe(no_mangle)]
extern "C" fn on_timer() {
    firmware::on_timer();
}

/// What the interrupt handler of devices calls. None is enabled.
#[unsafe(no_mangle)]
extern "C" fn on_device(_interrupt: u32) {}

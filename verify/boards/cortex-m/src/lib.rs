//! A Cortex-M3 board, as QEMU's `lm3s6965evb` is one: timer, console, exit.
#![no_std]

use core::fmt;
use core::panic::PanicInfo;

use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::peripheral::{SCB, SYST};
use cortex_m_rt::exception;
use cortex_m_semihosting::{debug, hio};

unsafe extern "C" {
    /// Every image has its own handler.
    safe fn on_timer();
}

/// The board's devices.
#[allow(missing_debug_implementations, reason = "the registers have none")]
pub struct Board(SYST);

impl Board {
    /// Returns the devices, to their one user.
    ///
    /// # Safety
    /// - It is called once.
    #[must_use]
    pub unsafe fn take() -> Self {
        // SAFETY: the caller calls this once, so no other code has the
        // peripherals.
        let mut timer = unsafe { cortex_m::Peripherals::steal() }.SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.enable_interrupt();
        Self(timer)
    }
}

impl fmt::Write for Board {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        hio::hstdout().map_err(|()| fmt::Error)?.write_str(text)
    }
}

impl firmware::Board for Board {
    fn arm_timer(&mut self, delay: u32) {
        self.0.set_reload(2 * delay);
        self.0.clear_current();
        self.0.enable_counter();
    }
}

/// The timer's interrupt. The timer would go on, so it is stopped, and an interrupt
/// that is pending from it is forgotten.
#[exception]
fn SysTick() {
    // SAFETY: the code that sets the timer has finished.
    unsafe { cortex_m::Peripherals::steal() }.SYST.disable_counter();
    SCB::clear_pendst();
    on_timer();
}

/// Ends the run.
pub fn exit(passed: bool) -> ! {
    let status = if passed { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE };
    loop {
        debug::exit(status);
    }
}

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    exit(false)
}

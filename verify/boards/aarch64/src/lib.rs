//! A 64-bit Arm board, as QEMU's `virt` is one: start-up, timer, console, exit.
#![no_std]

use core::arch::{asm, global_asm};
use core::fmt;
use core::panic::PanicInfo;
use core::ptr;

const CONSOLE: usize = 0x0900_0000;
/// The interrupt controller (GICv2): the part that belongs to the board, and
/// the part that belongs to the core.
const DISTRIBUTOR: usize = 0x0800_0000;
const CORE_INTERFACE: usize = 0x0801_0000;

/// Word offsets of the controller's registers.
const ENABLE: usize = 0;
const SET_ENABLED: usize = 0x100 / 4;
const PRIORITY_MASK: usize = 0x4 / 4;
const ACKNOWLEDGE: usize = 0xc / 4;
const END_OF_INTERRUPT: usize = 0x10 / 4;

/// The interrupt of the core's own timer.
const TIMER_INTERRUPT: u32 = 30;

global_asm!(
    ".section .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "    adr x0, vectors",
    "    msr vbar_el1, x0",
    "    ldr x0, =_stack_top",
    "    mov sp, x0",
    "    b main",
    // Sixteen vectors of 128 bytes; only an interrupt at this level is expected.
    ".macro unexpected",
    "    b unexpected_exception",
    "    .balign 128",
    ".endm",
    ".balign 2048",
    "vectors:",
    ".rept 5",
    "    unexpected",
    ".endr",
    "    b on_interrupt",
    "    .balign 128",
    ".rept 10",
    "    unexpected",
    ".endr",
    // The registers that a function may change. There are no vector registers to
    // save: the target has none.
    "on_interrupt:",
    "    stp x0, x1, [sp, -160]!",
    "    stp x2, x3, [sp, 16]",
    "    stp x4, x5, [sp, 32]",
    "    stp x6, x7, [sp, 48]",
    "    stp x8, x9, [sp, 64]",
    "    stp x10, x11, [sp, 80]",
    "    stp x12, x13, [sp, 96]",
    "    stp x14, x15, [sp, 112]",
    "    stp x16, x17, [sp, 128]",
    "    stp x18, x30, [sp, 144]",
    "    bl handle_interrupt",
    "    ldp x2, x3, [sp, 16]",
    "    ldp x4, x5, [sp, 32]",
    "    ldp x6, x7, [sp, 48]",
    "    ldp x8, x9, [sp, 64]",
    "    ldp x10, x11, [sp, 80]",
    "    ldp x12, x13, [sp, 96]",
    "    ldp x14, x15, [sp, 112]",
    "    ldp x16, x17, [sp, 128]",
    "    ldp x18, x30, [sp, 144]",
    "    ldp x0, x1, [sp], 160",
    "    eret",
);

unsafe extern "C" {
    /// Every image has its own `main`.
    safe fn on_timer();
}

/// Registers of a device: not memory that any Rust object lives in.
fn device<T>(address: usize) -> *mut T {
    ptr::with_exposed_provenance_mut(address)
}

/// The board's devices.
#[derive(Debug)]
pub struct Board(());

impl Board {
    /// Returns the devices, to their one user.
    ///
    /// # Safety
    /// - It is called once.
    #[must_use]
    pub unsafe fn take() -> Self {
        // SAFETY: the board has these registers here; start-up set the vectors, so
        // interrupts may come.
        unsafe {
            device::<u32>(DISTRIBUTOR).add(ENABLE).write_volatile(1);
            device::<u32>(DISTRIBUTOR).add(SET_ENABLED).write_volatile(1 << TIMER_INTERRUPT);
            device::<u32>(CORE_INTERFACE).add(PRIORITY_MASK).write_volatile(0xff);
            device::<u32>(CORE_INTERFACE).add(ENABLE).write_volatile(1);
            asm!("msr daifclr, 2");
        }
        Self(())
    }
}

impl fmt::Write for Board {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the board has this device here.
            unsafe { device::<u8>(CONSOLE).write_volatile(byte) };
        }
        Ok(())
    }
}

impl firmware::Board for Board {
    fn arm_timer(&mut self, delay: u32) {
        // The timer counts in steps of 16 ns.
        let counts = u64::from(delay) * 8;
        // SAFETY: sets the core's own timer going.
        unsafe { asm!("msr cntp_tval_el0, {}", "msr cntp_ctl_el0, {}", in(reg) counts, in(reg) 1_u64) };
    }
}

/// The one interrupt that is enabled is the timer's. The timer is stopped first.
#[unsafe(no_mangle)]
extern "C" fn handle_interrupt() {
    // SAFETY: acknowledging and ending are what a handler does, in this order; the
    // board has these registers here.
    unsafe {
        let interrupt = device::<u32>(CORE_INTERFACE).add(ACKNOWLEDGE).read_volatile();
        asm!("msr cntp_ctl_el0, xzr", "isb");
        on_timer();
        device::<u32>(CORE_INTERFACE).add(END_OF_INTERRUPT).write_volatile(interrupt);
    }
}

#[unsafe(no_mangle)]
extern "C" fn unexpected_exception() -> ! {
    exit(false)
}

/// Ends the run, by semihosting.
pub fn exit(passed: bool) -> ! {
    const EXIT: u64 = 0x18;
    const APPLICATION_EXIT: u64 = 0x2_0026;
    let reason = [APPLICATION_EXIT, u64::from(!passed)];
    loop {
        // SAFETY: the emulator ends here; it reads only `reason`.
        unsafe { asm!("hlt 0xf000", in("x0") EXIT, in("x1") reason.as_ptr()) };
    }
}

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    exit(false)
}

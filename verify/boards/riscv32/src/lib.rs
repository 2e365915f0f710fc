//! A 32-bit RISC-V board, as QEMU's `virt` is one: start-up, timer, interrupts of devices, console, exit.
#![no_std]

use core::arch::{asm, global_asm};
use core::fmt;
use core::panic::PanicInfo;
use core::ptr;

/// The timer's compare register, 64 bits, of the first core.
const TIMER_COMPARE: usize = 0x0200_4000;
/// The timer's count, 64 bits, in steps of 100 ns.
const TIMER_COUNT: usize = 0x0200_bff8;
/// The interrupt controller (PLIC): the priority of each interrupt, and what the one core is to hear of.
const PRIORITIES: usize = 0x0c00_0000;
const ENABLED: usize = 0x0c00_2000;
const CLAIM: usize = 0x0c20_0004;
const CONSOLE: usize = 0x1000_0000;
const TEST_DEVICE: usize = 0x0010_0000;

const MIE_TIMER: usize = 1 << 7;
const MIE_DEVICES: usize = 1 << 11;
const MSTATUS_INTERRUPTS: usize = 1 << 3;

global_asm!(
    // The memory that should be zero is zero, because the emulator loads the image.
    ".section .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "    la sp, _stack_top",
    "    la t0, on_trap",
    "    csrw mtvec, t0",
    "    call main",
    // The registers that a function may change.
    ".align 2",
    "on_trap:",
    "    addi sp, sp, -64",
    "    sw ra, 0(sp)",
    "    sw t0, 4(sp)",
    "    sw t1, 8(sp)",
    "    sw t2, 12(sp)",
    "    sw t3, 16(sp)",
    "    sw t4, 20(sp)",
    "    sw t5, 24(sp)",
    "    sw t6, 28(sp)",
    "    sw a0, 32(sp)",
    "    sw a1, 36(sp)",
    "    sw a2, 40(sp)",
    "    sw a3, 44(sp)",
    "    sw a4, 48(sp)",
    "    sw a5, 52(sp)",
    "    sw a6, 56(sp)",
    "    sw a7, 60(sp)",
    "    csrr a0, mcause",
    "    call handle_trap",
    "    lw ra, 0(sp)",
    "    lw t0, 4(sp)",
    "    lw t1, 8(sp)",
    "    lw t2, 12(sp)",
    "    lw t3, 16(sp)",
    "    lw t4, 20(sp)",
    "    lw t5, 24(sp)",
    "    lw t6, 28(sp)",
    "    lw a0, 32(sp)",
    "    lw a1, 36(sp)",
    "    lw a2, 40(sp)",
    "    lw a3, 44(sp)",
    "    lw a4, 48(sp)",
    "    lw a5, 52(sp)",
    "    lw a6, 56(sp)",
    "    lw a7, 60(sp)",
    "    addi sp, sp, 64",
    "    mret",
);

unsafe extern "C" {
    /// Every image has its own.
    safe fn on_timer();
    /// Every image has its own. No device interrupts before [`Board::enable_interrupt`].
    safe fn on_device(interrupt: u32);
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
        set_timer(u32::MAX, u32::MAX);
        // SAFETY: start-up set the trap handler; interrupts go there.
        unsafe {
            asm!("csrs mie, {}", in(reg) MIE_TIMER);
            asm!("csrs mstatus, {}", in(reg) MSTATUS_INTERRUPTS);
        }
        Self(())
    }

    /// Lets a device interrupt. The handler calls `on_device` with the number, which is below 32.
    pub fn enable_interrupt(&mut self, interrupt: u32) {
        // SAFETY: the board has these registers here; start-up set the trap handler.
        unsafe {
            device::<u32>(PRIORITIES).add(interrupt as usize).write_volatile(1);
            let enabled = device::<u32>(ENABLED);
            enabled.write_volatile(enabled.read_volatile() | 1 << interrupt);
            asm!("csrs mie, {}", in(reg) MIE_DEVICES);
        }
    }

    /// Sleeps until an interrupt, unless `is_ready` is true. An interrupt in between is not missed.
    pub fn sleep_unless(&mut self, is_ready: impl FnOnce() -> bool) {
        // SAFETY: an interrupt that comes while they are off ends the sleep, and is handled when they are on again.
        unsafe { asm!("csrc mstatus, {}", in(reg) MSTATUS_INTERRUPTS) };
        if !is_ready() {
            // SAFETY: waits, and does nothing else.
            unsafe { asm!("wfi") };
        }
        // SAFETY: as they were.
        unsafe { asm!("csrs mstatus, {}", in(reg) MSTATUS_INTERRUPTS) };
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
        // SAFETY: the board has this device here; its upper half stays zero for
        // seven minutes.
        let now = unsafe { device::<u32>(TIMER_COUNT).read_volatile() };
        set_timer(now + delay, 0);
    }
}

fn set_timer(low: u32, high: u32) {
    // SAFETY: the board has this device here, two words of it.
    unsafe {
        device::<u32>(TIMER_COMPARE).add(1).write_volatile(u32::MAX);
        device::<u32>(TIMER_COMPARE).write_volatile(low);
        device::<u32>(TIMER_COMPARE).add(1).write_volatile(high);
    }
}

/// Every trap comes here; only interrupts of the timer and of devices are expected.
#[unsafe(no_mangle)]
extern "C" fn handle_trap(cause: u32) {
    const TIMER: u32 = 1 << 31 | 7;
    const DEVICE: u32 = 1 << 31 | 11;
    match cause {
        TIMER => {
            set_timer(u32::MAX, u32::MAX);
            on_timer();
        }
        DEVICE => {
            // SAFETY: claiming and completing are what a handler does, in this order; the board has this register here.
            let interrupt = unsafe { device::<u32>(CLAIM).read_volatile() };
            on_device(interrupt);
            // SAFETY: the interrupt that was claimed above, and handled, is completed; the board has this register here.
            unsafe { device::<u32>(CLAIM).write_volatile(interrupt) };
        }
        _ => exit(false),
    }
}

/// Ends the run.
pub fn exit(passed: bool) -> ! {
    const PASS: u32 = 0x5555;
    const FAIL_WITH_1: u32 = 1 << 16 | 0x3333;
    loop {
        // SAFETY: the board has this device here.
        unsafe { device::<u32>(TEST_DEVICE).write_volatile(if passed { PASS } else { FAIL_WITH_1 }) };
    }
}

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    exit(false)
}

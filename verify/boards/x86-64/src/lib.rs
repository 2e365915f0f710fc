//! An x86-64 board, as QEMU's `q35` is one: start-up, timer, console, exit.
#![no_std]

use core::arch::{asm, global_asm};
use core::fmt;
use core::panic::PanicInfo;
use core::ptr;

global_asm!(include_str!("start.s"));

/// The core's interrupt controller and timer (local APIC).
const CONTROLLER: usize = 0xfee0_0000;

/// Word offsets of its registers.
const END_OF_INTERRUPT: usize = 0xb0 / 4;
const SPURIOUS: usize = 0xf0 / 4;
const TIMER: usize = 0x320 / 4;
const TIMER_COUNT: usize = 0x380 / 4;
const TIMER_DIVIDER: usize = 0x3e0 / 4;

const TIMER_VECTOR: u32 = 32;

/// Ports of the older interrupt controllers, the console, and the exit device.
const OLD_CONTROLLERS: [u16; 2] = [0x21, 0xa1];
const CONSOLE: u16 = 0x3f8;
const EXIT: u16 = 0xf4;

unsafe extern "C" {
    /// Every image has its own.
    safe fn on_timer();
    /// Saves registers and calls [`handle_interrupt`]. Not to be called.
    safe fn on_interrupt();
}

/// The gates of all interrupt vectors, of 16 bytes each.
static mut GATES: [[u64; 2]; 256] = [[0; 2]; 256];

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
        for controller in OLD_CONTROLLERS {
            write_port(controller, 0xff);
        }
        let gates = &raw mut GATES;
        // SAFETY: no other code names GATES, and the caller calls this once.
        load_gates(unsafe { &mut *gates });
        write_controller(SPURIOUS, 0x1ff);
        write_controller(TIMER_DIVIDER, 0b1011);
        write_controller(TIMER, TIMER_VECTOR);
        // SAFETY: the timer's interrupt has a gate.
        unsafe { asm!("sti") };
        Self(())
    }
}

/// Admits the timer's interrupts. Any other interrupt ends the run.
fn load_gates(gates: &'static mut [[u64; 2]; 256]) {
    let entry = (on_interrupt as *const ()).addr() as u64;
    // Present, an interrupt gate, in the one code segment.
    let low = entry & 0xffff | 8 << 16 | 0x8e00 << 32 | (entry >> 16 & 0xffff) << 48;
    gates[TIMER_VECTOR as usize] = [low, entry >> 32];
    let base = (&raw const *gates).expose_provenance() as u64;
    let limit = size_of_val(gates) as u16 - 1;
    let register = [u64::from(limit) | base << 16, base >> 48];
    // SAFETY: ten bytes, the limit and the address of gates that stay for good.
    unsafe { asm!("lidt [{}]", in(reg) &register) };
}

impl fmt::Write for Board {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            write_port(CONSOLE, byte);
        }
        Ok(())
    }
}

impl firmware::Board for Board {
    fn arm_timer(&mut self, delay: u32) {
        // The timer counts nanoseconds.
        write_controller(TIMER_COUNT, delay * 128);
    }
}

#[unsafe(no_mangle)]
extern "C" fn handle_interrupt() {
    on_timer();
    write_controller(END_OF_INTERRUPT, 0);
}

fn write_controller(register: usize, value: u32) {
    // SAFETY: the board has these registers here.
    unsafe { device::<u32>(CONTROLLER).add(register).write_volatile(value) };
}

fn write_port(port: u16, value: u8) {
    // SAFETY: the ports written to here have no effect on memory.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack)) };
}

/// Ends the run. The emulator's exit status is `2 * value + 1`: 33 for success.
pub fn exit(passed: bool) -> ! {
    loop {
        write_port(EXIT, if passed { 0x10 } else { 0x11 });
    }
}

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    exit(false)
}

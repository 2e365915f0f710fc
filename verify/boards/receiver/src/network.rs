//! The network device (virtio), whose driver is a crate. Here is what the crate leaves to its user: memory for its queues, and for packets.

use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};

use board::Board;
use virtio_drivers::device::net::VirtIONetRaw;
use virtio_drivers::transport::mmio::{MmioTransport, VirtIOHeader};
use virtio_drivers::transport::{DeviceType, Transport as _};
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

use crate::failure::Failure;
use crate::memory::{self, Cache, Packet};
use crate::queue::{DESCRIPTORS, Queue};

/// Where the board may have devices of this kind, and how many.
const DEVICES: usize = 0x1000_1000;
const DEVICE_SIZE: usize = 0x1000;
const DEVICES_MAX: u32 = 8;

/// Word offsets of a device's registers.
const INTERRUPT_STATUS: usize = 0x60 / 4;
const INTERRUPT_ACKNOWLEDGE: usize = 0x64 / 4;

/// What is in front of each frame: the header of the device.
const DEVICE_HEADER: usize = 12;

/// Ethernet: two addresses and the kind of what follows. This kind is for experiments.
const ETHERNET_HEADER: usize = 14;
const ETHERNET_KIND: [u8; 2] = [0x88, 0xb5];

/// Where the registers of the device with this interrupt are. The board numbers interrupts from one.
fn registers(interrupt: u32) -> NonNull<u32> {
    let address = DEVICES + (interrupt as usize - 1) * DEVICE_SIZE;
    NonNull::new(ptr::with_exposed_provenance_mut(address)).unwrap_or(NonNull::dangling())
}

/// Tells the device that its interrupt was heard. For the handler.
pub(crate) fn acknowledge(interrupt: u32) {
    if (1..=DEVICES_MAX).contains(&interrupt) {
        let registers = registers(interrupt);
        // SAFETY: the board has these registers here; the driver leaves them to this function.
        unsafe {
            let status = registers.add(INTERRUPT_STATUS).read_volatile();
            registers.add(INTERRUPT_ACKNOWLEDGE).write_volatile(status);
        }
    }
}

/// The device, its two queues, and the free units of the one thread.
pub(crate) struct Network {
    driver: VirtIONetRaw<Pages, MmioTransport<'static>, DESCRIPTORS>,
    cache: Cache,
    receive: Queue,
    transmit: Queue,
}

impl Network {
    /// Finds the device, has it interrupt, and gives it units to receive into.
    pub(crate) fn open(board: &mut Board) -> Result<Self, Failure> {
        let pool = memory::packets()?;
        let (interrupt, transport) = find().ok_or(Failure::NoDevice)?;
        let driver = VirtIONetRaw::new(transport)?;
        let (receive, transmit) =
            (Queue::new(pool.ring()?, pool.region()), Queue::new(pool.ring()?, pool.region()));
        let mut network = Self { driver, cache: pool.cache()?, receive, transmit };
        network.refill()?;
        network.driver.enable_interrupts();
        board.enable_interrupt(interrupt);
        Ok(network)
    }

    /// Whether a frame has come.
    pub(crate) fn has_received(&self) -> bool {
        self.driver.poll_receive().is_some()
    }

    /// The payload of a frame that has come. Frames of other kinds go back.
    pub(crate) fn receive(&mut self) -> Result<Option<Packet>, Failure> {
        let Self { driver, cache, receive, .. } = self;
        while let Some(token) = driver.poll_receive() {
            let mut packet = receive.complete(token, |memory| {
                // SAFETY: the memory that went with this token.
                unsafe { driver.receive_complete(token, memory) }.map(|(header, size)| header + size)
            })?;
            let kind = packet.get(DEVICE_HEADER + ETHERNET_HEADER - 2..DEVICE_HEADER + ETHERNET_HEADER);
            if kind == Some(&ETHERNET_KIND) {
                packet.trim_front(DEVICE_HEADER + ETHERNET_HEADER);
                return Ok(Some(packet));
            }
            cache.give(packet);
        }
        Ok(None)
    }

    /// Gives a packet back.
    pub(crate) fn release(&mut self, packet: Packet) {
        if cfg!(feature = "forgetful") {
            core::mem::forget(packet);
        } else {
            self.cache.give(packet);
        }
    }

    /// Gives the device free units, if a burst of them is due, and takes back what it has sent.
    pub(crate) fn refill(&mut self) -> Result<(), Failure> {
        let Self { driver, cache, receive, transmit } = self;
        while let Some(token) = driver.poll_transmit() {
            let sent = transmit.complete(token, |memory| {
                // SAFETY: the memory that went with this token.
                unsafe { driver.transmit_complete(token, memory) }
            })?;
            cache.give(sent);
        }
        if receive.free() >= DESCRIPTORS / 4 {
            // SAFETY: the unit is with the ring until it is completed, so nothing uses its memory.
            receive.fill(cache, |memory| unsafe { driver.receive_begin(memory) })?;
        }
        Ok(())
    }

    /// Sends a frame with this payload. If there is no room, it is not sent: the thread that waits for an answer asks again.
    pub(crate) fn send(&mut self, payload: &[u8]) -> Result<(), Failure> {
        let Self { driver, cache, transmit, .. } = self;
        let Some(mut packet) = cache.take().filter(|_| transmit.free() > 0) else { return Ok(()) };
        packet.extend_from_slice(payload)?;
        let header = packet.prepend(ETHERNET_HEADER)?;
        let (to, rest) = header.split_at_mut(6);
        to.fill(0xff);
        rest[..6].copy_from_slice(&driver.mac_address());
        rest[6..].copy_from_slice(&ETHERNET_KIND);
        driver.fill_buffer_header(packet.prepend(DEVICE_HEADER)?)?;
        // SAFETY: the unit is with the ring until it is completed, so nothing uses its memory.
        transmit.submit(packet, |memory| unsafe { driver.transmit_begin(memory) })
    }

    /// Whether the pool refuses a packet that the device completes once more.
    pub(crate) fn refuses(&mut self, packet: &Packet) -> bool {
        self.receive.refuses(packet)
    }

    /// Stops the device, takes all units back, and returns what both queues have counted: what was received and what was sent.
    pub(crate) fn close(self) -> (tripoint::packets::PacketRingCounts, tripoint::packets::PacketRingCounts) {
        let Self { driver, mut receive, mut transmit, .. } = self;
        // The device forgets its queues.
        drop(driver);
        // SAFETY: the driver has reset the device, which uses no unit from then on.
        unsafe {
            receive.reclaim();
            transmit.reclaim();
        }
        (receive.counts(), transmit.counts())
    }
}

/// The first network device, and its interrupt.
fn find() -> Option<(u32, MmioTransport<'static>)> {
    (1..=DEVICES_MAX).find_map(|interrupt| {
        let header = registers(interrupt).cast::<VirtIOHeader>();
        // SAFETY: the board has registers of a device or of none here, and they stay.
        let transport = unsafe { MmioTransport::new(header, DEVICE_SIZE) }.ok()?;
        (transport.device_type() == DeviceType::Network).then_some((interrupt, transport))
    })
}

/// The pages of the driver's own queues, in a static. They are never given back.
#[derive(Debug)]
struct Pages;

impl Pages {
    const COUNT: usize = 8;
}

// SAFETY: `dma_alloc` returns pages of a static, each once, aligned and zeroed, and an address of zero if there are no more. Devices see memory where
// the program does, so sharing changes nothing.
unsafe impl Hal for Pages {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        #[repr(align(4096))]
        struct Page(#[expect(dead_code, reason = "the device uses it")] [MaybeUninit<u8>; PAGE_SIZE]);
        static mut MEMORY: [Page; Pages::COUNT] =
            [const { Page([MaybeUninit::zeroed(); PAGE_SIZE]) }; Pages::COUNT];
        static TAKEN: AtomicUsize = AtomicUsize::new(0);

        let first = TAKEN.fetch_add(pages, Ordering::Relaxed);
        if first + pages > Self::COUNT {
            return (0, NonNull::dangling());
        }
        // SAFETY: the pages lie in the static.
        let base = unsafe { (&raw mut MEMORY).cast::<Page>().add(first) };
        let base = NonNull::new(base.cast::<u8>()).unwrap_or(NonNull::dangling());
        (base.as_ptr().expose_provenance() as PhysAddr, base)
    }

    unsafe fn dma_dealloc(_: PhysAddr, _: NonNull<u8>, _: usize) -> i32 {
        0
    }

    unsafe fn mmio_phys_to_virt(address: PhysAddr, _: usize) -> NonNull<u8> {
        NonNull::new(ptr::with_exposed_provenance_mut(address as usize)).unwrap_or(NonNull::dangling())
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        buffer.cast::<u8>().as_ptr().expose_provenance() as PhysAddr
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}

//! Full collections beside 1 GiB of frozen memory that half of all references lead to, and without it: the ratio of
//! the times, and whether a page of the image was touched. (design/gc-figures.md `.frozen`.)

use core::ptr::{self, NonNull};
use core::time::Duration;
use std::time::Instant;

use benches::compare::{Contender, compare, print};
use tripoint::author::{Block, SymmetricFence};
use tripoint::gc::{Ams, Heap, HeapOptions, MutatorBuffer, SweptOptions, Tag};
use tripoint::{AllocationPoint, ArenaVm, BufferKind};

use crate::Options;
use crate::nodes::{CELL, Cells, Vm, arena};

type LiveHeap<'a> = Heap<'a, Vm<'a>, SymmetricFence>;
type Pool<'h> = Ams<'h, Vm<'h>, SymmetricFence, Cells>;

pub(crate) fn measure(options: &Options) {
    let (live, frozen, rounds) = if options.quick { (1 << 20, 16 << 20, 3) } else { (64 << 20, 1 << 30, 61) };
    let image = Image::map(frozen);
    let arenas = [arena(), arena()];
    let [plain, beside] = arenas.each_ref().map(|arena| heap(arena));
    let block = image.block();
    // SAFETY: the image is mapped as long as the segment is registered, nothing changes it, and it has no references:
    // all of its bytes are zero.
    let _segment = unsafe { beside.register_frozen(block, 0..frozen) }.unwrap();
    let mut most_faults = 0;
    with_live(
        &plain,
        live,
        |_| ptr::null_mut(),
        || {
            let place = |index: usize| block.base().as_ptr().wrapping_add(index * 64 % frozen);
            with_live(&beside, live, place, || {
                let mut contenders = [
                    Contender::new("without", || time(&plain, &mut 0)),
                    Contender::new("beside frozen memory", || time(&beside, &mut most_faults)),
                ];
                let standings = compare(&mut contenders, rounds, live / size_of::<[usize; CELL]>());
                drop(contenders);
                let (live, frozen) = (live >> 20, frozen >> 20);
                print(&format!("full collection of {live} MiB beside {frozen} MiB: an object"), &standings);
            });
        },
    );
    println!("\nthe most faults of a collection: {most_faults}");
    println!("pages of the image that this process has mapped: {} KiB", image.resident());
    // The control: a read is seen.
    image.read();
    println!("after a read of one byte: {} KiB", image.resident());
}

fn heap(arena: &ArenaVm) -> LiveHeap<'_> {
    Heap::create(arena, HeapOptions::default()).unwrap()
}

/// Calls `run` while a list of that many bytes is live, each object of which refers to a place of its own.
fn with_live<'a>(heap: &'a LiveHeap<'a>, live: usize, place: impl Fn(usize) -> *mut u8, run: impl FnOnce()) {
    let _parked = heap.park();
    let pool = Pool::create(heap, Cells, SweptOptions::default()).unwrap();
    let mutator = heap.register().unwrap();
    let mut list: *mut u8 = ptr::null_mut();
    let slot = NonNull::from(&mut list);
    // SAFETY: the variable outlives the root, and is used through this pointer alone.
    let _root = unsafe { heap.root_table(slot, 1, Tag::default()) }.unwrap();
    let adjust = |buffer: &MutatorBuffer| {
        // SAFETY: the point is used on this thread, while the mutator is running.
        unsafe { buffer.attend(&mutator) };
    };
    let mut point = AllocationPoint::create_in(&pool, BufferKind::Mutator, (), adjust).unwrap();
    for index in 0..live / size_of::<[usize; CELL]>() {
        // SAFETY: the slot is the variable above.
        let next = unsafe { slot.read() };
        let cell = || [next, place(index), ptr::null_mut(), ptr::null_mut()];
        // SAFETY: four words, of which the first two are references: to the list, and to what is no object of the heap.
        let cell = unsafe { point.alloc_with(cell) }.unwrap();
        // SAFETY: the slot is the variable above.
        unsafe { slot.write(cell.as_ptr().cast()) };
    }
    drop((point, mutator));
    run();
}

/// The time of one collection.
fn time(heap: &LiveHeap<'_>, most_faults: &mut i64) -> Duration {
    let before = faults();
    let start = Instant::now();
    heap.collect(Duration::MAX).unwrap();
    let time = start.elapsed();
    *most_faults = (faults() - before).max(*most_faults);
    time
}

/// The minor and major faults of this process so far.
fn faults() -> i64 {
    // SAFETY: all bits zero are a value of this type.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: the kernel writes the usage, which is valid for that.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage.ru_minflt + usage.ru_majflt
}

/// A file in memory, mapped read-only.
struct Image {
    base: NonNull<u8>,
    size: usize,
}

impl Image {
    fn map(size: usize) -> Self {
        // SAFETY: the name is a string that ends with a zero.
        let file = unsafe { libc::memfd_create(c"image".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(file >= 0, "the kernel refuses a file in memory");
        let length = libc::off_t::try_from(size).unwrap();
        // SAFETY: the file was just opened.
        assert_eq!(unsafe { libc::ftruncate(file, length) }, 0);
        // SAFETY: a new mapping takes no memory of others.
        let base = unsafe { libc::mmap(ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, file, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        // SAFETY: the mapping keeps the file.
        unsafe { libc::close(file) };
        Self { base: NonNull::new(base.cast()).unwrap(), size }
    }

    fn block(&self) -> Block {
        // SAFETY: this is the mapping.
        unsafe { Block::new(self.base, self.size) }
    }

    /// How much of it this process has mapped pages of, in KiB.
    fn resident(&self) -> usize {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let begin = format!("{:x}-", self.base.addr());
        let mut lines = maps.lines().skip_while(|line| !line.starts_with(&begin));
        let resident = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        resident.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn read(&self) {
        // SAFETY: the first byte of the mapping.
        unsafe { self.base.read_volatile() };
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: this is the mapping, and nothing uses it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}

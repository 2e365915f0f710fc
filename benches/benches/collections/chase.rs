//! Reads of random words of memory, without a collector: what the machine takes for them, in memory of each size.

use core::hint::black_box;

use benches::random::Random;

use crate::times::time_of;

/// Words that are read in each measurement.
const READS: usize = 4 << 20;

/// In nanoseconds for a word.
#[derive(Default)]
pub(crate) struct Chase {
    /// Each address depends on the word before, so that each read waits for the last one.
    pub(crate) chased: f64,
    /// All addresses are known: the processor has as many reads under way as it can.
    pub(crate) read: f64,
}

/// Reads words of `bytes` bytes of memory.
pub(crate) fn chase(bytes: usize, huge_pages: bool) -> Chase {
    // Zeros, but written: pages that never were are all the same memory.
    let mut words = Vec::with_capacity(bytes / size_of::<u64>());
    if huge_pages {
        advise(words.as_mut_ptr(), bytes);
    }
    words.resize(words.capacity(), black_box(0_u64));
    let mut random = Random(1);
    let chased = time_of(|| {
        (0..READS).fold(0, |last: u64, _| last.wrapping_add(words[random.below(words.len()) ^ last as usize]))
    });
    let read =
        time_of(|| (0..READS).fold(0, |sum: u64, _| sum.wrapping_add(words[random.below(words.len())])));
    let nanoseconds = |time: core::time::Duration| time.as_secs_f64() * 1e9 / READS as f64;
    Chase { chased: nanoseconds(chased), read: nanoseconds(read) }
}

/// Asks for huge pages behind memory, as an arena does.
fn advise(base: *mut u64, bytes: usize) {
    let first = base.map_addr(|base| base.next_multiple_of(4096));
    let rest = bytes - (first.addr() - base.addr());
    // SAFETY: advice changes no memory, and these pages lie in it.
    unsafe { libc::madvise(first.cast(), rest & !4095, libc::MADV_HUGEPAGE) };
}

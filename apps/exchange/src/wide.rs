//! Tables of full size from the start, on huge pages if the system has some (design/exchange.md `.book.tables`).

/// That many copies of a value, all of them written.
pub fn table<T: Clone>(value: T, len: usize) -> Vec<T> {
    let mut table = room(len);
    table.resize(len, value);
    table
}

/// Room for that many values, none of it touched.
pub fn room<T>(len: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(len);
    advise(room.spare_capacity_mut());
    room
}

/// Asks for huge pages under this memory, before it is touched.
#[cfg(target_os = "linux")]
fn advise<T>(memory: &mut [T]) {
    const PAGE: usize = 2 << 20;
    let start = memory.as_mut_ptr().cast::<u8>();
    let before = start.align_offset(PAGE);
    let whole = size_of_val(memory).saturating_sub(before) / PAGE * PAGE;
    if whole > 0 {
        // SAFETY: `whole` bytes from there are of `memory`; what they are backed by is a matter of speed only, also if the
        // advice is refused.
        unsafe { libc::madvise(start.wrapping_add(before).cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_memory: &mut [T]) {}

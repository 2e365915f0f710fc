//! The sums of the fast path against wide arithmetic
//! (design/ap.md `.reserve.sum`, `.stop.limit`).

use tripoint_ap::internal::calc;
use tripoint_core::{ADDRESS_CEILING, INLINE_SIZE_MAX};
use tripoint_oracle::Choices;

/// Compares each sum with the same sum in 128 bits.
///
/// # Panics
/// If they differ.
pub fn fast_path_sums(data: &[u8]) {
    let mut choices = Choices::new(data);
    while let Some(()) = compare(&mut choices) {}
}

fn compare(choices: &mut Choices<'_>) -> Option<()> {
    let min_align = 1 << (choices.byte()? % 8);
    let align = 1 << (choices.byte()? % 24);
    let init = near_an_edge(choices)?.min(ADDRESS_CEILING) & !(min_align - 1);
    let size = near_an_edge(choices)?;
    let limit = near_an_edge(choices)?;

    let end = init as u128 + size as u128;
    let fits = size <= INLINE_SIZE_MAX && end <= limit as u128;
    assert_eq!(calc::fits(init, size, limit), fits, "fits({init:#x}, {size:#x}, {limit:#x})");

    let aligned = init % align == 0;
    assert_eq!(
        calc::is_aligned(init, align, min_align),
        aligned,
        "is_aligned({init:#x}, {align}, {min_align})"
    );

    let armed = end.min(limit as u128);
    assert_eq!(
        calc::armed_limit(limit, init, size) as u128,
        armed,
        "armed_limit({limit:#x}, {init:#x}, {size:#x})"
    );
    Some(())
}

/// A word, most often close to one at which the answer changes.
fn near_an_edge(choices: &mut Choices<'_>) -> Option<usize> {
    const EDGES: [usize; 7] =
        [0, INLINE_SIZE_MAX, 0x7fff_ffff_f000, isize::MAX as usize, ADDRESS_CEILING, usize::MAX, 1 << 32];
    let kind = usize::from(choices.byte()?);
    match EDGES.get(kind % (EDGES.len() + 1)) {
        Some(edge) if kind & 0x80 == 0 => Some(edge.wrapping_add(usize::from(choices.byte()?))),
        Some(edge) => Some(edge.wrapping_sub(usize::from(choices.byte()?))),
        None => choices.word(),
    }
}

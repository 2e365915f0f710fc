//! A pool of class TLSF, in a client arena, against the naive oracle.

use tripoint::{Tlsf, TlsfOptions};
use tripoint_oracle::{Choices, Slack};

use crate::manual::{ARENA_SIZE, GRAIN, live};
use crate::memory::with_arena;

/// Blocks do not overlap, are aligned and keep their contents; free memory adds up; no
/// request that fits is refused; and in the end nothing is lost.
///
/// # Panics
/// If any of that does not hold.
pub fn tlsf_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let Some(options) = draw_options(&mut choices) else { return };
    with_arena(ARENA_SIZE, GRAIN, |arena| {
        let pool = Tlsf::create(arena, options).unwrap();
        live(&pool, &mut choices, Slack::None);
    });
}

fn draw_options(choices: &mut Choices<'_>) -> Option<TlsfOptions> {
    let spare = if choices.byte()? & 1 == 0 { usize::MAX } else { choices.below(8 << 10)? };
    Some(TlsfOptions {
        extend_by: choices.below(8 << 10)?,
        fill_size: choices.below(2 << 10)?,
        spare,
        bin_blocks: choices.below(20)?,
    })
}

//! A pool of class MVT, in a client arena, against the naive oracle.

use tripoint::{Mvt, MvtOptions};
use tripoint_oracle::{Choices, Slack};

use crate::manual::{ARENA_SIZE, GRAIN, live};
use crate::memory::with_arena;

/// Blocks do not overlap, are aligned and keep their contents; free memory adds up; no
/// request that fits is refused; and in the end nothing is lost.
///
/// # Panics
/// If any of that does not hold.
pub fn mvt_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let Some(options) = draw_options(&mut choices) else { return };
    with_arena(ARENA_SIZE, GRAIN, |arena| {
        let pool = Mvt::create(arena, options).unwrap();
        live(&pool, &mut choices, Slack::OfExtents);
    });
}

fn draw_options(choices: &mut Choices<'_>) -> Option<MvtOptions> {
    let min_size = 1 + choices.below(256)?;
    let mean_size = min_size + choices.below(256)?;
    Some(MvtOptions {
        min_size,
        mean_size,
        max_size: mean_size + choices.below(4 << 10)?,
        reserve_depth: choices.below(64)?,
        fragmentation_limit: choices.byte()? % 101,
    })
}

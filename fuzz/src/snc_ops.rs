//! A pool of class SNC, in a client arena, against the naive oracle.

use tripoint::{Snc, SncOptions};
use tripoint_oracle::{Choices, Draws, Layouts, Menu, STACKS, Scrutiny, live_in_frames};

use crate::manual::{ARENA_SIZE, GRAIN};
use crate::memory::with_arena;

const MENU: Menu =
    Menu { kinds: STACKS, layouts: Layouts::Below { size: 3 << 10, align_log: 11, edges: &[] } };

/// Reserves, pushes and pops as the bytes say, in two stacks: a pop frees what was
/// allocated since its push and nothing else, and in the end all memory is free.
///
/// # Panics
/// If any of that does not hold.
pub fn snc_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let Some(options) = draw_options(&mut choices) else { return };
    with_arena(ARENA_SIZE, GRAIN, |arena| {
        let pool = Snc::create(arena, options).unwrap();
        let draws = [Draws::Never, Draws::Never];
        live_in_frames(&pool, &draws, MENU.draw_all(&mut choices), Scrutiny::WhenAsked);
    });
}

fn draw_options(choices: &mut Choices<'_>) -> Option<SncOptions> {
    Some(SncOptions { extend_by: choices.below(8 << 10)?, fill_size: choices.below(2 << 10)? })
}

//! A pool of class MFS and its caches, in a client arena, against the naive oracle.

use core::alloc::Layout;

use tripoint::{Mfs, MfsOptions, PoolClass, UnitLayout};
use tripoint_oracle::{
    CACHES, Choices, Draws, Layouts, MANUAL, Menu, ReturnFrontEnd, Scrutiny, Slack, live_manually,
    live_with_front_ends,
};

use crate::manual::{ARENA_SIZE, GRAIN};
use crate::memory::with_arena;

const LAYOUTS: Layouts = Layouts::Below { size: 96, align_log: 6, edges: &[] };
const POOL: Menu = Menu { kinds: MANUAL, layouts: LAYOUTS };
const STORES: Menu = Menu { kinds: CACHES, layouts: LAYOUTS };

/// Allocates and frees units as the bytes say: in the pool and in allocation points, or
/// in two caches, through returns and in the pool in turn. Every unit is free, live or
/// cached, and in the end nothing is lost.
///
/// # Panics
/// If any of that does not hold.
pub fn mfs_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let Some((cached, unit, options)) = draw(&mut choices) else { return };
    with_arena(ARENA_SIZE, GRAIN, |arena| {
        let pool = Mfs::create(arena, unit, options).unwrap();
        if cached {
            let (mut first, mut second) = (pool.cache(), pool.cache());
            let mut returns = ReturnFrontEnd { pool: &pool, returns: pool.returns() };
            live_with_front_ends(
                &pool,
                &mut [&mut first, &mut second, &mut returns, &mut &pool],
                STORES.draw_all(&mut choices),
                Slack::OfExtents,
                Scrutiny::WhenAsked,
            );
        } else {
            let draws = [Draws::Every(100), Draws::Every(1000)];
            let operations = POOL.draw_all(&mut choices);
            live_manually(&pool, &draws, operations, Slack::OfExtents, Scrutiny::WhenAsked);
        }
        pool.trim();
        assert_eq!(pool.sizes().total, 0, "each extent is free, and was returned");
    });
}

fn draw(choices: &mut Choices<'_>) -> Option<(bool, UnitLayout, MfsOptions)> {
    let cached = choices.byte()? & 1 == 0;
    let layout = Layout::from_size_align(1 + choices.below(96)?, 1 << choices.below(7)?).ok()?;
    let options = MfsOptions { extend_by: choices.below(4 << 10)?, fill_size: choices.below(1 << 10)? };
    Some((cached, UnitLayout::new(layout).ok()?, options))
}

//! Two allocation points with trips, flips and stops, against the naive oracle.

use tripoint::author::SymmetricFence;
use tripoint_oracle::{
    ALIGN_MAX, Choices, Draws, Flippable, Layouts, MIN_ALIGN, Manual, Menu, POINTS, SIZE_MAX, operate_points,
};

use crate::memory::with_arena;

const MENU: Menu = Menu {
    kinds: POINTS,
    layouts: Layouts::Below { size: 3 << 10, align_log: ALIGN_MAX.ilog2() + 1, edges: &[SIZE_MAX] },
};

/// Reserves, commits, abandons, trips, flips and empties as the bytes say, in a
/// flippable pool or a manual one: a commit fails exactly when a flip came after its
/// reserve, no trip is lost, every stop names the object that it is in, and what was
/// filled and not emptied is what was allocated (design/ap.md `.req.exact`,
/// `.req.trip`, `.req.count`).
///
/// # Panics
/// If any of that does not hold.
pub fn ap_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let Some((flippable, fill_size, draws)) = draw(&mut choices) else { return };
    with_arena(64 << 10, 1024, |arena| {
        let operations = MENU.draw_all(&mut choices);
        if flippable {
            operate_points(arena, Flippable(SymmetricFence), fill_size, &draws, operations);
        } else {
            operate_points(arena, Manual, fill_size, &draws, operations);
        }
    });
}

fn draw(choices: &mut Choices<'_>) -> Option<(bool, usize, [Draws; 2])> {
    let form = choices.which()?;
    let fill_size = MIN_ALIGN << ((form >> 2) % 9);
    let draws = [Draws::draw_from(choices, 4096)?, Draws::draw_from(choices, 4096)?];
    Some((form & 3 != 0, fill_size, draws))
}

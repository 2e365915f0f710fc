//! Shared by the targets of manual pools.

use tripoint::ManualPool;
use tripoint_oracle::{Choices, Draws, Layouts, MANUAL, Menu, Scrutiny, Slack, live_manually};

/// The grain of the arenas, in bytes.
pub(crate) const GRAIN: usize = 1024;

/// The memory of the arenas, in bytes: so little that it runs out now and then.
pub(crate) const ARENA_SIZE: usize = 24 << 10;

const MENU: Menu =
    Menu { kinds: MANUAL, layouts: Layouts::Below { size: 4 << 10, align_log: 11, edges: &[] } };

/// Allocates and frees as the bytes say, directly, in fills and through two allocation
/// points with stops and trips.
pub(crate) fn live<P: ManualPool>(pool: &P, choices: &mut Choices<'_>, slack: Slack) {
    let Some(first) = Draws::draw_from(choices, 1024) else { return };
    let Some(second) = Draws::draw_from(choices, 1024) else { return };
    live_manually(pool, &[first, second], MENU.draw_all(choices), slack, Scrutiny::WhenAsked);
}

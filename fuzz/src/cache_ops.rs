//! Caches by size classes over a pool of class MVFF, against the naive oracle.

use tripoint::author::CacheClass;
use tripoint::{Cache, CacheClasses, CacheDescriptor, Mvff, MvffOptions};
use tripoint_oracle::{CACHES, Choices, ClassFrontEnd, Layouts, Menu, Scrutiny, Slack, live_with_front_ends};

use crate::manual::{ARENA_SIZE, GRAIN};
use crate::memory::with_arena;

const MENU: Menu =
    Menu { kinds: CACHES, layouts: Layouts::Below { size: 2 << 10, align_log: 6, edges: &[] } };

/// Allocates, frees, flushes and trips as the bytes say, in two caches: every block is
/// free, live or cached, and in the end nothing is lost.
///
/// # Panics
/// If any of that does not hold.
pub fn cache_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let Some(classes) = draw_classes(1, &mut choices) else { return };
    with_arena(ARENA_SIZE, GRAIN, |arena| {
        let options = MvffOptions { extend_by: 2 * GRAIN, ..MvffOptions::default() };
        let pool = Mvff::create(arena, options).unwrap();
        let descriptors = [CacheDescriptor::new(classes), CacheDescriptor::new(classes)];
        let [mut first, mut second] = descriptors
            .each_ref()
            .map(|descriptor| ClassFrontEnd { cache: Cache::create(&pool, descriptor).unwrap(), classes });
        live_with_front_ends(
            &pool,
            &mut [&mut first, &mut second],
            MENU.draw_all(&mut choices),
            Slack::None,
            Scrutiny::WhenAsked,
        );
    });
}

/// Up to four classes, each larger than the one before, of which each keeps at least `least` blocks.
pub(crate) fn draw_classes(least: usize, choices: &mut Choices<'_>) -> Option<CacheClasses> {
    const STEP: usize = 2 * size_of::<usize>();
    let mut size = 0;
    let mut classes = Vec::new();
    for _ in 0..=choices.byte()? % 4 {
        size += STEP * (1 + choices.below(16)?);
        classes.push(CacheClass { size, count: least + choices.below(12)? });
    }
    Some(CacheClasses::new(&classes).unwrap())
}

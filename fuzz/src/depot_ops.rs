//! Caches that share a depot, with slabs and without, over a pool of class TLSF, against the naive oracle.

use core::iter;

use tripoint::{Cache, CacheClasses, CacheDescriptor, Depot, Tlsf, TlsfOptions};
use tripoint_oracle::{
    CACHES, Choices, ClassFrontEnd, Layouts, Menu, Operation, Scrutiny, Slack, live_with_front_ends,
};

use crate::cache_ops::draw_classes;
use crate::manual::GRAIN;
use crate::memory::with_arena;

/// What a slab takes of its pool, in bytes.
const SLAB: usize = 64 << 10;

/// The most slabs for which there is room.
const SLABS_MAX: usize = 7;

/// Of a slab a header, and less than a block, are of no use.
const LOST_MAX: usize = SLABS_MAX * (SLAB / 64 + 1024);

const MENU: Menu =
    Menu { kinds: CACHES, layouts: Layouts::Below { size: 2 << 10, align_log: 6, edges: &[] } };

/// Allocates, frees, flushes and trips as the bytes say, in two caches and in the depot that they share: every block is free,
/// live, cached, in the depot or in a slab, and in the end nothing is lost.
///
/// # Panics
/// If any of that does not hold.
pub fn depot_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let Some(Drawn { classes, slabs, room, bound, times }) = draw(&mut choices) else { return };
    with_arena(room, GRAIN, |arena| {
        let pool = Tlsf::create(arena, TlsfOptions::default()).unwrap();
        let make = if slabs { Depot::with_slabs } else { Depot::new };
        let depot = make(&pool, classes, bound);
        assert_eq!(depot.has_slabs(), slabs);
        let descriptors = [CacheDescriptor::new(classes), CacheDescriptor::new(classes)];
        let [mut first, mut second] = descriptors.each_ref().map(|descriptor| ClassFrontEnd {
            cache: Cache::with_depot(&depot, descriptor).unwrap(),
            classes,
        });
        let operations = MENU.draw_all(&mut choices).flat_map(|operation| {
            let is_repeated = matches!(operation, Operation::Get { .. } | Operation::Put { .. });
            iter::repeat_n(operation, if is_repeated { times } else { 1 })
        });
        live_with_front_ends(
            &pool,
            &mut [&mut first, &mut second, &mut &depot],
            operations,
            if slabs { Slack::Within(LOST_MAX) } else { Slack::None },
            Scrutiny::WhenAsked,
        );
    });
}

struct Drawn {
    classes: CacheClasses,
    slabs: bool,
    /// The bytes of the arena: with slabs there is room for one at least.
    room: usize,
    /// The bytes that the depot may keep.
    bound: usize,
    /// How often each object is allocated or freed: so a few operations fill slabs, and free them.
    times: usize,
}

fn draw(choices: &mut Choices<'_>) -> Option<Drawn> {
    let classes = draw_classes(2, choices)?;
    let slabs = choices.byte()? & 1 == 0;
    let room = if slabs { (2 + choices.below(SLABS_MAX)?) * SLAB } else { 24 << 10 };
    Some(Drawn { classes, slabs, room, bound: choices.below(16 << 10)?, times: 1 << choices.below(5)? })
}

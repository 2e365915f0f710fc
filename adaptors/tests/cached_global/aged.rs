//! Structures that are torn down in random order and built again.

use tripoint_oracle::Random;

use super::*;

/// The percentage of objects that lie on the page of the one allocated before, or next to it.
fn near(objects: &[*mut u8]) -> usize {
    let are_near = |pair: &[*mut u8]| pair[0].addr().abs_diff(pair[1].addr()) < 4096;
    objects.windows(2).filter(|pair| are_near(pair)).count() * 100 / objects.len()
}

/// What was freed in random order is allocated in the order of addresses, but for what caches and the depot keep
/// (design/cache.md `.slab.aged`).
#[test]
fn a_structure_that_is_built_again_does_not_lie_scattered() {
    cached_global_pool! { static POOL: Tlsf<ArenaVm> = || tlsf(64 << 20); }
    let build = || -> Vec<*mut u8> {
        // SAFETY: the layout has a size.
        (0..100_000).map(|_| unsafe { POOL.alloc(layout(64)) }).collect()
    };
    let free = |objects: Vec<*mut u8>| {
        // SAFETY: allocated above with this layout, freed once.
        objects.into_iter().for_each(|object| unsafe { POOL.dealloc(object, layout(64)) });
    };
    let (mut objects, mut random) = (build(), Random::new(7));
    for last in (1..objects.len()).rev() {
        objects.swap(random.below(last + 1), last);
    }
    assert!(near(&objects) < 5, "the control: they are in random order");
    free(objects);
    let again = build();
    assert!(near(&again) > 85, "{} % lie near to the one before", near(&again));
    free(again);
}

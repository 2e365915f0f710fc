//! The sizes of classes, and which of them serves a layout.

use super::*;

const MAX: usize = CacheClasses::MAX;

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    /// The table and the search agree: the smallest class that is large enough.
    #[test]
    fn a_size_is_served_by_the_smallest_class_that_fits(
        sizes in prop::collection::btree_set(1..4000_usize, 1..32),
        asked in 0..5000_usize,
    ) {
        let rounded: std::collections::BTreeSet<usize> =
            sizes.iter().map(|size| size.next_multiple_of(WORDS_2)).collect();
        let list: Vec<_> = rounded.iter().map(|&size| (size, 1)).collect();
        let served = classes(&list).block(layout(asked, 1)).map(|block| block.size());
        prop_assert_eq!(served, rounded.range(asked..).next().copied());
    }
}

#[test]
fn geometric_classes_waste_at_most_a_quarter() {
    let classes = CacheClasses::geometric(512, 64).unwrap();
    assert_eq!(classes.as_slice().len(), if WORDS_2 == 16 { 16 } else { 20 });
    for size in 0..=512 {
        let block = classes.block(layout(size, 1)).unwrap().size();
        assert!(
            block >= size && (block - size <= WORDS_2 || (block - size) * 4 <= size),
            "{size} in {block}"
        );
    }
    assert_eq!(classes.block(layout(513, 1)), None);
    assert_eq!(classes.block(layout(16, 2 * WORDS_2)), None);
    let reach = 8192 * WORDS_2;
    assert_eq!(CacheClasses::geometric(reach, 1).unwrap().as_slice().len(), CacheClasses::MAX);
    assert!(matches!(CacheClasses::geometric(reach + 1, 1), Err(Error::Parameter(_))));
}

#[test]
fn linear_classes_are_evenly_spaced() {
    for largest in [0, 1, 100, MAX * WORDS_2, MAX * WORDS_2 + 1, 10_000] {
        let classes = CacheClasses::linear(largest, 5).unwrap();
        let step = classes.as_slice()[0].size;
        assert!(step == WORDS_2 || step < largest.div_ceil(MAX) + WORDS_2, "{step} for {largest}");
        for size in (1..=largest).step_by(if cfg!(miri) { 37 } else { 1 }) {
            let block = classes.block(layout(size, 1)).unwrap().size();
            assert_eq!(block, size.next_multiple_of(step));
        }
    }
    assert_eq!(CacheClasses::linear(MAX * WORDS_2, 5).unwrap().as_slice().len(), MAX);
    for largest in [usize::MAX, isize::MAX as usize] {
        assert!(matches!(CacheClasses::linear(largest, 5), Err(Error::Parameter(_))));
    }
    assert!(matches!(CacheClasses::linear(512, 0), Err(Error::Parameter(_))));
}

#[test]
fn classes_that_make_no_sense_are_refused() {
    let class = |size, count| CacheClass { size, count };
    let many: Vec<_> = (1..=MAX + 1).map(|step| class(step * 16, 1)).collect();
    for bad in [
        &[] as &[CacheClass],
        &many,
        &[class(0, 1)],
        &[class(16, 0)],
        &[class(32, 1), class(16, 1)],
        &[class(WORDS_2 + 1, 1), class(2 * WORDS_2, 1)],
        &[class(usize::MAX, 1)],
        &[class(isize::MAX as usize, 1)],
    ] {
        assert!(matches!(CacheClasses::new(bad), Err(Error::Parameter(_))), "{bad:?}");
    }
    assert!(CacheClasses::new(&many[..MAX]).is_ok());
}

#[test]
fn larger_classes_keep_fewer_blocks_within_a_size() {
    let largest = 1024 * CacheClass::ALIGN;
    let classes = CacheClasses::geometric_within(largest, 100, 8 << 10).unwrap();
    for class in classes.as_slice() {
        let within = class.count * class.size <= 8 << 10;
        let more = (class.count + 1) * class.size > 8 << 10;
        assert!(within && (more || class.count == 100) || class.count == 4, "{class:?}");
    }
    assert_eq!(classes.as_slice()[0].count, 100);
    for (limit, part) in [(64 * CacheClass::ALIGN, 8), (largest, 4)] {
        for size in (1..=limit).step_by(7) {
            let block = classes.block(layout(size, 1)).unwrap().size();
            assert!(block - size < CacheClass::ALIGN.max(size.div_ceil(part)), "{block} bytes for {size}");
        }
    }
    for (largest, count) in [(largest + 1, 100), (512, 0)] {
        assert!(matches!(CacheClasses::geometric_within(largest, count, 8 << 10), Err(Error::Parameter(_))));
    }
}

/// A block is resized in place while another would be no other; what no class serves is for the pool.
#[test]
fn blocks_are_resized_in_place_within_their_class() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = mvff(&arena);
    let descriptor = CacheDescriptor::new(classes(&[(64, 8), (256, 8)]));
    let cache = Cache::create(&pool, &descriptor).unwrap();
    let resized = |from: usize, to: usize, changes_room: bool| {
        let object = cache.alloc(layout(from, 8)).unwrap();
        // SAFETY: allocated above with this layout.
        let resized = unsafe {
            if changes_room {
                cache.resize_room(object, layout(from, 8), layout(to, 8))
            } else {
                cache.resize(object, layout(from, 8), layout(to, 8))
            }
        };
        assert!(resized.is_none_or(|resized| resized == object));
        let size = if resized.is_some() { to } else { from };
        // SAFETY: allocated from this cache; it has this layout now. Freed once.
        unsafe { cache.free(object, layout(size, 8)) };
        resized.is_some()
    };
    for (from, to, expected) in [
        (1, 64, true),
        (64, 1, true),
        (64, 65, false),
        (65, 64, false),
        (65, 256, true),
        (256, 257, false),
        (257, 256, false),
        (1001, 1000, pool.reserve_size(layout(1001, 8)) == pool.reserve_size(layout(1000, 8))),
    ] {
        assert_eq!(resized(from, to, false), expected, "{from} to {to}");
        assert_eq!(resized(from, to, true), expected || from > 1000, "{from} to {to}, with other room");
    }
    assert!(!resized(500, 300, false) && resized(500, 300, true) && resized(300, 500, true));
    cache.check(CheckLevel::Deep).unwrap();
}

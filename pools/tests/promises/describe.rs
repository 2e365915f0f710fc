//! Descriptions: first what all pools say, then what the class adds, indented one step
//! further.

use crate::common::{GRAIN, SEAL, arena, classes, layout, memory};
use tripoint_core::{Describe, PoolClass, Store};
use tripoint_pools::GRANULE;
use tripoint_pools::UnitOf;

fn text(described: &impl Describe, depth: usize) -> String {
    let mut text = String::new();
    described.describe(&mut text, depth).unwrap();
    text
}

/// The lines of a pool's description that its class wrote, without their indentation.
fn lines_of_class<P: PoolClass>(pool: &P) -> Vec<String> {
    let whole = text(pool, 0);
    let own = whole.strip_prefix(&text(pool.header(), 0)).expect("the header comes first");
    assert!(own.lines().all(|line| line.starts_with("  ")), "a step inwards:\n{whole}");
    let deeper: String = whole.lines().map(|line| format!("    {line}\n")).collect();
    assert_eq!(text(pool, 2), deeper);
    own.lines().map(|line| line.trim_start().to_owned()).collect()
}

/// Describes a new pool that has one object of `$layout`.
macro_rules! described {
    ($create:expr, $layout:expr) => {{
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let pool = $create(&arena).unwrap();
        pool.alloc($layout).unwrap();
        lines_of_class(&pool)
    }};
}

#[test]
#[cfg_attr(
    feature = "hardening",
    ignore = "units lie at multiples of their size: where the arena lies decides how many fit"
)]
fn mfs_describes_its_units() {
    let units = 2 * GRAIN / 96 - 1;
    let expected = [
        "unit: 96 bytes".to_owned(),
        format!("free units: 0 freed, {units} never used"),
        format!("extend by: {} bytes", 2 * GRAIN),
        "fill size: 960 bytes".to_owned(),
    ];
    assert_eq!(described!(classes::mfs_of, layout(96, 8)), expected);
}

#[test]
fn mvff_describes_its_free_blocks() {
    let free = 4 * GRAIN - 100_usize.next_multiple_of(GRANULE);
    let expected = [
        format!("free: {free} bytes in 1 blocks"),
        format!("largest free: {free} bytes"),
        format!("extend by: {} bytes", 4 * GRAIN),
        "fill size: 1024 bytes".to_owned(),
    ];
    assert_eq!(described!(classes::mvff, layout(100, 8)), expected);
}

#[test]
fn tlsf_describes_its_free_memory_and_its_map() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::tlsf(&arena).unwrap();
    pool.alloc(layout(100, 8)).unwrap();
    let (lines, sizes) = (lines_of_class(&pool), pool.sizes());
    assert_eq!(lines[0], format!("free: {} bytes", sizes.free));
    assert_eq!(lines[1], format!("largest free: {} bytes", sizes.largest_free + SEAL));
    assert!(lines[2].starts_with("map: ") && lines[2].ends_with(" levels of directories"), "{lines:?}");
    assert_eq!(lines[3..], [format!("extend by: {} bytes", 4 * GRAIN), "fill size: 1024 bytes".to_owned()]);
}

#[test]
fn mvt_describes_its_limits() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::mvt(&arena).unwrap();
    let lines = lines_of_class(&pool);
    for expected in ["fill size: ", "reserve: ", "fragmentation limit: "] {
        assert!(lines.iter().any(|line| line.starts_with(expected)), "{expected} is not in {lines:?}");
    }
}

#[test]
fn snc_describes_its_free_blocks() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::snc(&arena).unwrap();
    let expected = ["free: 0 bytes in 0 blocks", &format!("extend by: {} bytes", 2 * GRAIN)];
    assert_eq!(lines_of_class(&pool)[..2], expected);
}

/// The description of the pool inside comes before that of the debug pool around it.
#[test]
fn debug_describes_what_is_held_back_and_every_fault() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::debug_mvff(&arena).unwrap();
    let object = pool.alloc(layout(64, 8)).unwrap();
    // SAFETY: allocated above with this layout; it is freed twice, to be reported.
    unsafe { pool.free(object, layout(64, 8)) };
    // SAFETY: a debug pool finds that out and does nothing else.
    unsafe { pool.free(object, layout(64, 8)) };
    let whole = text(&pool, 0);
    let lines: Vec<&str> = whole.lines().collect();
    let held = lines.iter().position(|line| line.starts_with("  held back: ")).unwrap();
    assert_eq!(lines[held + 1], "  faults: 1");
    let report = pool.reports();
    let report = report.iter().next().unwrap();
    assert_eq!(lines[held + 2..], [format!("    fault: {report}")]);
    let deeper: String = whole.lines().map(|line| format!("    {line}\n")).collect();
    assert_eq!(text(&pool, 2), deeper);
}

#[test]
fn a_cache_of_units_describes_its_pool_and_what_it_keeps() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = classes::mfs_of(&arena).unwrap();
    let cache = pool.cache();
    assert_eq!(text(&cache, 0), format!("cache: of pool #{}\n  cached: 0 bytes\n", pool.header().id().get()));
    let object = cache.alloc(layout(96 - SEAL, 8)).unwrap();
    // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
    unsafe { cache.free(object, layout(96 - SEAL, 8)) };
    let cached = format!("    cache: of pool #{}\n      cached: ", pool.header().id().get());
    assert!(text(&cache, 2).starts_with(&cached), "{}", text(&cache, 2));
    assert!(format!("{cache:?}").starts_with("MfsCache { last: "), "{cache:?}");
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "units have a seal as well")]
fn units_show_their_size_and_alignment() {
    let word = size_of::<usize>();
    assert_eq!(
        format!("{:?}", UnitOf::<[usize; 3]>::new()),
        format!("UnitOf({} bytes, aligned to {word})", 3 * word)
    );
    assert_eq!(
        format!("{:?}", UnitOf::<[usize; 4]>::new()),
        format!("UnitOf({} bytes, aligned to {})", 4 * word, 2 * word)
    );
}

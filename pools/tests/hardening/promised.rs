//! The promises of the table of misuse: debug pools find every fault, and hardened pools
//! hand no memory out twice (design/hardening.md `.misuse`, `.req.once`).

#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../examples/misuse/faults.rs"]
mod faults;

#[cfg(feature = "hardening")]
#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../examples/misuse/search.rs"]
mod search;

use faults::{Class, Fault, run};

const SEEDS: core::ops::Range<u64> = if cfg!(miri) { 1..2 } else { 1..7 };
#[cfg(feature = "hardening")]
const OPERATIONS: usize = if cfg!(miri) { 12 } else { 600 };
/// Enough to free any object, and then all that are held back behind it.
const DEBUG_OPERATIONS: usize = 2000;

#[test]
#[cfg_attr(
    target_pointer_width = "32",
    ignore = "an underrun may hit a free granule, which has no fence (design/debug.md)"
)]
#[cfg_attr(miri, ignore = "hours; promises::debug has each fault by itself")]
fn debug_pools_find_every_fault() {
    for class in Class::ALL.into_iter().filter(|class| class.is_debug()) {
        for (fault, seed) in Fault::ALL.into_iter().flat_map(|fault| SEEDS.map(move |seed| (fault, seed))) {
            let outcome = run(class, fault, seed, DEBUG_OPERATIONS);
            let about = format!("{}, {}, seed {seed}: {outcome:?}", class.name(), fault.name());
            assert_eq!(outcome.overlap, None, "{about}");
            assert!(outcome.found.is_some() || outcome.deep || outcome.deep_later, "{about}");
            assert!(!fault.is_wrong_free() || outcome.found == Some(0), "{about}");
        }
    }
}

/// (design/hardening.md `.req.once`, `.seal`, `.mfs`)
#[cfg(feature = "hardening")]
#[test]
fn hardened_pools_hand_nothing_out_twice() {
    let classes = Class::ALL.into_iter().filter(|class| !class.is_debug());
    for (number, class) in classes.enumerate() {
        // Under Miri each fault in one of the classes, in turn.
        let (first, step) = if cfg!(miri) { (number, 6) } else { (0, 1) };
        let faults = Fault::ALL.into_iter().skip(first).step_by(step);
        for (fault, seed) in faults.flat_map(|fault| SEEDS.map(move |seed| (fault, seed))) {
            let outcome = run(class, fault, seed, OPERATIONS);
            let about = format!("{}, {}, seed {seed}: {outcome:?}", class.name(), fault.name());
            assert_eq!(outcome.overlap, None, "{about}");
            let is_decidable = if class.has_units() {
                matches!(fault, Fault::DoubleFree | Fault::Foreign | Fault::OtherPool | Fault::Interior)
            } else {
                fault.is_wrong_free()
            };
            // A cache knows the block that was freed last; it finds others when it takes them. What
            // is larger than its classes is found by the pool, when the cache has none and asks.
            let is_late =
                class == Class::CacheOfTlsf && matches!(fault, Fault::DoubleFreeLater | Fault::Larger);
            assert!(!is_decidable || is_late || outcome.found == Some(0), "{about}");
        }
    }
}

/// The page says what becomes of each fault: with hardening that is its first table, and without it what debug pools do in its
/// second. Other pools may crash there (design/hardening.md `.misuse`).
#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "the page is of 64 bits")]
#[cfg_attr(miri, ignore = "hours; promises::debug and damaged have each fault by itself")]
fn the_page_has_the_tables_of_misuse() {
    let page = include_str!("../../design/hardening.md");
    let is_debug = !cfg!(feature = "hardening");
    for fault in Fault::ALL {
        let classes = Class::ALL.into_iter().filter(|class| class.is_debug() == is_debug);
        let cells: String = classes.map(|class| format!(" {} |", run(class, fault, 2, 6000))).collect();
        let name = format!("| {} |", fault.name());
        let is_row = |line: &str| {
            line.strip_prefix(&name).is_some_and(|rest| rest == cells || is_debug && rest.ends_with(&cells))
        };
        assert!(page.lines().any(is_row), "the page should say:\n{name}{cells}");
    }
}

/// Random programs with one fault, by all ways that a pool has (design/hardening.md `.search`). A negative control is the
/// same without a fault: nothing is refused then.
#[cfg(feature = "hardening")]
#[test]
#[cfg_attr(miri, ignore = "hours; damaged has the ways one by one")]
fn programs_with_one_fault_harm_no_other_object() {
    for kind in search::Kind::ALL {
        for fault in search::Fault::ALL.into_iter().map(Some).chain([None]) {
            let counts = search::search(kind, fault, 40, 1, 300);
            assert!(counts.harmful() == 0 || !kind.promises(fault), "{kind}, {fault:?}, seed 1: {counts:?}");
            assert!(fault.is_some() || counts.found == 0, "{kind}: refused without a fault: {counts:?}");
        }
    }
}

/// The page says how a double free is found, by the ways of both frees (design/hardening.md `.twice`).
#[cfg(feature = "hardening")]
#[test]
#[cfg_attr(miri, ignore = "hours; damaged has the ways one by one")]
fn the_page_has_the_table_of_two_frees() {
    let page = include_str!("../../design/hardening.md");
    for kind in search::Kind::ALL {
        let row = search::row_of_two_frees(kind, search::PROGRAMS_OF_ROW, 1);
        assert!(page.contains(&row), "of {kind} the page should say:\n{row}");
    }
}

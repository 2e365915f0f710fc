//! Each law, tried with numbers from a fixed generator: a law that is proved and does not hold here, or the other way
//! round, is a flaw of `verify/laws`.

use tripoint_laws::law::{FAILS, HOLDS, NOT_ASKED};
use tripoint_laws::tries::outcomes;
use tripoint_laws::untrue;

#[test]
fn laws_hold_and_are_asked() {
    let mut wrong = Vec::new();
    for law in tripoint_laws::LAWS.iter().flat_map(|laws| laws.iter()) {
        let counts = outcomes(law);
        if counts[usize::from(FAILS)] != 0 || counts[usize::from(HOLDS)] == 0 {
            wrong.push((law.name, counts));
        }
    }
    assert!(wrong.is_empty(), "failed, held, not asked: {wrong:?}");
}

#[test]
fn a_law_that_is_untrue_fails() {
    let law = untrue::LAWS.iter().find(|law| law.name == "untrue_round_up_always_succeeds").unwrap();
    let counts = outcomes(law);
    assert!(counts[usize::from(FAILS)] != 0 && counts[usize::from(NOT_ASKED)] == 0, "{counts:?}");
}

/// What the program says of files that it does not take in is so.
#[test]
fn constants_are_those_of_the_product() {
    use tripoint_core::internal::Tract;
    assert_eq!(tripoint_laws::tlsf::GRANULE, tripoint_pools::GRANULE);
    let tract = (size_of::<tripoint_laws::internal::Tract>(), align_of::<tripoint_laws::internal::Tract>());
    assert_eq!(tract, (size_of::<Tract>(), align_of::<Tract>()));
}

//! Without the allocator wrapper nothing can be proved, and the contract claims
//! nothing.
#![cfg(feature = "std")]

use tripoint_contract::assert_steady;

#[test]
#[should_panic(expected = "a deliberate allocation was not seen")]
fn the_gate_does_not_pass_by_seeing_nothing() {
    assert_steady!(|| {});
}

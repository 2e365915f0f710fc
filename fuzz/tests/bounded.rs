//! The fuzz targets on bytes from a fixed generator: no search, but the same
//! checks, on any compiler.

/// Inputs for each target.
const INPUTS: u64 = 2_000;

/// The longest input, in bytes.
const LENGTH_MAX: u64 = 2_048;

/// Runs `target` on inputs of all lengths.
fn drive(target: fn(&[u8])) {
    for input in 0..INPUTS {
        let mut state = input;
        let length = split_mix(&mut state) % LENGTH_MAX;
        let bytes: Vec<u8> = (0..length).map(|_| split_mix(&mut state).to_le_bytes()[0]).collect();
        target(&bytes);
    }
}

/// The generator SplitMix64 (Steele, Lea and Flood 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn fast_path_sums() {
    drive(tripoint_fuzz::fast_path_sums);
}

#[test]
fn mvff_ops() {
    drive(tripoint_fuzz::mvff_ops);
}

#[test]
fn ap_ops() {
    drive(tripoint_fuzz::ap_ops);
}

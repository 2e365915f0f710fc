//! The fuzz targets on any compiler, without a search: on bytes from a fixed generator,
//! on the seeds of the search, and on what the search once found.

use std::path::Path;

/// Inputs for each target.
const INPUTS: u64 = 4_000;

/// The longest input, in bytes.
const LENGTH_MAX: u64 = 256;

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

/// Runs `target` on the files of a folder, and returns how many there are.
fn replay(target: fn(&[u8]), folder: &Path) -> usize {
    let Ok(files) = std::fs::read_dir(folder) else { return 0 };
    files.map(|file| target(&std::fs::read(file.unwrap().path()).unwrap())).count()
}

/// Inputs that once made a target fail are kept in `tests/regressions/`, in a
/// folder with the target's name.
macro_rules! targets {
    ($($name:ident),* $(,)?) => { $(
        mod $name {
            use super::*;

            #[test]
            fn bytes_from_a_generator() {
                drive(tripoint_fuzz::$name);
            }

            #[test]
            fn seeds_and_regressions() {
                let here = Path::new(env!("CARGO_MANIFEST_DIR"));
                let name = stringify!($name);
                assert!(replay(tripoint_fuzz::$name, &here.join("seeds").join(name)) > 0, "there are seeds");
                replay(tripoint_fuzz::$name, &here.join("tests/regressions").join(name));
            }
        }
    )* };
}

targets!(
    ap_ops,
    cache_ops,
    datagram_bytes,
    debug_misuse,
    depot_ops,
    fast_path_sums,
    feed_bytes,
    gc_ops,
    land_ops,
    laws,
    mfs_ops,
    mvff_ops,
    mvt_ops,
    packet_ops,
    snc_ops,
    telemetry_bytes,
    tlsf_ops,
    vm_arena_ops,
);

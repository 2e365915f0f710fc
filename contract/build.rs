//! Names the condition under which the detectors of Linux are compiled: `tripoint_kernel`. Miri has none of the
//! calls that they make.

use std::env::{var, var_os};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(tripoint_kernel)");
    let is_linux = var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && var_os("CARGO_FEATURE_LINUX").is_some() && var_os("CARGO_CFG_MIRI").is_none() {
        println!("cargo::rustc-cfg=tripoint_kernel");
    }
}

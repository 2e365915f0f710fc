//! Prints the first law that does not hold of some numbers, or whose sums panic, if there is one: `verify/laws mutants` asks
//! this of changed sums before it asks Z3.

use std::panic;

use tripoint_laws::LAWS;
use tripoint_laws::law::FAILS;
use tripoint_laws::tries::outcomes;

fn main() {
    panic::set_hook(Box::new(|_| ()));
    for law in LAWS.iter().flat_map(|laws| laws.iter()) {
        if panic::catch_unwind(|| outcomes(law)).map_or(true, |counts| counts[usize::from(FAILS)] != 0) {
            println!("{}", law.name);
            return;
        }
    }
}

//! The table of a work.

use benches::compare::median;

use crate::run::Sample;
use crate::trees::{BOEHM, GC_ARENA, MALLOC};

/// Prints a table in Markdown, with the ratios of processor times to those of the peers that goals name.
pub(crate) fn print(what: &str, names: &[&str], samples: &[Vec<Sample>]) {
    println!("\n| {what} | CPU, s | of malloc | of Boehm | of gc-arena | peak, MiB | longest pause, ms |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let place = |peer| names.iter().position(|name| *name == peer);
    for (name, own) in names.iter().zip(samples) {
        let of = |number: fn(&Sample) -> f64| median(own.iter().map(number));
        let ratio = |peer| match place(peer) {
            Some(peer) => {
                let ratios = own.iter().zip(&samples[peer]).map(|(own, peer)| own.time / peer.time);
                format!("{:.2}", median(ratios))
            }
            None => "–".to_owned(),
        };
        let [malloc, boehm, gc_arena] = [MALLOC, BOEHM, GC_ARENA].map(ratio);
        let (time, memory, pause) = (of(|run| run.time), of(|run| run.memory), of(|run| run.pause));
        println!("| {name} | {time:.3} | {malloc} | {boehm} | {gc_arena} | {memory:.0} | {pause:.2} |");
    }
}

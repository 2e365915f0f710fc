//! Comparing contenders on a machine that is never quite idle.
//!
//! All contenders take turns in one process. In each round every one of them runs
//! once, in an order that rotates from round to round, and its time is divided by the
//! first one's in the same round; what is reported is the median of these ratios.
//! Drifts of the clock frequency and noisy neighbours hit all contenders of a round
//! alike and cancel out.

use core::fmt;
use core::time::Duration;

/// A contender: it does the same work as the others, in its own way.
pub struct Contender<'a> {
    name: &'static str,
    work: Box<dyn FnMut() -> Duration + 'a>,
}

impl fmt::Debug for Contender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contender").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Contender<'a> {
    /// A contender whose `work` does a fixed number of operations, and returns the
    /// time they took.
    pub fn new(name: &'static str, work: impl FnMut() -> Duration + 'a) -> Self {
        Self { name, work: Box::new(work) }
    }
}

/// The result of one contender.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    name: &'static str,
    nanoseconds: f64,
    ratio: f64,
}

/// Lets the contenders do `operations` operations each, for `rounds` rounds
/// after one that does not count.
///
/// # Panics
/// If there are no rounds.
#[must_use]
pub fn compare(contenders: &mut [Contender<'_>], rounds: usize, operations: usize) -> Vec<Standing> {
    let count = contenders.len();
    let mut round = |first: usize| -> Vec<f64> {
        let mut times = vec![0.0; count];
        for index in (first..first + count).map(|turn| turn % count) {
            times[index] = (contenders[index].work)().as_secs_f64() * 1e9;
        }
        times
    };
    round(0);
    let times: Vec<Vec<f64>> = (0..rounds).map(&mut round).collect();
    let standing = |(index, contender): (usize, &Contender<'_>)| Standing {
        name: contender.name,
        nanoseconds: median(times.iter().map(|round| round[index] / operations as f64)),
        ratio: median(times.iter().map(|round| round[index] / round[0])),
    };
    contenders.iter().enumerate().map(standing).collect()
}

/// The median.
///
/// # Panics
/// If there are no values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints a table, in Markdown.
pub fn print(title: &str, standings: &[Standing]) {
    println!("\n| {title} | ns | ratio |\n|---|---:|---:|");
    for Standing { name, nanoseconds, ratio } in standings {
        println!("| {name} | {nanoseconds:.2} | {ratio:.2} |");
    }
}

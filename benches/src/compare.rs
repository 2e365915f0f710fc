//! Comparing contenders on a machine that is never quite idle.
//!
//! All contenders take turns in one process. In each round every one of them runs
//! once, in an order that is drawn anew, so that none always follows the same other, and its time is divided by the
//! first one's in the same round; what is reported is the median of these ratios.
//! Drifts of the clock frequency and noisy neighbours hit all contenders of a round
//! alike and cancel out. The seed is printed, and `-- --seed S` has the same orders again.

use core::fmt;
use core::time::Duration;
use std::sync::OnceLock;
use std::time::SystemTime;

use crate::random::Random;
use crate::standing::{Spread, Standing};
use crate::table::{Table, print_tables};

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

/// The name of the contender that allocates nothing: what remains is the cost of the benchmark itself.
pub const NULL: &str = "no allocator";

/// Lets the contenders do `operations` operations each, for `rounds` rounds
/// after one that does not count.
///
/// # Panics
/// If there are no rounds.
#[must_use]
pub fn compare(contenders: &mut [Contender<'_>], rounds: usize, operations: usize) -> Vec<Standing> {
    let mut random = Random(seed());
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut round = || -> Vec<f64> {
        random.shuffle(&mut order);
        let mut times = vec![0.0; order.len()];
        for &index in &order {
            times[index] = (contenders[index].work)().as_secs_f64() * 1e9;
        }
        times
    };
    round();
    let times: Vec<Vec<f64>> = (0..rounds).map(|_| round()).collect();
    let null = contenders.iter().position(|contender| contender.name == NULL);
    let net = |index: usize, null: usize| {
        let of = |round: &Vec<f64>| (round[0] - round[null]) / (round[index] - round[null]);
        Some(Spread::of(times.iter().map(of)).median).filter(|net| *net > 0.0)
    };
    let standing = |(index, contender): (usize, &Contender<'_>)| Standing {
        name: contender.name,
        nanoseconds: Spread::of(times.iter().map(|round| round[index] / operations as f64)),
        ratio: Spread::of(times.iter().map(|round| round[index] / round[0])),
        net: null.filter(|&null| null != index).and_then(|null| net(index, null)),
    };
    contenders.iter().enumerate().map(standing).collect()
}

/// The seed of the orders of this process: the argument after `--seed`, or the time.
#[must_use]
pub fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        let asked = std::env::args().skip_while(|argument| argument != "--seed").nth(1);
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
        // Zero would stay zero.
        let seed = asked.and_then(|seed| seed.parse().ok()).unwrap_or(now).max(1);
        println!("\norder of contenders: --seed {seed}");
        seed
    })
}

/// The median.
///
/// # Panics
/// If there are no values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    Spread::of(values).median
}

/// Prints a table, in Markdown.
pub fn print(title: &str, standings: &[Standing]) {
    print_tables([Table::of(title, standings)]);
}

//! How long messages took: counts by size, with an error below 2 %.

/// Parts of each power of two.
const PARTS: usize = 64;

/// Powers of two: up to 18 minutes in ns.
const POWERS: usize = 40 - PARTS.trailing_zeros() as usize;

/// Counts of durations in ns, all of whose memory has been written to.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u64,
    max: u64,
}

/// What is said of a histogram, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Percentiles {
    pub mean: f64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub p9999: u64,
    pub p99999: u64,
    pub max: u64,
}

impl Percentiles {
    /// Their names and values.
    pub const fn named(&self) -> [(&'static str, u64); 7] {
        let Self { p50, p90, p99, p999, p9999, p99999, max, .. } = *self;
        [
            ("p50", p50),
            ("p90", p90),
            ("p99", p99),
            ("p99.9", p999),
            ("p99.99", p9999),
            ("p99.999", p99999),
            ("max", max),
        ]
    }
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Self {
        let mut counts = vec![1; PARTS * (POWERS + 1)];
        counts.fill(0);
        Self { counts, total: 0, sum: 0, max: 0 }
    }

    #[inline]
    const fn place(value: u64) -> usize {
        let power = (u64::BITS - (value >> PARTS.trailing_zeros()).leading_zeros()) as usize;
        let power = if power > POWERS { POWERS } else { power };
        let part = (value >> power.saturating_sub(1)) as usize;
        let part = if part >= 2 * PARTS { 2 * PARTS - 1 } else { part };
        if power == 0 { part } else { power * PARTS + part - PARTS }
    }

    /// The largest value of a place.
    const fn value(place: usize) -> u64 {
        let power = place / PARTS;
        if power == 0 {
            return place as u64;
        }
        ((((place % PARTS) + PARTS + 1) as u64) << (power - 1)) - 1
    }

    /// Counts a duration.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        self.counts[Self::place(nanoseconds)] += 1;
        self.total += 1;
        self.sum += nanoseconds;
        self.max = self.max.max(nanoseconds);
    }

    /// Counts what another has counted, too.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, other)| *own += other);
        self.total += other.total;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.total, self.sum, self.max) = (0, 0, 0);
    }

    /// How many there are.
    pub const fn len(&self) -> u64 {
        self.total
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The value that this share of all does not exceed.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.total as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                let is_last = place + 1 == self.counts.len();
                return if is_last { self.max } else { Self::value(place).min(self.max) };
            }
        }
        self.max
    }

    /// What is said of it.
    pub fn percentiles(&self) -> Percentiles {
        Percentiles {
            mean: if self.total == 0 { 0.0 } else { self.sum as f64 / self.total as f64 },
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            p9999: self.quantile(0.9999),
            p99999: self.quantile(0.99999),
            max: self.max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn quantiles_are_near_those_of_a_sorted_list() {
        let (mut histogram, mut list, mut random) = (Histogram::new(), Vec::new(), Random::new(4));
        for _ in 0..10_000 {
            let value = (1.0 / random.unit().powi(3)) as u64;
            histogram.record(value);
            list.push(value);
        }
        list.sort_unstable();
        for share in [0.5, 0.9, 0.99, 0.999] {
            let right = list[(10_000.0 * share) as usize - 1] as f64;
            let found = histogram.quantile(share) as f64;
            assert!(found >= right && found <= right * 1.02 + 1.0, "{share}: {found}, {right}");
        }
        assert_eq!(histogram.quantile(1.0), list[9_999]);
        assert!((1..64).all(|power| Histogram::place(u64::MAX >> power) < histogram.counts.len()));
    }
}

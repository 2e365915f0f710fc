//! What is drawn of a run: how full rings and window were over time, and how latencies are distributed.

use hdrhistogram::Histogram;

/// The intervals that are kept.
const INTERVALS: usize = 1_024;

/// The first length of an interval, in ns: 1 ms.
const INTERVAL: u64 = 1_000_000;

/// The most of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Peaks {
    /// Datagrams that waited in the receive ring, or if that is not known, those that were taken at once.
    pub(crate) waiting: u64,
    /// Datagrams that waited in the window.
    pub(crate) window: u64,
}

impl Peaks {
    fn raise(&mut self, other: Self) {
        self.waiting = self.waiting.max(other.waiting);
        self.window = self.window.max(other.window);
    }
}

/// Peaks over time, in memory that is there from the beginning. If the run takes longer than there are intervals for, these become
/// twice as long.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    interval: u64,
    peaks: Vec<Peaks>,
    /// The intervals in use.
    used: usize,
    /// The times of the first and of the last note.
    noted: Option<(u64, u64)>,
}

impl Default for Course {
    fn default() -> Self {
        Self { interval: INTERVAL, peaks: Vec::new(), used: 0, noted: None }
    }
}

impl Course {
    /// Takes its memory, and touches it.
    pub(crate) fn new() -> Self {
        let mut peaks = vec![Peaks::default(); INTERVALS];
        // Zeroed memory may not be there before it is written.
        core::hint::black_box(&mut peaks).fill(Peaks::default());
        Self { peaks, ..Self::default() }
    }

    /// Notes what was so at a time, in ns since the run began.
    pub(crate) fn note(&mut self, now: u64, peaks: Peaks) {
        self.noted = Some(self.noted.map_or((now, now), |(first, _)| (first, now)));
        while now / self.interval >= INTERVALS as u64 {
            self.halve();
        }
        // Below the number of intervals.
        let index = (now / self.interval) as usize;
        if let Some(interval) = self.peaks.get_mut(index) {
            interval.raise(peaks);
            self.used = self.used.max(index + 1);
        }
    }

    /// Joins intervals in pairs.
    fn halve(&mut self) {
        for index in 0..self.peaks.len() {
            let peaks = core::mem::take(&mut self.peaks[index]);
            self.peaks[index / 2].raise(peaks);
        }
        self.interval *= 2;
        self.used = self.used.div_ceil(2);
    }

    /// The time from the first note to the last, in ns.
    pub(crate) fn duration(&self) -> u64 {
        self.noted.map_or(0, |(first, last)| last - first)
    }

    /// The beginning of each interval in ns, and its peaks.
    pub(crate) fn intervals(&self) -> impl Iterator<Item = (u64, Peaks)> {
        (0..).step_by(self.interval as usize).zip(self.peaks.iter().copied().take(self.used))
    }
}

/// Latencies by the share that took at most this long, as nines: 1 is 90 %, 2 is 99 %.
pub(crate) fn distribution(latencies: &Histogram<u64>) -> Vec<(f64, f64)> {
    let most = (latencies.len().max(1) as f64).log10();
    let steps = (1..).map(|step| f64::from(step) * 0.05).take_while(|nines| *nines <= most);
    steps.map(|nines| (nines, latencies.value_at_quantile(1.0 - 10_f64.powf(-nines)) as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any notes, beside a list of all of them.
    #[test]
    fn each_interval_has_the_most_that_was_noted_in_it() {
        let mut course = Course::new();
        let mut noted = Vec::new();
        for step in 0..20_000_u64 {
            let (now, peaks) =
                (step * 937_001, Peaks { waiting: step * 7_919 % 101, window: step * 31 % 17 });
            course.note(now, peaks);
            noted.push((now, peaks));
        }
        let intervals: Vec<_> = course.intervals().collect();
        assert!(intervals.len() <= INTERVALS && intervals.len() > INTERVALS / 2);
        let length = intervals[1].0;
        for (begin, peaks) in intervals {
            let mut expected = Peaks::default();
            noted
                .iter()
                .filter(|(now, _)| now - now % length == begin)
                .for_each(|(_, one)| expected.raise(*one));
            assert_eq!(peaks, expected, "{begin}");
        }
    }

    #[test]
    fn nine_of_ten_have_their_place() {
        let mut latencies = Histogram::new_with_bounds(1, 1 << 40, 3).unwrap();
        (1..=1_000).for_each(|value| latencies.record(value).unwrap());
        let points = distribution(&latencies);
        let at = |nines: f64| points.iter().find(|point| (point.0 - nines).abs() < 1e-6).map(|point| point.1);
        assert_eq!((at(1.0), at(2.0)), (Some(900.0), Some(990.0)));
        assert!(points.is_sorted_by(|one, other| one.1 <= other.1));
        assert!(distribution(&Histogram::new(3).unwrap()).is_empty());
    }
}

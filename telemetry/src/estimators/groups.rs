//! Estimates by group: by place, type, size class, thread or pool.

#![forbid(unsafe_code)]

use crate::estimators::estimate::Estimate;
use crate::sample::{Mean, Sample};

/// One estimate for each of up to `N` groups, in a table of fixed size.
///
/// `K` is the key of a group: a size class, a thread, a pool, the address of a call. Samples
/// of groups beyond the first `N` are estimated together, so none is lost.
///
/// ```
/// use tripoint_telemetry::{Groups, Mean, Sample};
///
/// let mean = Mean::default();
/// let mut by_type = Groups::<&str, 16>::new(mean);
/// by_type.add("Order", &Sample::new(64, 3, mean).unwrap());
/// by_type.add("Level", &Sample::new(128, 90, mean).unwrap());
/// by_type.add("Order", &Sample::new(64, 60, mean).unwrap());
/// assert_eq!(by_type.get(&"Order").unwrap().samples(), 2);
/// assert_eq!(by_type.iter().count(), 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Groups<K, const N: usize> {
    /// In the order in which groups were first seen; the rest of the table is empty.
    groups: [Option<(K, Estimate)>; N],
    others: Estimate,
}

impl<K: Copy + Eq, const N: usize> Groups<K, N> {
    /// No groups yet. `mean` is the one in force (see [`Estimate::new`]).
    #[must_use]
    pub const fn new(mean: Mean) -> Self {
        Self { groups: [None; N], others: Estimate::new(mean) }
    }

    /// Takes a sample of the group `key` into account.
    pub fn add(&mut self, key: K, sample: &Sample) {
        self.estimate_of(key).add(sample);
    }

    /// The estimate to which samples of `key` are added.
    fn estimate_of(&mut self, key: K) -> &mut Estimate {
        let empty = Estimate::new(self.others.mean());
        let is_place =
            |group: &&mut Option<(K, Estimate)>| group.as_ref().is_none_or(|(known, _)| *known == key);
        match self.groups.iter_mut().find(is_place) {
            Some(place) => &mut place.get_or_insert((key, empty)).1,
            None => &mut self.others,
        }
    }

    /// The estimate of a group; `None` if none of its samples found a place in the table.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&Estimate> {
        self.iter().find(|(known, _)| *known == key).map(|(_, estimate)| estimate)
    }

    /// The groups and their estimates, in the order in which they were first seen.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &Estimate)> {
        self.groups.iter().flatten().map(|(key, estimate)| (key, estimate))
    }

    /// The estimate of all groups that found no place in the table.
    #[must_use]
    pub const fn others(&self) -> &Estimate {
        &self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(size: u64) -> Sample {
        Sample::new(size, 0, Mean::default()).unwrap()
    }

    #[test]
    fn each_group_has_the_estimate_of_its_own_samples() {
        let mut groups = Groups::<u64, 4>::new(Mean::default());
        let mut expected = [Estimate::new(Mean::default()); 3];
        for step in 0..300 {
            let group = step * step % 3;
            groups.add(group, &sample(16 * (step + 1)));
            expected[group as usize].add(&sample(16 * (step + 1)));
        }
        // Squares leave no remainder of two.
        assert_eq!(groups.get(&0), Some(&expected[0]));
        assert_eq!(groups.get(&1), Some(&expected[1]));
        assert_eq!(groups.get(&2), None);
        assert_eq!(groups.others().samples(), 0);
    }

    #[test]
    fn groups_without_a_place_are_estimated_together() {
        let mut groups = Groups::<u64, 2>::new(Mean::default());
        for key in [7, 8, 9, 7, 10] {
            groups.add(key, &sample(64));
        }
        let keys: [u64; 2] = [7, 8];
        assert!(groups.iter().map(|(key, _)| key).eq(&keys));
        assert_eq!((groups.get(&7).unwrap().samples(), groups.others().samples()), (2, 2));
        assert!(groups.get(&9).is_none());
    }
}

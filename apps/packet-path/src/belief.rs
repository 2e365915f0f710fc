//! Which message is next, as far as it is believed: a number that one datagram has wrong is not (design/packet-path.md
//! `.req.belief`, `.belief`).

/// The numbers that datagrams say. One is believed once two datagrams have said it, or more.
#[derive(Debug)]
pub(crate) struct Belief {
    /// There are messages before this number, as two datagrams say.
    believed: u64,
    /// One datagram says so of this number, which is no lower.
    said: u64,
    /// Where the session ends, as one datagram says.
    end: Option<u64>,
}

impl Belief {
    /// There is nothing before message `first`.
    pub(crate) const fn new(first: u64) -> Self {
        Self { believed: first, said: first, end: None }
    }

    /// A datagram says that there are messages before number `next`.
    pub(crate) fn say(&mut self, next: u64) {
        self.believed = self.believed.max(next.min(self.said));
        self.said = self.said.max(next);
    }

    /// A datagram says that the session ends in front of number `next`. Returns whether the one before it said the same.
    pub(crate) fn say_end(&mut self, next: u64) -> bool {
        self.end.replace(next) == Some(next)
    }

    /// There are messages before this number, as two datagrams say.
    pub(crate) const fn believed(&self) -> u64 {
        self.believed
    }

    /// There are messages before this number, if every datagram is right.
    pub(crate) const fn said(&self) -> u64 {
        self.said
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_end_is_believed_if_two_in_a_row_say_it() {
        let mut belief = Belief::new(1);
        assert_eq!([9, 5, 9, 5, 5].map(|next| belief.say_end(next)), [false, false, false, false, true]);
    }

    /// Numbers as they should be, and any others.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 1..50_u64, 1 => any::<u64>(), 1 => Just(0), 1 => u64::MAX - 1..=u64::MAX]
    }

    proptest! {
        /// The second highest of all is believed, whatever they are, and in whatever order: so no one number decides.
        #[test]
        fn the_second_highest_number_is_believed(numbers in prop::collection::vec(number(), 0..20)) {
            let mut belief = Belief::new(1);
            numbers.iter().for_each(|&next| belief.say(next));
            let mut sorted = [&numbers[..], &[1, 1]].concat();
            sorted.sort_unstable();
            prop_assert_eq!(&[belief.believed(), belief.said()], &sorted[sorted.len() - 2..]);
        }
    }
}

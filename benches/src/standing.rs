//! The result of a contender.

/// A median, and the quartiles around it.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// A quarter is below.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// A quarter is above.
    pub high: f64,
}

impl Spread {
    /// The spread of values.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |share: usize| values[values.len() * share / 4];
        Self { low: at(1), median: at(2), high: at(3) }
    }
}

/// The result of one contender.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// The contender.
    pub name: &'static str,
    /// What an operation took in one round.
    pub nanoseconds: Spread,
    /// Its time as a multiple of the first contender's in the same round.
    pub ratio: Spread,
    /// The first contender's time as a part of its own, both without what [`NULL`](crate::compare::NULL) took in that round;
    /// none if there is no such contender, or if it is not the quicker of the two.
    pub net: Option<f64>,
}

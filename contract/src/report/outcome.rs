//! How a session went.

/// How a session went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No hot thread was ever armed, or one that was there in SteadyState was not.
    NotArmed,
    /// Violations were found.
    Violated,
    /// None were found, but not every detector that was wanted was live.
    PassedWithFewerDetectors,
    /// There were none, by every detector that was wanted; but amnesties excused more events
    /// than were recorded.
    PassedWithRecordsLost,
    /// None were found, by every detector that was wanted.
    Passed,
}

impl Outcome {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotArmed => "not_armed",
            Self::Violated => "violated",
            Self::PassedWithFewerDetectors => "passed_with_fewer_detectors",
            Self::PassedWithRecordsLost => "passed_with_records_lost",
            Self::Passed => "passed",
        }
    }
}

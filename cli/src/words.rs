//! Counts and moments in words.

use core::time::Duration;
use std::time::SystemTime;

/// The last second of the year 9999: later years have five digits.
const LAST: u64 = 253_402_300_799;

/// A number with what it counts: `1 thread`, `2 threads`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {what}{ending}")
}

/// A moment in seconds since 1970, as `2026-11-28 18:07 UTC`.
pub(crate) fn minute(seconds: u64) -> String {
    let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(LAST));
    let text = humantime::format_rfc3339_seconds(moment).to_string();
    format!("{} {} UTC", &text[..10], &text[11..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        assert_eq!([0, 1, 2].map(|number| counted(number, "thread")), ["0 threads", "1 thread", "2 threads"]);
    }

    #[test]
    fn a_moment_is_a_day_and_a_minute_however_late_it_is() {
        assert_eq!(minute(0), "1970-01-01 00:00 UTC");
        assert_eq!(minute(951_827_696), "2000-02-29 12:34 UTC");
        assert_eq!(minute(u64::MAX), "9999-12-31 23:59 UTC");
    }
}

//! Units of axes, and numbers as people read them.

use serde::{Deserialize, Serialize};

/// What the numbers of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Bytes, shown in the binary multiple that fits.
    Bytes,
    /// Nanoseconds, shown as ns, µs, ms or s.
    Nanoseconds,
    /// How many.
    Count,
    /// Parts of one, shown as percent.
    Share,
    /// A share of all values, as distance from all of them: 1 is 90 %, 2 is 99 %, 3 is 99.9 %.
    Nines,
    /// Names: the axis has no numbers.
    Names,
}

/// A multiple of a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Multiple {
    pub(super) name: &'static str,
    pub(super) size: f64,
}

impl Multiple {
    /// A number of this multiple, with its name.
    fn named(self, number: String) -> String {
        match self.name {
            "" => number,
            name => format!("{number} {name}"),
        }
    }
}

const BYTES: [Multiple; 6] = [
    Multiple { name: "B", size: 1.0 },
    Multiple { name: "KiB", size: 1024.0 },
    Multiple { name: "MiB", size: 1_048_576.0 },
    Multiple { name: "GiB", size: 1_073_741_824.0 },
    Multiple { name: "TiB", size: 1_099_511_627_776.0 },
    Multiple { name: "PiB", size: 1_125_899_906_842_624.0 },
];

const TIMES: [Multiple; 4] = [
    Multiple { name: "ns", size: 1.0 },
    Multiple { name: "µs", size: 1e3 },
    Multiple { name: "ms", size: 1e6 },
    Multiple { name: "s", size: 1e9 },
];

const COUNTS: [Multiple; 4] = [
    Multiple { name: "", size: 1.0 },
    Multiple { name: "thousand", size: 1e3 },
    Multiple { name: "million", size: 1e6 },
    Multiple { name: "billion", size: 1e9 },
];

impl Unit {
    /// The multiple in which a number is not less than one and has the fewest digits.
    pub(super) fn multiple(self, most: f64) -> Multiple {
        let multiples = match self {
            Self::Bytes => &BYTES[..],
            Self::Nanoseconds => &TIMES,
            Self::Count => &COUNTS,
            Self::Share => &[Multiple { name: "%", size: 0.01 }],
            Self::Nines | Self::Names => &[Multiple { name: "", size: 1.0 }],
        };
        // A few thousand are written out.
        let least = if self == Self::Count { 10.0 } else { 1.0 };
        let fits = multiples.iter().rev().find(|multiple| most.abs() >= least * multiple.size);
        *fits.unwrap_or(&multiples[0])
    }

    /// A number with its unit.
    pub(crate) fn show(self, number: f64) -> String {
        if self == Self::Nines {
            return share(number);
        }
        let multiple = self.multiple(number);
        multiple.named(plain(number / multiple.size))
    }

    /// A number with its unit, in a few digits: for tables, in which `305.2 MiB` is better read than `305.25 MiB`.
    pub(crate) fn brief(self, number: f64) -> String {
        if self == Self::Nines {
            return share(number);
        }
        let multiple = self.multiple(number);
        let is_whole = number.fract() == 0.0 && multiple.size <= 1.0;
        multiple.named(format!("{:.*}", usize::from(!is_whole), number / multiple.size))
    }
}

/// A number with up to three digits behind the point, without zeros at its end.
pub(super) fn plain(number: f64) -> String {
    let text = format!("{number:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A number of nines as the share that it stands for.
fn share(nines: f64) -> String {
    let percent = 100.0 - 100.0 * 10f64.powf(-nines);
    // As many digits as are not all nines.
    let digits = (nines.ceil() - 2.0).clamp(0.0, 9.0) as usize;
    format!("{percent:.digits$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_the_unit_that_fits() {
        for (unit, number, shown) in [
            (Unit::Bytes, 0.0, "0 B"),
            (Unit::Bytes, 1023.0, "1023 B"),
            (Unit::Bytes, 1536.0, "1.5 KiB"),
            (Unit::Bytes, 2f64.powi(64), "16384 PiB"),
            (Unit::Nanoseconds, 1500.0, "1.5 µs"),
            (Unit::Nanoseconds, 2e9, "2 s"),
            (Unit::Count, 12.0, "12"),
            (Unit::Count, 2500.0, "2500"),
            (Unit::Count, 2.5e7, "25 million"),
            (Unit::Share, 0.125, "12.5 %"),
            (Unit::Nines, 0.0, "0 %"),
            (Unit::Nines, 1.0, "90 %"),
            (Unit::Nines, 2.0, "99 %"),
            (Unit::Nines, 4.0, "99.99 %"),
        ] {
            assert_eq!(unit.show(number), shown, "{unit:?} {number}");
        }
    }

    #[test]
    fn a_table_has_numbers_of_few_digits() {
        for (unit, number, shown) in [
            (Unit::Bytes, 0.0, "0 B"),
            (Unit::Bytes, 1023.0, "1023 B"),
            (Unit::Bytes, 320_077_823.0, "305.2 MiB"),
            (Unit::Nanoseconds, 16.12, "16.1 ns"),
            (Unit::Nanoseconds, 5.0, "5 ns"),
            (Unit::Nanoseconds, 12_000_000.0, "12.0 ms"),
            (Unit::Count, 6_915.0, "6915"),
            (Unit::Count, 10_525_333.0, "10.5 million"),
            (Unit::Share, 0.125, "12.5 %"),
            (Unit::Nines, 2.0, "99 %"),
        ] {
            assert_eq!(unit.brief(number), shown, "{unit:?} {number}");
        }
    }
}

//! The marks of an axis, at round numbers.

use core::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::picture::Axis;
use super::unit::{Multiple, Unit, plain};

/// A range of an axis with its marks. Positions are numbers, or their logarithms.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) marks: Vec<f64>,
    /// The axis' label with its unit.
    pub(super) label: String,
    unit: Unit,
    multiple: Multiple,
    is_logarithmic: bool,
}

/// About how many marks an axis has.
const MARKS: f64 = 6.0;

impl Scale {
    /// A scale for values from `low` to `high`. `from_zero` begins a linear scale at zero.
    pub(super) fn new(axis: &Axis, low: f64, high: f64, from_zero: bool) -> Self {
        if axis.is_logarithmic {
            return Self::logarithmic(axis, low, high);
        }
        let low = if from_zero { low.min(0.0) } else { low };
        // Equal values have room above them.
        let high = if high > low { high } else { low + axis.unit.multiple(low).size };
        let multiple = axis.unit.multiple(high.abs().max(low.abs()));
        let about = (high - low) / multiple.size / MARKS;
        // Counts have no parts.
        let least = if axis.unit == Unit::Count { 1.0 / multiple.size } else { 1e-6 };
        let step = step(axis.unit, about.max(least)) * multiple.size;
        let first = (low / step).ceil() as i64;
        let marks = (first..).map(|mark| mark as f64 * step).take_while(|mark| *mark <= high * (1.0 + 1e-12));
        let label = match multiple.name {
            "" => axis.label.clone(),
            name => format!("{} ({name})", axis.label),
        };
        let mut marks: Vec<_> = marks.take(50).collect();
        if axis.unit == Unit::Nines {
            // The half is worth a mark.
            marks.insert(marks.len().min(1), 2f64.log10());
        }
        Self { low, high, marks, label, unit: axis.unit, multiple, is_logarithmic: false }
    }

    fn logarithmic(axis: &Axis, low: f64, high: f64) -> Self {
        let low = low.max(1e-9).log10().floor();
        let high = high.max(1e-9).log10().ceil().max(low + 1.0);
        // Every power of ten, or fewer.
        let every = ((high - low) / 12.0).ceil().max(1.0) as usize;
        let marks = (low as i64..=high as i64).step_by(every).map(|power| power as f64).collect();
        let label = format!("{} (logarithmic)", axis.label);
        let multiple = axis.unit.multiple(1.0);
        Self { low, high, marks, label, unit: axis.unit, multiple, is_logarithmic: true }
    }

    /// Where a value is; none on a logarithmic scale for values up to zero.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        match self.is_logarithmic {
            false => Some(value),
            true if value > 0.0 => Some(value.log10()),
            true => None,
        }
    }

    /// A value with its unit.
    pub(super) fn value(&self, value: f64) -> String {
        self.unit.brief(value)
    }

    /// The text at a mark.
    pub(super) fn text(&self, mark: f64) -> String {
        match self.unit {
            Unit::Names => String::new(),
            unit if self.is_logarithmic => unit.show(10f64.powf(mark)),
            Unit::Nines => Unit::Nines.show(mark),
            _ => plain(mark / self.multiple.size),
        }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let part = (value - self.low) / (self.high - self.low);
        // This cast saturates.
        (f64::from(first) + part * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, mark: &f64) -> String {
        self.text(*mark)
    }
}

/// The next round number: a power of two for bytes, else 1, 2 or 5 times a power of ten.
fn step(unit: Unit, about: f64) -> f64 {
    match unit {
        Unit::Nines | Unit::Names => 1.0,
        Unit::Bytes => about.log2().ceil().exp2(),
        _ => {
            let power = 10f64.powf(about.log10().floor());
            let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= about * 0.999);
            times.unwrap_or(10.0) * power
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(unit: Unit, low: f64, high: f64) -> Vec<String> {
        let scale = Scale::new(&Axis::new("it", unit), low, high, true);
        scale.marks.iter().map(|mark| scale.text(*mark)).collect()
    }

    #[test]
    fn marks_are_round_in_the_unit_that_is_shown() {
        let mebibyte = 1_048_576.0;
        assert_eq!(texts(Unit::Bytes, 0.0, 100.0 * mebibyte), ["0", "32", "64", "96"]);
        assert_eq!(texts(Unit::Nanoseconds, 0.0, 2.6e6), ["0", "0.5", "1", "1.5", "2", "2.5"]);
        assert_eq!(texts(Unit::Share, 0.0, 1.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(Scale::new(&Axis::new("it", Unit::Bytes), 0.0, mebibyte, true).label, "it (MiB)");
    }

    #[test]
    fn any_range_has_a_few_marks() {
        for unit in [Unit::Bytes, Unit::Nanoseconds, Unit::Count, Unit::Share] {
            for exponent in -2..18 {
                for times in [1.0, 1.5, 3.7, 9.99] {
                    let high = times * 10f64.powi(exponent);
                    let marks = Scale::new(&Axis::new("it", unit), 0.0, high, true).marks;
                    assert!((1..=14).contains(&marks.len()), "{unit:?} {high}: {marks:?}");
                    let has_parts = !matches!(unit, Unit::Count) || exponent > 0;
                    assert!(!has_parts || marks.len() > 2, "{unit:?} {high}: {marks:?}");
                }
            }
        }
    }

    #[test]
    fn equal_values_and_none_have_a_range() {
        for value in [0.0, 1.0, 1e18, -5.0] {
            let scale = Scale::new(&Axis::new("it", Unit::Bytes), value, value, false);
            assert!(scale.high > scale.low && !scale.marks.is_empty(), "{scale:?}");
        }
    }

    #[test]
    fn a_logarithmic_scale_has_powers_of_ten_and_no_place_for_zero() {
        let scale = Scale::new(&Axis::logarithmic("it", Unit::Nanoseconds), 30.0, 4e6, true);
        let texts: Vec<_> = scale.marks.iter().map(|mark| scale.text(*mark)).collect();
        assert_eq!(texts, ["10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]);
        assert_eq!((scale.place(0.0), scale.place(1000.0)), (None, Some(3.0)));
    }
}

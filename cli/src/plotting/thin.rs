//! Fewer points with the same peaks: a picture has a number of columns, and no one sees more points
//! ([design/cli.md `.plot.thin`](crate::design::cli)).

use super::picture::{Content, Layer, Series};

/// How many columns a picture of points is thinned to, of all its lines together.
const COLUMNS: usize = 300;

impl Content {
    /// Leaves out points: of each column the first, the last, the lowest and the highest stay, and those after the latter two.
    pub(super) fn thin(&mut self) {
        match self {
            Self::Steps(series) | Self::Lines(series) => {
                let columns = (2 * COLUMNS / series.len().max(1)).clamp(40, COLUMNS);
                series.iter_mut().for_each(|series| series.thin(columns));
            }
            Self::Areas { at, layers } => thin_layers(at, layers),
            Self::Bars { .. } | Self::Blocks { .. } => {}
        }
    }
}

/// How many points of a line are kept while more are added.
const KEPT: usize = 1 << 16;

impl Series {
    /// Adds a point, and leaves out some of those before if there are too many to keep.
    pub(crate) fn add(&mut self, point: (f64, f64)) {
        if self.points.len() == KEPT {
            self.thin(COLUMNS);
        }
        self.points.push(point);
    }

    fn thin(&mut self, columns: usize) {
        let at: Vec<_> = self.points.iter().map(|point| point.0).collect();
        let kept = kept(&at, columns, &[&|index| self.points[index].1]);
        self.points = kept.into_iter().map(|index| self.points[index]).collect();
    }
}

fn thin_layers(at: &mut Vec<f64>, layers: &mut [Layer]) {
    let columns = (2 * COLUMNS / (layers.len() + 1)).clamp(40, COLUMNS);
    let sum = |index: usize| layers.iter().map(|layer| layer.values[index]).sum::<f64>();
    let values: Vec<_> = layers.iter().map(|layer| |index: usize| layer.values[index]).collect();
    let each = values.iter().map(|value| value as &dyn Fn(usize) -> f64);
    let kept = kept(at, columns, &each.chain([&sum as &dyn Fn(usize) -> f64]).collect::<Vec<_>>());
    for layer in layers {
        layer.values = kept.iter().map(|&index| layer.values[index]).collect();
    }
    *at = kept.into_iter().map(|index| at[index]).collect();
}

/// The indices of the points that stay. Few points all stay.
fn kept(at: &[f64], columns: usize, values: &[&dyn Fn(usize) -> f64]) -> Vec<usize> {
    if at.len() <= 2 * columns {
        return (0..at.len()).collect();
    }
    let (first, last) = (at[0], at[at.len() - 1]);
    let column = |index: usize| ((at[index] - first) / (last - first) * columns as f64) as usize;
    let mut kept = Vec::new();
    let mut begin = 0;
    while begin < at.len() {
        let same = (begin..at.len()).take_while(|index| column(*index) == column(begin));
        let end = begin + same.count().max(1);
        let mut chosen = vec![begin, end - 1];
        for value in values {
            let by_value = |one: &usize, other: &usize| value(*one).total_cmp(&value(*other));
            let lowest = (begin..end).min_by(by_value);
            let highest = (begin..end).max_by(by_value);
            // With the next, so that a step is not wider than it was.
            let chosen_by_value = [lowest, highest].into_iter().flatten();
            chosen.extend(chosen_by_value.flat_map(|index| [index, (index + 1).min(end - 1)]));
        }
        chosen.sort_unstable();
        chosen.dedup();
        kept.extend(chosen);
        begin = end;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak(points: &[(f64, f64)]) -> (f64, f64) {
        let values = points.iter().map(|point| point.1);
        (values.clone().fold(f64::MAX, f64::min), values.fold(f64::MIN, f64::max))
    }

    #[test]
    fn a_million_points_become_few_with_the_same_peaks_and_ends() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut points: Vec<_> = (0..1_000_000).map(|at| (f64::from(at), random.f64() * 100.0)).collect();
        points[123_456].1 = 1e9;
        points[654_321].1 = -1e9;
        let mut thinned = Series { name: String::new(), colour: 0, points: points.clone() };
        thinned.thin(COLUMNS);
        assert!(thinned.points.len() <= 6 * (COLUMNS + 1), "{}", thinned.points.len());
        assert_eq!(peak(&thinned.points), peak(&points));
        assert_eq!((thinned.points[0], thinned.points.last()), (points[0], points.last()));
        assert!(thinned.points.is_sorted_by_key(|point| point.0));
    }

    #[test]
    fn a_line_that_is_added_to_keeps_few_points_and_its_peaks() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut line = Series { name: String::new(), colour: 0, points: Vec::new() };
        let (mut all, mut most) = (Vec::new(), 0);
        for at in 0..500_000 {
            let point = (f64::from(at), random.f64() * if at == 77_777 { 1e6 } else { 1.0 });
            all.push(point);
            line.add(point);
            most = most.max(line.points.len());
        }
        assert!(most <= KEPT, "{most}");
        assert_eq!(peak(&line.points), peak(&all));
        assert_eq!((line.points[0], line.points.last()), (all[0], all.last()));
    }

    #[test]
    fn layers_keep_the_peaks_of_each_and_of_their_sum() {
        let mut random = fastrand::Rng::with_seed(8);
        let mut at: Vec<_> = (0..50_000).map(f64::from).collect();
        let layer = |random: &mut fastrand::Rng| Layer {
            name: String::new(),
            values: (0..50_000).map(|_| random.f64()).collect(),
        };
        let mut layers = vec![layer(&mut random), layer(&mut random)];
        let most = |layers: &[Layer]| {
            let sums = layers[0].values.iter().zip(&layers[1].values).map(|(one, other)| one + other);
            let each = layers.iter().map(|layer| layer.values.iter().copied().fold(0.0, f64::max));
            each.chain([sums.fold(0.0, f64::max)]).collect::<Vec<_>>()
        };
        let before = most(&layers);
        thin_layers(&mut at, &mut layers);
        assert!(at.len() < 4_000 && layers.iter().all(|layer| layer.values.len() == at.len()));
        assert_eq!(most(&layers), before);
    }

    #[test]
    fn points_at_one_place_are_one_column() {
        let mut series = Series {
            name: String::new(),
            colour: 0,
            points: (0..5_000).map(|y| (3.0, f64::from(y))).collect(),
        };
        series.thin(COLUMNS);
        assert_eq!(series.points, [(3.0, 0.0), (3.0, 1.0), (3.0, 4_999.0)]);
    }
}

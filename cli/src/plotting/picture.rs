//! What a picture shows. As JSON it is what is drawn, after thinning.

use serde::{Deserialize, Serialize};

use super::unit::Unit;

/// One picture: charts one below the other.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Picture {
    pub(crate) title: String,
    /// What it is a picture of: a line below the title.
    pub(crate) about: String,
    pub(crate) charts: Vec<Chart>,
    /// What is missing from it, a sentence each.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
}

/// One pair of axes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Moments on the axis x that are marked by a line.
    #[serde(default)]
    pub(crate) moments: Vec<Moment>,
    pub(crate) content: Content,
    /// What is said in its place if there is nothing to draw.
    pub(crate) if_empty: String,
}

/// What an axis measures.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) unit: Unit,
    /// Whether equal distances are equal ratios. Values up to zero are not drawn then.
    #[serde(default)]
    pub(crate) is_logarithmic: bool,
    /// A range that is shown even if the values take less of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) span: Option<(f64, f64)>,
}

/// A named moment.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Moment {
    pub(crate) at: f64,
    pub(crate) name: String,
}

/// What is between the axes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Content {
    /// Values over time that hold until the next: drawn as steps.
    Steps(Vec<Series>),
    /// Points joined by straight lines, as a distribution has them.
    Lines(Vec<Series>),
    /// Sizes that add up, drawn one on top of the other, the first at the bottom. They hold until the next point.
    Areas {
        /// The positions on the axis x, ascending: those of all layers.
        at: Vec<f64>,
        layers: Vec<Layer>,
    },
    /// A horizontal group of bars for each name, from the top down; the axis y has the names.
    Bars {
        /// What the bars of each group are of: the legend.
        names: Vec<String>,
        groups: Vec<Group>,
    },
    /// Rectangles with texts.
    Blocks {
        /// The names of the colours: the legend; none if the texts of blocks say all.
        names: Vec<String>,
        blocks: Vec<Block>,
    },
}

/// A line with a name. The points ascend on the axis x.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// The number of its colour. What is in several charts of a picture has one colour.
    pub(crate) colour: usize,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A size over time that is a part of a whole.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Layer {
    pub(crate) name: String,
    /// One for each position.
    pub(crate) values: Vec<f64>,
}

/// Bars beside a name.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
}

/// A rectangle, in the units of the axes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Block {
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
    /// Which colour: the index of a name, or any number without names.
    pub(crate) colour: usize,
    /// How strong the colour is, from 0 to 1.
    pub(crate) strength: f64,
    pub(crate) text: String,
}

impl Axis {
    pub(crate) fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, is_logarithmic: false, span: None }
    }

    /// An axis that shows at least the range.
    pub(crate) fn spanning(label: impl Into<String>, unit: Unit, span: (f64, f64)) -> Self {
        Self { span: Some(span), ..Self::new(label, unit) }
    }

    pub(crate) fn logarithmic(label: impl Into<String>, unit: Unit) -> Self {
        Self { is_logarithmic: true, ..Self::new(label, unit) }
    }
}

impl Picture {
    /// A picture of these charts. What an empty one would say in its place becomes a note, unless all are empty.
    pub(crate) fn new(title: String, about: String, charts: Vec<Chart>, notes: Vec<String>) -> Self {
        let mut picture = Self { title, about, charts, notes };
        if !picture.is_empty() {
            let empty = picture.charts.extract_if(.., |chart| chart.content.is_empty());
            let said = empty.map(|chart| format!("{}: {}", chart.title, chart.if_empty));
            picture.notes = said.chain(picture.notes).collect();
        }
        picture
    }

    /// Whether nothing is drawn in any of its charts.
    pub(crate) fn is_empty(&self) -> bool {
        self.charts.iter().all(|chart| chart.content.is_empty())
    }

    /// How high it should be, in pixels.
    pub(crate) fn height(&self) -> u32 {
        90 + self.charts.iter().map(Chart::height).sum::<u32>()
    }
}

impl Chart {
    /// How high it should be, in pixels.
    pub(super) fn height(&self) -> u32 {
        let rows = match &self.content {
            Content::Bars { names, groups } => (16 * names.len() as u32 + 6) * groups.len() as u32,
            // A row for each call of a stack.
            Content::Blocks { blocks, .. } if self.y.unit == Unit::Count => {
                let deepest = blocks.iter().map(|block| block.y.1).fold(0.0, f64::max);
                // This cast saturates.
                18 * deepest as u32
            }
            Content::Blocks { .. } => 300,
            Content::Steps(_) | Content::Lines(_) | Content::Areas { .. } => 190,
        };
        110 + rows.clamp(60, 900)
    }
}

impl Content {
    /// Whether there is nothing to draw.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Steps(series) | Self::Lines(series) => series.iter().all(|series| series.points.is_empty()),
            Self::Areas { at, layers } => at.is_empty() || layers.is_empty(),
            Self::Bars { groups, .. } => groups.iter().all(|group| group.values.is_empty()),
            Self::Blocks { blocks, .. } => blocks.is_empty(),
        }
    }

    /// The names in the legend, with the numbers of their colours.
    pub(crate) fn legend(&self) -> Vec<(&str, usize)> {
        match self {
            Self::Steps(series) | Self::Lines(series) => {
                series.iter().map(|series| (series.name.as_str(), series.colour)).collect()
            }
            Self::Areas { layers, .. } => layers.iter().map(|layer| layer.name.as_str()).zip(0..).collect(),
            Self::Bars { names, .. } | Self::Blocks { names, .. } => {
                names.iter().map(String::as_str).zip(0..).collect()
            }
        }
    }
}

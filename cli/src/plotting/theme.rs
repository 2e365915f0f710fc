//! Light and dark. The colours of data are those of Okabe and Ito, which people tell apart who see fewer colours; on
//! either background the ones that are too faint are replaced. The last one is that of the texts: black or white.

use clap::ValueEnum;
use plotters::style::RGBColor;
use serde::Serialize;

/// What a picture is read on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Theme {
    /// Dark on white
    #[default]
    Light,
    /// Light on nearly black
    Dark,
}

const LIGHT: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x6c, 0x3e, 0x1b),
    RGBColor(0x1a, 0x1a, 0x1a),
];

const DARK: [RGBColor; 8] = [
    RGBColor(0x4d, 0xa6, 0xe0),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x18, 0xb8, 0x7c),
    RGBColor(0xe0, 0x96, 0xc0),
    RGBColor(0x9a, 0xd4, 0xf5),
    RGBColor(0xe8, 0x74, 0x3a),
    RGBColor(0xf0, 0xe4, 0x42),
    RGBColor(0xf4, 0xf4, 0xf4),
];

impl Theme {
    /// How many colours of data there are.
    pub(crate) const COLOURS: usize = LIGHT.len();

    /// Whether the line of this number is dashed: the colours repeat, and lines of one colour are told apart by that.
    pub(super) const fn is_dashed(number: usize) -> bool {
        (number / Self::COLOURS) % 2 == 1
    }

    /// The colour of the data of this number; they repeat.
    pub(super) fn colour(self, number: usize) -> RGBColor {
        match self {
            Self::Light => LIGHT[number % Self::COLOURS],
            Self::Dark => DARK[number % Self::COLOURS],
        }
    }

    /// A colour mixed with the background: 1 is the colour itself.
    pub(super) fn mixed(self, colour: RGBColor, strength: f64) -> RGBColor {
        let ground = self.background();
        let mix = |of: u8, ground: u8| {
            let mixed = f64::from(of) * strength + f64::from(ground) * (1.0 - strength);
            // This cast saturates.
            mixed.round() as u8
        };
        RGBColor(mix(colour.0, ground.0), mix(colour.1, ground.1), mix(colour.2, ground.2))
    }

    pub(super) fn background(self) -> RGBColor {
        match self {
            Self::Light => RGBColor(0xff, 0xff, 0xff),
            Self::Dark => RGBColor(0x16, 0x1b, 0x22),
        }
    }

    pub(super) fn text(self) -> RGBColor {
        match self {
            Self::Light => RGBColor(0x1f, 0x23, 0x28),
            Self::Dark => RGBColor(0xe6, 0xed, 0xf3),
        }
    }

    /// Of texts that are less important.
    pub(super) fn faint(self) -> RGBColor {
        match self {
            Self::Light => RGBColor(0x57, 0x60, 0x6a),
            Self::Dark => RGBColor(0x9d, 0xa7, 0xb3),
        }
    }

    pub(super) fn grid(self) -> RGBColor {
        match self {
            Self::Light => RGBColor(0xe3, 0xe6, 0xea),
            Self::Dark => RGBColor(0x30, 0x36, 0x3d),
        }
    }
}

#[cfg(test)]
mod tests;

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
mod tests {
    use super::*;

    type Matrix = [[f64; 3]; 3];

    /// What people see who lack a kind of cones, of linear light: the matrices of Machado, Oliveira and Fernandes, "A
    /// Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, of severity 1.0.
    const PROTANOPIA: Matrix = [
        [0.152_286, 1.052_583, -0.204_868],
        [0.114_503, 0.786_281, 0.099_216],
        [-0.003_882, -0.048_116, 1.051_998],
    ];
    const DEUTERANOPIA: Matrix = [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_820, 0.042_940, 0.968_881],
    ];
    const ALL_CONES: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

    /// Linear light of sRGB to CIE XYZ, and the white of that, of IEC 61966-2-1.
    const XYZ: Matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]];
    const WHITE: [f64; 3] = [0.9505, 1.0, 1.089];

    fn times(matrix: &Matrix, light: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(light).map(|(factor, part)| factor * part).sum())
    }

    /// The linear light of a colour.
    fn light(RGBColor(red, green, blue): RGBColor) -> [f64; 3] {
        [red, green, blue].map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// CIE L*a*b*.
    fn lab(light: [f64; 3]) -> [f64; 3] {
        let xyz = times(&XYZ, light);
        let [x, y, z] = core::array::from_fn(|index| {
            let part: f64 = xyz[index] / WHITE[index];
            if part > (6.0 / 29.0_f64).powi(3) { part.cbrt() } else { part * 841.0 / 108.0 + 4.0 / 29.0 }
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// The distance of CIE 1976 between two colours, as people see them whose sight is that.
    fn distance(sight: &Matrix, one: RGBColor, other: RGBColor) -> f64 {
        let seen = |colour| lab(times(sight, light(colour)).map(|part| part.clamp(0.0, 1.0)));
        let (one, other) = (seen(one), seen(other));
        one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt()
    }

    /// Two colours that are this far apart are told apart side by side, and in a legend.
    const APART: f64 = 15.0;

    /// The pairs of these colours that someone does not tell apart.
    fn too_close(colours: &[RGBColor]) -> Vec<(usize, usize)> {
        let pairs = (0..colours.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        let is_close = |&(one, other): &(usize, usize)| {
            let sights = [PROTANOPIA, DEUTERANOPIA, ALL_CONES];
            sights.iter().any(|sight| distance(sight, colours[one], colours[other]) < APART)
        };
        pairs.filter(is_close).collect()
    }

    #[test]
    fn people_who_see_fewer_colours_tell_all_of_them_apart() {
        for theme in [Theme::Light, Theme::Dark] {
            let colours: Vec<_> = (0..Theme::COLOURS).map(|number| theme.colour(number)).collect();
            assert_eq!(too_close(&colours), [], "{theme:?}");
        }
        // The control: red and green of the same brightness, which only people with all cones tell apart.
        let (red, green) = (RGBColor(0xc0, 0x50, 0x40), RGBColor(0x7c, 0x7a, 0x30));
        assert!(distance(&ALL_CONES, red, green) > 2.0 * APART);
        assert_eq!(too_close(&[red, green]), [(1, 0)]);
    }

    /// The luminance of WCAG 2.
    fn luminance(colour: RGBColor) -> f64 {
        times(&XYZ, light(colour))[1]
    }

    fn contrast(one: RGBColor, other: RGBColor) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn texts_and_data_stand_out_from_both_backgrounds() {
        for theme in [Theme::Light, Theme::Dark] {
            let ground = theme.background();
            assert!(contrast(theme.text(), ground) > 7.0 && contrast(theme.faint(), ground) > 4.5);
            for number in 0..Theme::COLOURS {
                let contrast = contrast(theme.colour(number), ground);
                assert!(contrast > 2.0, "{theme:?} {number}: {contrast}");
            }
        }
    }

    #[test]
    fn a_colour_mixed_fully_is_itself_and_not_at_all_is_the_background() {
        let colour = Theme::Dark.colour(3);
        assert_eq!(Theme::Dark.mixed(colour, 1.0), colour);
        assert_eq!(Theme::Dark.mixed(colour, 0.0), Theme::Dark.background());
    }
}

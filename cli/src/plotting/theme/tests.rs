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

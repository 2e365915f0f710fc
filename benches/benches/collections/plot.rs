//! Drawings of lines over two logarithmic scales, as SVG, which are legible on light and on dark paper.

use core::fmt::Write as _;

/// A line, and its name.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 480.0;
/// Where the scales are: the space for their labels, and at the right that for the names of the lines.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 424.0;

/// The colours of lines on light and on dark paper.
const COLOURS: [[&str; 2]; 7] = [
    ["#0072b2", "#56b4e9"],
    ["#c44601", "#ff9d5c"],
    ["#00745a", "#4fd1a5"],
    ["#8f3985", "#e39bd9"],
    ["#6b5b00", "#e6d35a"],
    ["#555555", "#bbbbbb"],
    ["#b3002d", "#ff8fa3"],
];

/// A logarithmic scale, in powers of `base`.
struct Scale {
    base: f64,
    from: f64,
    to: f64,
    begin: f64,
    end: f64,
}

impl Scale {
    /// A scale for values, from one mark to another.
    fn new(base: f64, values: impl Iterator<Item = f64>, begin: f64, end: f64) -> Self {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        values.for_each(|value| (least, most) = (least.min(value), most.max(value)));
        let from = least.log(base).floor();
        Self { base, from, to: most.log(base).ceil().max(from + 1.0), begin, end }
    }

    fn place(&self, value: f64) -> f64 {
        self.begin + (self.end - self.begin) * (value.log(self.base) - self.from) / (self.to - self.from)
    }

    fn marks(&self) -> impl Iterator<Item = f64> {
        let (from, to) = (self.from as i32, self.to as i32);
        (from..=to).map(|power| self.base.powi(power))
    }
}

/// A number without zeros that say nothing.
fn number(value: f64) -> String {
    if value >= 1.0 { format!("{value:.0}") } else { format!("{value}") }
}

/// Draws lines over two logarithmic scales. A dotted line begins where the first line does, and
/// shows what grows as the first scale does.
pub(crate) fn plot(title: &str, across: &str, up: &str, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points).filter(|(_, time)| *time > 0.0);
    let x = Scale::new(2.0, points().map(|point| point.0), LEFT, RIGHT);
    let y = Scale::new(10.0, points().map(|point| point.1), BOTTOM, TOP);
    let mut svg = String::new();
    let mut put = |text: String| svg.push_str(&(text + "\n"));
    put(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">"
    ));
    put(style(lines.len()));
    put(format!("<rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>"));
    put(format!("<text class=\"title\" x=\"{LEFT}\" y=\"26\">{title}</text>"));
    for mark in x.marks() {
        let at = x.place(mark);
        put(format!("<path class=\"grid\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/>"));
        put(format!(
            "<text text-anchor=\"middle\" x=\"{at:.1}\" y=\"{}\">{}</text>",
            BOTTOM + 20.0,
            number(mark)
        ));
    }
    for mark in y.marks() {
        let at = y.place(mark);
        put(format!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>"));
        put(format!(
            "<text text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            number(mark)
        ));
    }
    let (middle, centre) = ((LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0);
    put(format!("<text text-anchor=\"middle\" x=\"{middle}\" y=\"{}\">{across}</text>", BOTTOM + 44.0));
    put(format!("<text text-anchor=\"middle\" transform=\"translate(20 {centre}) rotate(-90)\">{up}</text>"));
    let mut names: Vec<(f64, usize)> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let mut path = String::new();
        for (step, &(size, time)) in line.points.iter().filter(|(_, time)| *time > 0.0).enumerate() {
            let (across, up) = (x.place(size), y.place(time));
            let _ = write!(path, "{}{across:.1} {up:.1}", if step == 0 { 'M' } else { 'L' });
            put(format!("<circle class=\"fill{index}\" cx=\"{across:.1}\" cy=\"{up:.1}\" r=\"3\"/>"));
        }
        put(format!("<path class=\"line line{index}\" d=\"{path}\"/>"));
        if let Some(&(_, time)) = line.points.last().filter(|(_, time)| *time > 0.0) {
            names.push((y.place(time), index));
        }
    }
    if let Some(&(size, time)) = lines.first().and_then(|line| line.points.first()) {
        let most = points().map(|point| point.0).fold(0.0, f64::max);
        let [from, to] = [(size, time), (most, time * most / size)]
            .map(|(size, time)| format!("{:.1} {:.1}", x.place(size), y.place(time)));
        put(format!("<path class=\"linear\" d=\"M{from}L{to}\"/>"));
        put(format!("<path class=\"linear\" d=\"M{} {}h24\"/>", RIGHT + 12.0, BOTTOM + 40.0));
        put(format!("<text x=\"{}\" y=\"{}\">linear</text>", RIGHT + 42.0, BOTTOM + 44.0));
    }
    // Names beside the ends of their lines, but not over each other.
    names.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut free = TOP;
    for (at, index) in names {
        let at = at.max(free);
        free = at + 18.0;
        put(format!(
            "<text class=\"fill{index}\" x=\"{}\" y=\"{:.1}\">{}</text>",
            RIGHT + 12.0,
            at + 4.0,
            lines[index].name
        ));
    }
    put("</svg>".into());
    svg
}

fn style(lines: usize) -> String {
    let colours = |dark: usize| {
        let rules = (0..lines).map(|line| {
            let colour = COLOURS[line % COLOURS.len()][dark];
            format!(".line{line}{{stroke:{colour}}}.fill{line}{{fill:{colour}}}")
        });
        rules.collect::<String>()
    };
    format!(
        "<style>text{{font:13px sans-serif;fill:#222}}.title{{font-size:15px}}.paper{{fill:#fff}}\
         .grid{{stroke:#ddd;fill:none}}.line{{fill:none;stroke-width:2}}\
         .linear{{fill:none;stroke:#888;stroke-dasharray:2 4}}{}\
         @media(prefers-color-scheme:dark){{text{{fill:#ddd}}.paper{{fill:#16181c}}.grid{{stroke:#33363c}}{}}}</style>",
        colours(0),
        colours(1)
    )
}

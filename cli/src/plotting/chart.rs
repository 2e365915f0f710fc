//! One pair of axes, and what is between them.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::element::DashedPathElement;
use plotters::prelude::{
    Cartesian2d, Circle, EmptyElement, PathElement, Polygon, Rectangle, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, RGBColor, ShapeStyle, TRANSPARENT};

use super::canvas::{Area, Drawn, Style};
use super::legend::Legend;
use super::picture::{Axis, Block, Chart, Content, Group, Layer, Moment, Series};
use super::text::{fitted, lines, width};
use super::theme::Theme;
use super::ticks::Scale;

type Axes<'s> = ChartContext<'s, SVGBackend<'s>, Cartesian2d<Scale, Scale>>;

/// The size of the texts at the axes, in pixels.
const SIZE: u32 = 12;

/// The height of a line of what is said in the place of a chart, in pixels.
const NOTHING: i32 = 20;

/// At most this many points of a line are marked.
const FEW: usize = 60;

/// The dashes of a line, and the gaps between them, in pixels.
const DASH: (i32, i32) = (9, 5);

/// A line is this much thicker than the next, so that it is seen on both sides of one that covers it, in pixels.
const THICKER: u32 = 2;

/// The margin to the right of the axes, in pixels.
const RIGHT: i32 = 24;

/// The height of a row of names of moments, in pixels.
const MOMENTS: i32 = 15;

/// Draws a chart.
pub(super) fn draw(chart: &Chart, area: &Area<'_>, style: &Style) -> Drawn {
    let wide = area.dim_in_pixel().0 as i32;
    let (head, below) = area.split_vertically(22);
    let title = style.text(14, style.theme.text());
    head.draw(&Text::new(fitted(&chart.title, 14, wide), (0, 9), title))?;
    if chart.content.is_empty() {
        return draw_nothing(&chart.if_empty, &below, style);
    }
    let legend = Legend::new(&chart.content.legend(), wide);
    let (names, below) = below.split_vertically(legend.height);
    legend.draw(&names, style)?;
    let (x, y) = scales(chart);
    draw_axes(chart, &x, &y, &below, style)
}

/// Says why there is nothing.
fn draw_nothing(why: &str, area: &Area<'_>, style: &Style) -> Drawn {
    let (wide, high) = area.dim_in_pixel();
    let frame = style.theme.grid().stroke_width(1);
    let corners = [(0, 0), (wide as i32 - 1, high as i32 - 8)];
    area.draw(&Rectangle::new(corners, frame))?;
    let text = style.text(14, style.theme.faint()).pos(Pos::new(HPos::Center, VPos::Center));
    let lines = lines(why, 14, wide as i32 - 20);
    let first = (high as i32 - NOTHING * (lines.len() as i32 - 1)) / 2;
    for (at, line) in (first..).step_by(NOTHING as usize).zip(lines) {
        area.draw(&Text::new(line, (wide as i32 / 2, at), text.clone()))?;
    }
    Ok(())
}

/// The ranges of both axes.
fn scales(chart: &Chart) -> (Scale, Scale) {
    let (x, y) = bounds(&chart.content);
    let ((left, right), (low, high)) = (shown(x, &chart.x), shown(y, &chart.y));
    let is_blocks = matches!(chart.content, Content::Blocks { .. });
    let is_bars = matches!(chart.content, Content::Bars { .. });
    let is_exact = is_blocks || is_bars;
    // A bar of the least value has a length, too.
    let left = if is_bars && chart.x.is_logarithmic { left / 10.0 } else { left };
    let x = Scale::new(&chart.x, left, right, is_exact);
    // Room above the highest value.
    let is_exact = is_exact || chart.y.is_logarithmic || chart.y.span.is_some();
    let high = if is_exact { high } else { high * 1.04 };
    let mut y = Scale::new(&chart.y, low, high, !is_blocks);
    if let Content::Bars { groups, .. } = &chart.content {
        y.marks = (0..groups.len()).map(|group| middle(group, groups.len())).collect();
    }
    (x, y)
}

/// A range, or more if the axis shows more.
fn shown((low, high): (f64, f64), axis: &Axis) -> (f64, f64) {
    axis.span.map_or((low, high), |span| (low.min(span.0), high.max(span.1)))
}

/// The least and the greatest of both axes.
fn bounds(content: &Content) -> ((f64, f64), (f64, f64)) {
    let (mut x, mut y) = (Bounds::default(), Bounds::default());
    match content {
        Content::Steps(series) | Content::Lines(series) => {
            series.iter().flat_map(|series| &series.points).for_each(|point| {
                x.add(point.0);
                y.add(point.1);
            });
        }
        Content::Areas { at, layers } => {
            at.iter().for_each(|at| x.add(*at));
            sums(layers, at.len()).into_iter().for_each(|sum| y.add(sum));
        }
        Content::Bars { groups, .. } => {
            groups.iter().flat_map(|group| &group.values).for_each(|value| x.add(*value));
            y.add(groups.len() as f64);
        }
        Content::Blocks { blocks, .. } => {
            for block in blocks {
                [block.x.0, block.x.1].into_iter().for_each(|at| x.add(at));
                [block.y.0, block.y.1].into_iter().for_each(|at| y.add(at));
            }
        }
    }
    (x.range(), y.range())
}

#[derive(Default)]
struct Bounds(Option<(f64, f64)>);

impl Bounds {
    fn add(&mut self, value: f64) {
        let (low, high) = self.0.unwrap_or((value, value));
        self.0 = Some((low.min(value), high.max(value)));
    }

    fn range(self) -> (f64, f64) {
        self.0.unwrap_or_default()
    }
}

/// The sum of all layers at each position.
fn sums(layers: &[Layer], positions: usize) -> Vec<f64> {
    let mut sums = vec![0.0; positions];
    for layer in layers {
        sums.iter_mut().zip(&layer.values).for_each(|(sum, value)| *sum += value);
    }
    sums
}

fn draw_axes(chart: &Chart, x: &Scale, y: &Scale, area: &Area<'_>, style: &Style) -> Drawn {
    let (wide, high) = area.dim_in_pixel();
    let text_of = |mark: &f64| match &chart.content {
        Content::Bars { groups, .. } => {
            group_at(groups, *mark).map_or(String::new(), |group| fitted(&group.name, SIZE, wide as i32 / 3))
        }
        _ => y.text(*mark),
    };
    let widest = y.marks.iter().map(|mark| width(&text_of(mark), SIZE)).max().unwrap_or(0).max(44);
    let rows = moment_rows(&chart.moments, x);
    let mut axes = ChartBuilder::on(area)
        .margin_top(MOMENTS * rows + 9)
        .margin_right(RIGHT)
        .margin_bottom(6)
        .set_label_area_size(plotters::chart::LabelAreaPosition::Left, widest + 34)
        .set_label_area_size(plotters::chart::LabelAreaPosition::Bottom, 42)
        .build_cartesian_2d(x.clone(), y.clone())?;
    let text = style.text(SIZE, style.theme.faint());
    axes.configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(style.theme.grid().stroke_width(1))
        .axis_style(style.theme.faint().stroke_width(1))
        .label_style(text.clone())
        .axis_desc_style(text)
        .x_desc(fitted(&x.label, SIZE, wide as i32 - 120))
        .y_desc(fitted(&y.label, SIZE, high as i32 - 60))
        .x_label_formatter(&|mark| x.text(*mark))
        .y_label_formatter(&text_of)
        .draw()?;
    draw_content(&chart.content, x, y, &mut axes, style)?;
    draw_moments(&chart.moments, x, y, &axes, area, style)
}

fn draw_content(content: &Content, x: &Scale, y: &Scale, axes: &mut Axes<'_>, style: &Style) -> Drawn {
    let place = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        points.iter().filter_map(|point| Some((x.place(point.0)?, y.place(point.1)?))).collect()
    };
    let colour = |number| style.theme.colour(number);
    match content {
        Content::Steps(series) => {
            draw_lines(series, axes, |series| steps(&place(&series.points), x.high), |_| false, &colour)
        }
        Content::Lines(series) => {
            let few = |path: &[_]| path.len() <= FEW;
            draw_lines(series, axes, |series| place(&series.points), few, &colour)
        }
        Content::Areas { at, layers } => draw_areas(at, layers, x.high, axes, &colour),
        Content::Bars { names, groups } => draw_bars(groups, names.len(), x, axes, style),
        Content::Blocks { blocks, .. } => draw_blocks(blocks, axes, style),
    }
}

/// The corners of values that hold until the next, and the last one until the end.
fn steps(points: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::with_capacity(2 * points.len() + 1);
    for &(x, y) in points {
        match corners.last() {
            Some(&(_, before)) if before == y => continue,
            Some(&(_, before)) => corners.push((x, before)),
            None => {}
        }
        corners.push((x, y));
    }
    corners.extend(points.last().map(|point| (end, point.1)));
    corners
}

fn draw_lines(
    series: &[Series],
    axes: &mut Axes<'_>,
    path: impl Fn(&Series) -> Vec<(f64, f64)>,
    marked: impl Fn(&[(f64, f64)]) -> bool,
    colour: &dyn Fn(usize) -> RGBColor,
) -> Drawn {
    let count = series.len();
    for (number, series) in series.iter().enumerate() {
        let path = path(series);
        let wide = 2 + THICKER * (count - 1 - number).min(2) as u32;
        if marked(&path) {
            let marks = path.iter().map(|at| Circle::new(*at, wide + 1, colour(series.colour).filled()));
            axes.draw_series(marks)?;
        }
        let line = colour(series.colour).stroke_width(wide);
        if Theme::is_dashed(series.colour) {
            axes.draw_series([DashedPathElement::new(path, DASH.0, DASH.1, line)])?;
        } else {
            axes.draw_series([PathElement::new(path, line)])?;
        }
    }
    Ok(())
}

/// Draws the highest sum first: each lower one covers a part of it.
fn draw_areas(
    at: &[f64],
    layers: &[Layer],
    end: f64,
    axes: &mut Axes<'_>,
    colour: &dyn Fn(usize) -> RGBColor,
) -> Drawn {
    for number in (0..layers.len()).rev() {
        let tops: Vec<_> = at.iter().copied().zip(sums(&layers[..=number], at.len())).collect();
        let mut outline = steps(&tops, end);
        outline.extend([(end, 0.0), (at[0], 0.0)]);
        axes.draw_series([Polygon::new(outline, colour(number).filled())])?;
    }
    Ok(())
}

/// Where the middle of a group is on the axis y: the first is at the top.
fn middle(group: usize, groups: usize) -> f64 {
    (groups - group) as f64 - 0.5
}

fn group_at(groups: &[Group], mark: f64) -> Option<&Group> {
    // This cast saturates.
    groups.get((groups.len() as f64 - mark) as usize)
}

/// Draws the bars of each group, of at most this many, with their values.
fn draw_bars(groups: &[Group], most: usize, x: &Scale, axes: &mut Axes<'_>, style: &Style) -> Drawn {
    let thick = 0.8 / most.max(1) as f64;
    for (number, group) in groups.iter().enumerate() {
        let top = middle(number, groups.len()) + 0.4;
        for (index, value) in group.values.iter().enumerate() {
            let Some(end) = x.place(*value) else { continue };
            let upper = top - thick * index as f64;
            let colour = style.theme.colour(index);
            axes.draw_series([Rectangle::new([(x.low, upper), (end, upper - thick)], colour.filled())])?;
            draw_value(&x.value(*value), (x.low, end, upper - thick / 2.0), colour, axes, style)?;
        }
    }
    Ok(())
}

/// Writes a value behind the end of its bar, or inside if there is no room behind it.
fn draw_value(
    text: &str,
    (begin, end, middle): (f64, f64, f64),
    colour: RGBColor,
    axes: &mut Axes<'_>,
    style: &Style,
) -> Drawn {
    let (left, right) = (axes.backend_coord(&(begin, middle)).0, axes.backend_coord(&(end, middle)).0);
    let room = axes.plotting_area().get_pixel_range().0.end + RIGHT - right;
    let size = SIZE - 1;
    let (at, anchor, written) = if width(text, size) + 4 <= room || right - left < width(text, size) {
        (4, HPos::Left, style.theme.faint())
    } else {
        (-4, HPos::Right, readable_on(colour))
    };
    let look = style.text(size, written).pos(Pos::new(anchor, VPos::Center));
    axes.draw_series([EmptyElement::at((end, middle)) + Text::new(text.to_owned(), (at, 0), look)])?;
    Ok(())
}

fn draw_blocks(blocks: &[Block], axes: &mut Axes<'_>, style: &Style) -> Drawn {
    for block in blocks {
        let (left, top) = axes.backend_coord(&(block.x.0, block.y.1));
        let (right, bottom) = axes.backend_coord(&(block.x.1, block.y.0));
        if right <= left {
            continue;
        }
        let colour = style.theme.mixed(style.theme.colour(block.colour), block.strength);
        let corners = [(block.x.0, block.y.0), (block.x.1, block.y.1)];
        axes.draw_series([Rectangle::new(corners, colour.filled())])?;
        let edge: ShapeStyle = style.theme.background().stroke_width(1);
        axes.draw_series([Rectangle::new(corners, edge)])?;
        let text = fitted(&block.text, SIZE - 1, right - left - 12);
        if bottom - top >= 12 && !text.is_empty() {
            let middle = (block.x.0, (block.y.0 + block.y.1) / 2.0);
            let size = right - left;
            let indent = (block.x.1 - block.x.0) * 4.0 / f64::from(size);
            let written = style.text(SIZE - 1, readable_on(colour));
            axes.draw_series([Text::new(text, (middle.0 + indent, middle.1), written)])?;
        }
    }
    Ok(())
}

/// Black or white, whichever stands out.
fn readable_on(RGBColor(red, green, blue): RGBColor) -> RGBColor {
    let bright = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
    if bright > 128_000 { RGBColor(0x10, 0x10, 0x10) } else { RGBColor(0xff, 0xff, 0xff) }
}

/// How many rows the names of moments take.
fn moment_rows(moments: &[Moment], x: &Scale) -> i32 {
    let seen = moments.iter().filter(|moment| (x.low..=x.high).contains(&moment.at)).count();
    seen.min(3) as i32
}

/// Draws a line for each moment, and its name above if there is room.
fn draw_moments(
    moments: &[Moment],
    x: &Scale,
    y: &Scale,
    axes: &Axes<'_>,
    area: &Area<'_>,
    style: &Style,
) -> Drawn {
    let (base, top) = (area.get_base_pixel(), axes.backend_coord(&(x.low, y.high)).1);
    let edge = axes.backend_coord(&(x.high, y.high)).0 + RIGHT;
    let mut free = vec![i32::MIN; moment_rows(moments, x) as usize];
    for moment in moments.iter().filter(|moment| (x.low..=x.high).contains(&moment.at)) {
        let at = axes.backend_coord(&(moment.at, y.low));
        let line = [(at.0 - base.0, at.1 - base.1), (at.0 - base.0, top - base.1 - 3)];
        area.draw(&PathElement::new(line, style.theme.faint().stroke_width(1)))?;
        let wide = width(&moment.name, SIZE - 1);
        let left = at.0.min(edge - wide);
        let Some(row) = free.iter().position(|free| *free <= left) else { continue };
        free[row] = left + wide + 8;
        let middle = top - base.1 - MOMENTS * row as i32 - 10;
        let text = style.text(SIZE - 1, style.theme.faint());
        area.draw(&Text::new(fitted(&moment.name, SIZE - 1, 200), (left - base.0, middle), text))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::page::{Page, svg};
    use super::super::picture::Picture;
    use super::super::unit::Unit;
    use super::*;

    fn drawn(x: Axis, content: Content) -> String {
        let (y, if_empty) = (Axis::new("y", Unit::Count), String::new());
        let chart = Chart { title: "c".to_owned(), x, y, moments: Vec::new(), content, if_empty };
        let picture = Picture::new("t".to_owned(), "a".to_owned(), vec![chart], Vec::new());
        svg(&picture, &Page { width: 600, height: 400, theme: Theme::Light }).unwrap()
    }

    /// The lines of this colour: how wide each is.
    fn widths(svg: &str, RGBColor(red, green, blue): RGBColor) -> Vec<u32> {
        let stroke = format!("stroke=\"#{red:02X}{green:02X}{blue:02X}\" stroke-width=\"");
        let lines = svg.lines().filter(|line| line.starts_with("<polyline"));
        lines.filter_map(|line| line.split_once(&stroke)?.1.split('"').next()?.parse().ok()).collect()
    }

    /// As of stops and collections, which often last as long as each other (design/cli.md `.plot.covered`).
    #[test]
    fn a_line_that_another_covers_is_seen_on_both_sides_of_it() {
        let line = |colour| Series { name: "n".to_owned(), colour, points: vec![(0.0, 1.0), (9.0, 5.0)] };
        let svg = drawn(Axis::new("x", Unit::Count), Content::Lines(vec![line(1), line(2)]));
        let [under, over] = [1, 2].map(|colour| widths(&svg, Theme::Light.colour(colour)));
        assert_eq!((under.len(), over.len()), (1, 1), "{svg}");
        assert!(under[0] >= over[0] + 2, "{under:?} {over:?}");
    }

    #[test]
    fn a_line_of_a_colour_that_is_taken_is_dashed() {
        let line = |colour| Series { name: "n".to_owned(), colour, points: vec![(0.0, 1.0), (9.0, 5.0)] };
        let count = |colour| {
            let svg = drawn(Axis::new("x", Unit::Count), Content::Lines(vec![line(colour)]));
            widths(&svg, Theme::Light.colour(colour)).len()
        };
        assert_eq!(count(3), 1);
        assert!(count(3 + Theme::COLOURS) > 10);
    }

    #[test]
    fn a_bar_has_its_value_and_the_shortest_has_a_length_on_a_logarithmic_axis() {
        let group = Group { name: "n".to_owned(), values: vec![1_000.0, 2_000_000.0] };
        let names = ["one", "other"].map(str::to_owned).to_vec();
        let content = Content::Bars { names, groups: vec![group] };
        let svg = drawn(Axis::logarithmic("x", Unit::Nanoseconds), content);
        assert!(["\n1.0 µs\n", "\n2.0 ms\n"].iter().all(|value| svg.contains(value)), "{svg}");
        let attribute = |line: &str, name: &str| -> i32 {
            line.split_once(&format!(" {name}=\"")).unwrap().1.split('"').next().unwrap().parse().unwrap()
        };
        let RGBColor(red, green, blue) = Theme::Light.colour(0);
        let fill = format!("fill=\"#{red:02X}{green:02X}{blue:02X}\"");
        let bars = svg.lines().filter(|line| line.starts_with("<rect") && line.contains(&fill));
        // The legend has one of the colour, too.
        let widest = bars.map(|line| attribute(line, "width")).max().unwrap();
        assert!(widest > 50, "{svg}");
    }
}

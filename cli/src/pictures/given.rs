//! A picture that a program wrote into its report, as JSON under the key `picture` ([design/cli.md `.plot.given`](crate::design::cli)).

use serde::Deserialize;

use crate::plotting::{Content, Picture};

/// A report of which only the picture is read.
#[derive(Deserialize)]
struct Report {
    picture: Picture,
}

/// The picture of a report.
///
/// # Errors
/// What makes it not a report with a picture, or a picture that cannot be drawn.
pub(crate) fn given(report: &[u8]) -> Result<Picture, String> {
    let Report { picture } = serde_json::from_slice(report).map_err(|error| error.to_string())?;
    for chart in &picture.charts {
        check(&chart.content).map_err(|why| format!("its chart {:?} {why}", chart.title))?;
    }
    Ok(picture)
}

fn check(content: &Content) -> Result<(), &'static str> {
    match content {
        Content::Steps(series) | Content::Lines(series) => {
            let ascend =
                series.iter().all(|series| series.points.is_sorted_by(|one, other| one.0 <= other.0));
            ascend.then_some(()).ok_or("has points that do not ascend on the axis x")
        }
        Content::Areas { at, layers } => {
            if !at.is_sorted() {
                return Err("has positions that do not ascend on the axis x");
            }
            let fit = layers.iter().all(|layer| layer.values.len() == at.len());
            fit.then_some(()).ok_or("has layers without a value for each position")
        }
        Content::Bars { names, groups } => {
            let fit = groups.iter().all(|group| group.values.len() <= names.len());
            fit.then_some(()).ok_or("has bars without a name")
        }
        Content::Blocks { blocks, .. } => {
            let fit = blocks.iter().all(|block| (0.0..=1.0).contains(&block.strength));
            fit.then_some(()).ok_or("has blocks whose strength is not from 0 to 1")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(content: &str) -> String {
        format!(
            r#"{{"messages": 3, "picture": {{"title": "t", "about": "a", "charts": [{{"title": "c",
                "x": {{"label": "time", "unit": "nanoseconds"}}, "y": {{"label": "many", "unit": "count"}},
                "content": {content}, "if_empty": "nothing"}}]}}}}"#
        )
    }

    #[test]
    fn a_picture_is_read_and_the_rest_of_the_report_is_not() {
        let picture = given(
            report(r#"{"lines": [{"name": "n", "colour": 70, "points": [[0, 1], [1, 5]]}]}"#).as_bytes(),
        );
        let picture = picture.expect("a whole picture");
        assert_eq!((&*picture.title, picture.charts.len(), picture.is_empty()), ("t", 1, false));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            (r#"{"lines": [{"name": "n", "colour": 0, "points": [[1, 1], [0, 5]]}]}"#, "do not ascend"),
            (r#"{"areas": {"at": [2, 1], "layers": []}}"#, "do not ascend"),
            (r#"{"areas": {"at": [1, 2], "layers": [{"name": "n", "values": [1]}]}}"#, "for each position"),
            (r#"{"bars": {"names": [], "groups": [{"name": "n", "values": [1]}]}}"#, "without a name"),
            (
                r#"{"blocks": {"names": [], "blocks": [{"x": [0, 1], "y": [0, 1], "colour": 0, "strength": 7, "text": ""}]}}"#,
                "strength",
            ),
            (r#"{"circles": []}"#, "unknown variant"),
        ];
        for (content, why) in cases {
            let error = given(report(content).as_bytes()).map(drop).expect_err(content);
            assert!(error.contains(why), "{error}");
        }
        assert!(given(b"{}").map(drop).expect_err("no picture").contains("picture"));
    }
}

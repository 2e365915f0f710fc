use super::*;

fn outcome(resident: i64) -> Outcome {
    let sample = |operations, live| Sample { operations, live, resident, committed: None };
    Outcome {
        samples: vec![sample(1, 1), sample(2, 1000), sample(3, 500)],
        percentiles: Some([10, 20, 30, 40, 50, 60]),
        mean: Some(12.0),
        warm: Some(8.0),
        ..Outcome::default()
    }
}

/// The lines of a chart.
fn lines(chart: &Chart) -> &[Series] {
    match &chart.content {
        Content::Steps(series) | Content::Lines(series) => series,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_chart_has_what_was_measured() {
    let (one, other) = (outcome(1000), Outcome::default());
    let picture = replayed("t".to_owned(), "a".to_owned(), &[("one", &one), ("other", &other)]);
    let Content::Bars { groups, .. } = &picture.charts[0].content else { panic!("{picture:?}") };
    assert_eq!(groups.len(), 1, "the other has no times");
    assert_eq!((&*groups[0].name, &*groups[0].values), ("one", &[12.0, 8.0][..]));
    let footprints = lines(&picture.charts[1]);
    assert_eq!(footprints[0].name, "one");
    assert_eq!((&*footprints[1].name, footprints[1].colour), ("live", LIVE));
    assert_eq!(footprints[1].points, [(1.0, 1.0), (2.0, 1000.0), (3.0, 500.0)]);
    // The first sample is of next to nothing.
    let shares = lines(&picture.charts[2]);
    assert_eq!((shares.len(), &*shares[0].points), (1, &[(2.0, 1.0), (3.0, 2.0)][..]));
    let times = lines(&picture.charts[3]);
    assert_eq!((times.len(), times[0].points.len()), (1, 5), "the other has no times");
    assert!(picture.notes.is_empty());
}

/// As of a replay that measures contents only.
#[test]
fn what_was_not_measured_is_said_in_a_note() {
    let one = Outcome { percentiles: None, mean: None, warm: None, ..outcome(1000) };
    let picture = replayed("t".to_owned(), "a".to_owned(), &[("one", &one)]);
    assert_eq!((picture.charts.len(), picture.notes.len()), (2, 2), "{picture:?}");
    assert!(picture.notes.iter().all(|note| note.ends_with(": no times were measured")), "{picture:?}");
}

#[test]
fn an_allocator_has_one_colour_in_all_charts_and_what_is_live_has_its_own() {
    let (measured, untimed) = (outcome(1000), Outcome { percentiles: None, ..outcome(1000) });
    let unread = Outcome { samples: Vec::new(), ..outcome(1000) };
    let outcomes = [("one", &untimed), ("two", &measured), ("none", &unread)];
    let picture = replayed("t".to_owned(), "a".to_owned(), &outcomes);
    let mut colours = std::collections::BTreeMap::new();
    for Series { name, colour, .. } in picture.charts[1..].iter().flat_map(lines) {
        assert_eq!(*colours.entry(name.clone()).or_insert(*colour), *colour, "{name}");
    }
    let mut distinct: Vec<_> = colours.values().collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((colours.len(), distinct.len()), (4, 4), "{colours:?}");
}

/// More than there are colours: those that have one colour are told apart by dashes.
#[test]
fn every_allocator_is_drawn_and_none_as_what_is_live() {
    let one = outcome(1);
    let names: Vec<String> = (0..12).map(|number| format!("allocator {number}")).collect();
    let outcomes: Vec<_> = names.iter().map(|name| (&**name, &one)).collect();
    let picture = replayed("t".to_owned(), "a".to_owned(), &outcomes);
    for chart in &picture.charts[1..] {
        let lines = lines(chart);
        assert!(names.iter().all(|name| lines.iter().any(|line| line.name == *name)), "{chart:?}");
        let mut colours: Vec<_> = lines.iter().map(|line| line.colour).collect();
        colours.sort_unstable();
        colours.dedup();
        // Twice as many as there are colours: with dashes and without.
        assert!(colours.len() == lines.len() && colours.iter().all(|colour| *colour < 2 * Theme::COLOURS));
    }
}

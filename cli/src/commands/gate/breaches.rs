//! What was more than the budget has.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::budget::Budget;
use crate::grid::Grid;
use crate::summary::{NamedTally, Summary, Violation};

/// What was more than the budget has.
#[derive(Debug, Serialize)]
pub(super) struct Breach {
    /// The thread's name; absent for what is not a thread's.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    what: String,
    count: u64,
    budget: u64,
    bytes: u64,
    /// Where, as far as events of it were read.
    sites: Vec<String>,
}

/// All breaches.
pub(super) fn breaches(summary: &Summary, budget: &Budget) -> Vec<Breach> {
    let mut found = Vec::new();
    let amnesties = summary.phase.as_ref().map_or(0, |phase| phase.amnesties_begun);
    if let Some(most) = budget.amnesties.filter(|most| amnesties > *most) {
        let what = "amnesties".to_owned();
        found.push(Breach {
            thread: None,
            what,
            count: amnesties,
            budget: most,
            bytes: 0,
            sites: Vec::new(),
        });
    }
    found.extend(spent(summary).into_values().filter_map(|spent| spent.breach(budget)));
    found
}

/// What a thread had of a class: by its place in the contract, and the class.
type All<'s> = BTreeMap<(u64, &'s str), Spent<'s>>;

/// What a thread had of a class while it was armed, without what was excused.
#[derive(Debug)]
struct Spent<'s> {
    name: Option<&'s str>,
    shown_name: String,
    class: &'s str,
    count: u64,
    bytes: u64,
    sites: Vec<String>,
}

/// The tallies, and what events say beyond them: tallies may be missing, or another thread may have got the place.
fn spent(summary: &Summary) -> All<'_> {
    let mut all = All::new();
    for row in &summary.tallies {
        all.insert((row.tally.slot, &row.tally.class), Spent::of_tally(row));
    }
    // Of a process that is watched from outside, events are what was tallied.
    let is_of_contract = |violation: &&Violation| violation.is_real() || summary.is_watched;
    let mut told = BTreeMap::<(u64, &str, &str), (u64, u64)>::new();
    for violation in summary.violations.iter().filter(is_of_contract) {
        let Violation { slot, class, kind, .. } = violation;
        let spent = all.entry((*slot, class)).or_insert_with(|| Spent::of_event(violation));
        let site = violation.site.to_string();
        // An alarm is at the first violation of its turn.
        if !spent.sites.contains(&site) {
            spent.sites.push(site);
        }
        let (count, bytes) = told.entry((*slot, class, kind)).or_default();
        (*count, *bytes) = (count.saturating_add(violation.count), bytes.saturating_add(violation.bytes));
    }
    // An alarm is of the events of a turn, which may have made records of their own or not.
    for ((slot, class, _), (count, bytes)) in told {
        if let Some(spent) = all.get_mut(&(slot, class)).filter(|spent| spent.count < count) {
            (spent.count, spent.bytes) = (count, bytes);
        }
    }
    all
}

impl<'s> Spent<'s> {
    fn of_tally(row: &'s NamedTally) -> Self {
        Self {
            name: row.name.as_deref(),
            shown_name: row.shown_name(),
            class: &row.tally.class,
            count: row.unexcused(),
            bytes: row.tally.armed_bytes.saturating_sub(row.tally.armed_excused_bytes),
            sites: Vec::new(),
        }
    }

    fn of_event(violation: &'s Violation) -> Self {
        let (name, class) = (&violation.name, &violation.class);
        Self { name: Some(name), shown_name: name.clone(), class, count: 0, bytes: 0, sites: Vec::new() }
    }

    fn breach(self, budget: &Budget) -> Option<Breach> {
        let most = budget.of(self.name, self.class);
        (self.count > most).then(|| Breach {
            thread: Some(self.shown_name),
            what: self.class.to_owned(),
            count: self.count,
            budget: most,
            bytes: self.bytes,
            sites: self.sites,
        })
    }
}

/// The breaches as a table.
pub(super) fn grid(breaches: &[Breach]) -> Grid {
    let mut grid =
        Grid::new("more than the budget", 3, &["thread", "what", "site", "count", "budget", "bytes"]);
    for breach in breaches {
        let thread = breach.thread.as_deref().unwrap_or_default();
        let site = breach.sites.first().map_or("", String::as_str);
        grid.add(&[&thread, &breach.what, &site], &[breach.count, breach.budget, breach.bytes]);
        breach.sites.iter().skip(1).for_each(|site| grid.add(&[&"", &"", site], &[]));
    }
    grid
}

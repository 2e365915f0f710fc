//! What a recording adds up to (design/cli.md `.report`).

use core::mem;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use tripoint::events;
use tripoint_telemetry::format::MAX_FRAMES;
use tripoint_telemetry::{Confidence, Estimate, Interval, Mean, Sample, Window};

use crate::source::counters::{Arena, ContractThread, Counters, Phase, Point, Pool, Samples, Tally};
use crate::source::{End, Event, Thread};
use crate::symbols::{Named, Symbols};

/// The name of the phase in which the contract is enforced.
const STEADY: &str = "SteadyState";

/// In place of the outer calls of a stack that was cut off (design/cli.md `.exports.cut`).
const CUT: &str = "[outer calls are not recorded]";

/// Which events count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    /// Those since the process entered its steady state, until it left that.
    SteadyState,
    /// All that there are.
    All,
}

/// Up to when the part that counts is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Until {
    /// Its end: of the steady state, or of a watch from outside.
    End,
    /// The moment at which it was read: the process ran then, and was in its steady state.
    Read,
    /// The last event: what came then is not known.
    LastEvent,
}

/// A change of the phase.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PhaseChange {
    /// In ns of the system's monotonic clock.
    pub(crate) ns: Option<u64>,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// What violations of the contract have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violated {
    thread: u32,
    slot: u64,
    kind: String,
    class: String,
    site: Vec<u64>,
}

/// What samples have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sampled {
    pub(crate) thread: u32,
    pub(crate) type_name: String,
    pub(crate) site: Vec<u64>,
}

/// Sums over events.
#[derive(Clone, Debug, Default)]
struct Sums {
    kinds: BTreeMap<String, u64>,
    /// In order, as samples are (design/cli.md `.exports.same`).
    violations: BTreeMap<Violated, (u64, u64)>,
    samples: BTreeMap<Sampled, Estimate>,
    /// The mean of the last sample.
    mean: u64,
    /// By buffer.
    fills: HashMap<u64, u64>,
    /// The first and the last time.
    time: Option<(u64, u64)>,
}

impl Sums {
    fn add(&mut self, event: &Event) {
        let name = if event.event.is_empty() { "unknown" } else { &event.event };
        match self.kinds.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.kinds.insert(name.to_owned(), 1)),
        }
        if let Some(ns) = event.ns {
            let (first, last) = self.time.unwrap_or((ns, ns));
            self.time = Some((first.min(ns), last.max(ns)));
        }
        match name {
            "violation" => {
                let (thread, slot) = (event.thread, event.slot);
                let (kind, class) = (event.kind.clone(), event.class.clone());
                let violated = Violated { thread, slot, kind, class, site: event.site.clone() };
                let (count, bytes) = self.violations.entry(violated).or_default();
                *count = count.saturating_add(event.count);
                *bytes = bytes.saturating_add(event.bytes);
            }
            "fill" => *self.fills.entry(event.buffer).or_default() += 1,
            "sample" => {
                let mean = u32::try_from(event.mean).ok().and_then(Mean::new);
                let sample = mean.and_then(|mean| Sample::new(event.size, event.offset, mean));
                if let Some(sample) = sample {
                    self.mean = event.mean;
                    let type_name = event.type_name.clone();
                    let sampled = Sampled { thread: event.thread, type_name, site: event.site.clone() };
                    let estimate = self.samples.entry(sampled);
                    estimate.or_insert_with(|| Estimate::new(sample.mean())).add(&sample);
                }
            }
            _ => {}
        }
    }
}

/// Adds up events as they are read, and keeps none of them.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    part: Part,
    /// Of the part that counts, and, before a change of the phase was read, of all.
    sums: Sums,
    /// The phase of the events that come next; `None` before any change was read.
    phase: Option<String>,
    phases: Vec<PhaseChange>,
    /// The system's number of the thread at each place of the contract.
    slots: BTreeMap<u64, u32>,
    /// The rings of each thread, by their index.
    rings: BTreeMap<u32, usize>,
    /// The names with which threads attached.
    names: BTreeMap<u32, String>,
    missed: u64,
    /// Of these, events that last.
    lasting_missed: u64,
    /// The time of the last event.
    last: Option<u64>,
}

impl Collector {
    pub(crate) fn new(part: Part) -> Self {
        Self {
            part,
            sums: Sums::default(),
            phase: None,
            phases: Vec::new(),
            slots: BTreeMap::new(),
            rings: BTreeMap::new(),
            names: BTreeMap::new(),
            missed: 0,
            lasting_missed: 0,
            last: None,
        }
    }

    pub(crate) fn add(&mut self, event: &Event) {
        self.missed = self.missed.saturating_add(event.missed);
        if event.missed > 0 {
            if event.is_lasting {
                self.lasting_missed = self.lasting_missed.saturating_add(event.missed);
            }
            return;
        }
        if ["violation", "begin amnesty", "end amnesty"].contains(&event.event.as_str()) {
            self.slots.insert(event.slot, event.thread);
        }
        self.rings.insert(event.thread, event.ring);
        self.last = self.last.max(event.ns);
        match event.event.as_str() {
            "phase" => self.change_phase(event),
            "thread attach" => drop(self.names.insert(event.thread, event.name.clone())),
            _ => {}
        }
        if self.part == Part::All || self.phase.as_deref().is_none_or(|phase| phase == STEADY) {
            self.sums.add(event);
        }
    }

    fn change_phase(&mut self, event: &Event) {
        // The event names the phase before it, so what came before is in that one even if the change to it was missed.
        if self.part == Part::SteadyState && self.phase.is_none() && event.from != STEADY {
            self.sums = Sums::default();
        }
        self.phase = Some(event.to.clone());
        let (from, to) = (event.from.clone(), event.to.clone());
        self.phases.push(PhaseChange { ns: event.ns, from, to });
    }

    /// How long the part that counts lasted, in seconds, and up to when that is known.
    fn lasted(&self, sums: &Sums, end: &End, is_steady: bool) -> (f64, Until) {
        let change = |is_it: &dyn Fn(&&PhaseChange) -> bool| self.phases.iter().find(is_it)?.ns;
        let (first, last) = sums.time.unzip();
        let (begin, last, until) = match self.part {
            _ if end.watched_ns.is_some() => (Some(0), end.watched_ns, Until::End),
            Part::All => (first, last, Until::LastEvent),
            Part::SteadyState => {
                let begin = change(&|change| change.to == STEADY).or(first);
                match (change(&|change| change.from == STEADY), end.ns.filter(|_| is_steady)) {
                    (Some(left), _) => (begin, Some(left), Until::End),
                    (None, Some(now)) => (begin, Some(now), Until::Read),
                    (None, None) => (begin, last, Until::LastEvent),
                }
            }
        };
        let ns = begin.zip(last).map_or(0, |(begin, last)| last.saturating_sub(begin));
        (ns as f64 / 1e9, until)
    }

    /// The summary, once all events were added.
    pub(crate) fn summary(mut self, about: About, end: End, symbols: &mut Symbols) -> Summary {
        let phase = end.counters.phase.entries.first();
        let is_steady = phase.is_some_and(|phase| phase.phase == STEADY);
        let is_under_contract = phase.is_some() || !self.phases.is_empty();
        if !is_under_contract {
            self.part = Part::All;
        } else if self.part == Part::SteadyState && self.phase.is_none() && !is_steady {
            self.sums = Sums::default();
        }
        let sums = mem::take(&mut self.sums);
        let contract = end.counters.contract_threads.entries.as_slice();
        let threads = Threads { collector: &self, threads: &end.threads, contract };
        let (seconds, until) = self.lasted(&sums, &end, is_steady);
        Summary {
            about,
            program: symbols.program(),
            is_closed: end.is_closed,
            is_gone: end.is_gone,
            is_watched: end.watched_ns.is_some(),
            part: self.part,
            seconds,
            until,
            phase: phase.cloned(),
            tallies: threads.tallies(&end.counters),
            violations: threads.violations(sums.violations, symbols),
            mean: sums.mean,
            stacks: threads.stacks(&sums.samples, symbols),
            names: self.rings.keys().map(|thread| (*thread, threads.name(*thread))).collect(),
            sites: threads.sites(sums.samples, symbols),
            points: points(&end.counters, &sums.fills),
            losses: losses(self.missed, self.lasting_missed, &end),
            steady_seconds: steady_seconds(&self.phases, self.last.max(end.ns)),
            phases: self.phases,
            contract: end.counters.contract_threads.entries,
            arenas: end.counters.arenas.entries,
            pools: end.counters.pools.entries,
            samples: end.counters.samples.entries,
            hot: self.slots.values().copied().collect(),
            threads: end.threads,
            events: sums.kinds,
            replaced: symbols.replaced().iter().map(|path| path.display().to_string()).collect(),
            faults: Vec::new(),
        }
    }
}

/// Names threads.
struct Threads<'e> {
    collector: &'e Collector,
    threads: &'e [Thread],
    contract: &'e [ContractThread],
}

impl Threads<'_> {
    /// The name with which a thread registered that has this place of the contract.
    fn name_of_place(&self, slot: u64) -> Option<String> {
        self.contract.iter().find(|known| known.slot == slot).map(|known| known.name.clone())
    }

    fn name(&self, thread: u32) -> String {
        self.known_name(thread).unwrap_or_else(|| thread.to_string())
    }

    /// The name of its event of attaching, or of its ring.
    fn known_name(&self, thread: u32) -> Option<String> {
        let ring = self.collector.rings.get(&thread);
        // A ring keeps the name of its last thread, also when that has returned it.
        let has_it = |known: &&Thread| {
            known.thread == u64::from(thread) || (known.is_only && ring == Some(&known.ring))
        };
        let attached = self.collector.names.get(&thread).map(String::as_str);
        let name = attached.or_else(|| Some(self.threads.iter().find(has_it)?.name.as_str()));
        name.filter(|name| !name.is_empty()).map(ToOwned::to_owned)
    }

    fn tallies(&self, counters: &Counters) -> Vec<NamedTally> {
        let named = |tally: &Tally| NamedTally {
            name: self
                .name_of_place(tally.slot)
                .or_else(|| self.collector.slots.get(&tally.slot).map(|thread| self.name(*thread))),
            tally: tally.clone(),
        };
        counters.tallies.entries.iter().map(named).collect()
    }

    fn violations(&self, sums: BTreeMap<Violated, (u64, u64)>, symbols: &mut Symbols) -> Vec<Violation> {
        let mut found = BTreeMap::<(u64, u32, String, String, Named), Violation>::new();
        for (violated, (count, bytes)) in sums {
            let Violated { thread, slot, kind, class, site } = violated;
            let named = symbols.name(&site);
            let key = (slot, thread, kind.clone(), class.clone(), named.clone());
            let row = found.entry(key).or_insert_with(|| Violation {
                name: self
                    .known_name(thread)
                    .or_else(|| self.name_of_place(slot))
                    .unwrap_or_else(|| thread.to_string()),
                thread,
                slot,
                kind,
                class,
                count: 0,
                bytes: 0,
                stack: symbols.stack(&site),
                site: named,
            });
            row.count = row.count.saturating_add(count);
            row.bytes = row.bytes.saturating_add(bytes);
        }
        found.into_values().collect()
    }

    fn is_hot(&self, thread: u32) -> bool {
        self.collector.slots.values().any(|hot| *hot == thread)
    }

    fn stacks(&self, sums: &BTreeMap<Sampled, Estimate>, symbols: &mut Symbols) -> Vec<Stack> {
        let mut stacks: Vec<_> = sums
            .iter()
            .map(|(sampled, estimate)| Stack {
                thread: self.name(sampled.thread),
                is_hot: self.is_hot(sampled.thread),
                type_name: sampled.type_name.clone(),
                calls: calls(&sampled.site, symbols),
                bytes: estimate.bytes(),
                objects: estimate.objects(),
            })
            .collect();
        // The order of a map is another in each run.
        let key = |stack: &Stack| {
            let addresses: Vec<_> = stack.calls.iter().map(|call| call.address).collect();
            (stack.thread.clone(), stack.type_name.clone(), addresses)
        };
        stacks.sort_by_cached_key(key);
        stacks
    }

    fn sites(&self, sums: BTreeMap<Sampled, Estimate>, symbols: &mut Symbols) -> Vec<Site> {
        let mut found = BTreeMap::<(Named, String, u32), (Estimate, Vec<Named>)>::new();
        for (Sampled { thread, type_name, site }, estimate) in sums {
            let key = (symbols.name(&site), type_name, thread);
            match found.get_mut(&key) {
                Some((known, _)) => known.merge(&estimate),
                None => drop(found.insert(key, (estimate, symbols.stack(&site)))),
            }
        }
        let mut sites: Vec<_> = found
            .into_iter()
            .map(|((site, type_name, thread), (estimate, stack))| {
                let confidence = Confidence::PERCENT_95;
                // With several means there are no limits.
                let limits = estimate.limits(confidence, Window::ANY);
                let Interval { low, high } = limits.unwrap_or_else(|_| estimate.interval(confidence));
                Site {
                    name: self.name(thread),
                    thread,
                    is_hot: self.is_hot(thread),
                    type_name,
                    bytes: estimate.bytes().round(),
                    at_least: low,
                    at_most: high,
                    objects: estimate.objects().round(),
                    samples: estimate.samples(),
                    stack,
                    site,
                }
            })
            .collect();
        sites.sort_by(|one, other| other.bytes.total_cmp(&one.bytes));
        sites
    }
}

/// The calls of a site without those of the sampler itself, which are the innermost of each; all if there are no others
/// (design/cli.md `.exports.sampler`). If it has as many frames as are recorded, the outermost call is [`CUT`].
fn calls(site: &[u64], symbols: &mut Symbols) -> Vec<Call> {
    let mut is_within = true;
    let mut of = |address: &u64, symbols: &mut Symbols| {
        let frames = symbols.frames(*address).into_iter();
        let rest = frames.skip_while(|frame| is_within && frame.is_of_sampler());
        let functions: Vec<_> = rest.map(Named::from).collect();
        is_within = is_within && functions.is_empty();
        Call { address: *address, functions }
    };
    let mut calls: Vec<_> = site.iter().map(|address| of(address, symbols)).collect();
    calls.retain(|call| !call.functions.is_empty());
    if calls.is_empty() {
        let all = |address: &u64| Call {
            address: *address,
            functions: symbols.frames(*address).into_iter().map(Named::from).collect(),
        };
        calls.extend(site.iter().map(all));
    }
    // One that has just as many frames looks the same.
    if site.len() >= MAX_FRAMES {
        let root = Named { function: CUT.to_owned(), line: None };
        calls.push(Call { address: 0, functions: vec![root] });
    }
    calls
}

/// How long the steady state lasted, until `last` if no other phase came; none if its beginning is not known.
fn steady_seconds(phases: &[PhaseChange], last: Option<u64>) -> Option<f64> {
    let begin = phases.iter().position(|change| change.to == STEADY)?;
    let end = phases.get(begin + 1).map_or(last, |change| change.ns);
    Some(end?.saturating_sub(phases[begin].ns?) as f64 / 1e9)
}

fn points(counters: &Counters, fills: &HashMap<u64, u64>) -> Vec<PointFills> {
    let fills_of = |point: &Point| PointFills {
        fills_in_part: *fills.get(&point.buffer).unwrap_or(&0),
        point: point.clone(),
    };
    counters.points.entries.iter().map(fills_of).collect()
}

/// A damaged file may have any numbers.
fn sum<const COUNT: usize>(counts: [u64; COUNT]) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

fn losses(events_missed: u64, lasting_missed: u64, end: &End) -> Losses {
    let counters = &end.counters;
    let Counters { arenas, pools, extents, points, .. } = counters;
    let objects = end.objects.as_ref();
    Losses {
        events_missed,
        lasting_missed: (events_missed == 0 || end.has_lasting_rings).then_some(lasting_missed),
        events_dropped: end.threads.iter().map(|thread| thread.dropped).sum(),
        left_out: sum([
            arenas.left_out,
            pools.left_out,
            extents.left_out,
            points.left_out,
            counters.samples.left_out,
            objects.map_or(0, |objects| objects.left_out),
        ]),
        unsteady: sum([
            arenas.unsteady,
            pools.unsteady,
            extents.unsteady,
            points.unsteady,
            counters.tallies.unsteady,
        ]),
    }
}

/// Where a recording is from.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct About {
    pub(crate) process: u64,
    /// In seconds since 1970.
    pub(crate) made: Option<u64>,
    /// Whether it is read from a capture.
    #[serde(skip)]
    pub(crate) is_captured: bool,
}

/// A tally, and the name of its thread if an event names the thread at that place.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NamedTally {
    pub(crate) name: Option<String>,
    #[serde(flatten)]
    pub(crate) tally: Tally,
}

impl NamedTally {
    /// The name, or the thread's place in the contract.
    pub(crate) fn shown_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("place {}", self.tally.slot))
    }
}

impl NamedTally {
    /// The events while the thread was armed that no amnesty excused.
    pub(crate) fn unexcused(&self) -> u64 {
        self.tally.armed_count.saturating_sub(self.tally.armed_excused)
    }
}

/// Violations of one thread and class at one site.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Violation {
    pub(crate) name: String,
    #[serde(rename = "tid")]
    pub(crate) thread: u32,
    /// The contract's place of the thread.
    #[serde(rename = "thread")]
    pub(crate) slot: u64,
    pub(crate) kind: String,
    pub(crate) class: String,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) site: Named,
    pub(crate) stack: Vec<Named>,
}

/// What samples say of one site.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Site {
    pub(crate) name: String,
    #[serde(rename = "tid")]
    pub(crate) thread: u32,
    /// Whether the thread is known to be under the contract.
    pub(crate) is_hot: bool,
    pub(crate) type_name: String,
    pub(crate) bytes: f64,
    /// An interval that holds the truth in 95 of 100 runs.
    pub(crate) at_least: u64,
    pub(crate) at_most: u64,
    pub(crate) objects: f64,
    pub(crate) samples: u64,
    pub(crate) site: Named,
    pub(crate) stack: Vec<Named>,
}

/// A frame of a stack, and the functions there, the innermost first.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Where the call returns to.
    pub(crate) address: u64,
    pub(crate) functions: Vec<Named>,
}

/// What samples say of one stack, thread and type.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) thread: String,
    is_hot: bool,
    pub(crate) type_name: String,
    /// The innermost first.
    pub(crate) calls: Vec<Call>,
    pub(crate) bytes: f64,
    pub(crate) objects: f64,
}

impl Stack {
    /// Its functions, inlined ones too.
    pub(crate) fn outermost_first(&self) -> impl Iterator<Item = &Named> {
        self.calls.iter().rev().flat_map(|call| call.functions.iter().rev())
    }
}

/// A point, and its fills in the part.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PointFills {
    pub(crate) fills_in_part: u64,
    #[serde(flatten)]
    pub(crate) point: Point,
}

/// What is not in the summary.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Losses {
    /// Events that were overwritten, or could not be read.
    pub(crate) events_missed: u64,
    /// Of these, violations, alarms and phases; none if it is not known, because they had no rings of their own.
    pub(crate) lasting_missed: Option<u64>,
    /// Events that the program dropped.
    pub(crate) events_dropped: u64,
    /// Things that found no entry in a table.
    pub(crate) left_out: u64,
    /// Entries that changed whenever they were read.
    pub(crate) unsteady: u64,
}

/// What a recording adds up to. Counters and tallies are of the whole run; events, violations and sites are of the part.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    #[serde(flatten)]
    pub(crate) about: About,
    /// The name of the program's file, if it is known.
    pub(crate) program: Option<String>,
    pub(crate) is_closed: bool,
    /// Whether the process has ended without closing its recording.
    pub(crate) is_gone: bool,
    /// Whether the process was watched from outside, and recorded nothing itself.
    pub(crate) is_watched: bool,
    pub(crate) part: Part,
    /// How long the part lasted: from its beginning, or the first event if that is not known.
    pub(crate) seconds: f64,
    /// Up to when.
    pub(crate) until: Until,
    pub(crate) phase: Option<Phase>,
    pub(crate) phases: Vec<PhaseChange>,
    pub(crate) threads: Vec<Thread>,
    /// The names of the threads whose events were read: for exports.
    #[serde(skip)]
    pub(crate) names: BTreeMap<u32, String>,
    /// The threads that are known to be under the contract, by the system's numbers.
    pub(crate) hot: BTreeSet<u32>,
    /// How long the steady state lasted; none if its beginning is not known.
    pub(crate) steady_seconds: Option<f64>,
    /// The threads of the contract.
    pub(crate) contract: Vec<ContractThread>,
    pub(crate) tallies: Vec<NamedTally>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) arenas: Vec<Arena>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) points: Vec<PointFills>,
    pub(crate) samples: Vec<Samples>,
    pub(crate) sites: Vec<Site>,
    /// The samples that `sites` are made of, stack by stack: for exports.
    #[serde(skip)]
    pub(crate) stacks: Vec<Stack>,
    /// The bytes between two samples, on average; zero if there was none.
    pub(crate) mean: u64,
    /// How many events of each kind.
    pub(crate) events: BTreeMap<String, u64>,
    pub(crate) losses: Losses,
    /// Programs and libraries whose files are not those that the process loaded.
    pub(crate) replaced: Vec<String>,
    /// What could not be read.
    pub(crate) faults: Vec<String>,
}

impl Violation {
    /// Whether it is one of the contract's: neither excused nor rehearsed, nor seen from outside, where the kind is the
    /// kernel's name for it.
    pub(crate) fn is_real(&self) -> bool {
        events::Event::is_breach(&self.kind)
    }
}

impl Summary {
    /// Whether what a recording ends with is missing: counters, and what the contract counted.
    pub(crate) fn is_cut(&self) -> bool {
        !self.faults.is_empty() && !self.is_watched && self.contract.is_empty()
    }

    /// Whether the contract was violated: an event says so, or the tally of a class that the thread is held to. For the
    /// exit status.
    pub(crate) fn is_violated(&self) -> bool {
        let is_held = |row: &NamedTally| {
            let of_place = |thread: &&ContractThread| thread.slot == row.tally.slot && thread.is_hot();
            self.contract.iter().find(of_place).is_some_and(|thread| thread.held.contains(&row.tally.class))
        };
        self.violations.iter().any(Violation::is_real)
            || self.tallies.iter().any(|row| row.unexcused() > 0 && is_held(row))
    }

    /// Whether a budget can judge it: it was watched from outside, or entered its steady state. Only from that it goes on to the
    /// teardown.
    pub(crate) fn is_judged(&self) -> bool {
        let phase = self.phase.iter().map(|phase| &phase.phase);
        let mut phases = phase.chain(self.phases.iter().map(|change| &change.to));
        self.is_watched || phases.any(|phase| phase == STEADY || phase == "Teardown")
    }

    /// The name of a thread, or its number as text.
    pub(crate) fn thread_name(&self, thread: u32) -> String {
        self.names.get(&thread).cloned().unwrap_or_else(|| thread.to_string())
    }

    /// Leaves out samples and threads that are not known to be under the contract.
    pub(crate) fn keep_hot(&mut self) {
        self.sites.retain(|site| site.is_hot);
        self.stacks.retain(|stack| stack.is_hot);
        self.threads
            .retain(|thread| u32::try_from(thread.thread).is_ok_and(|number| self.hot.contains(&number)));
    }
}

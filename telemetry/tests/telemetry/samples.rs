//! What another process makes of samples is what the program makes of them (design/telemetry.md
//! `.samples`).

use std::sync::Barrier;
use std::thread;

use tripoint_core::{Addr, EventHook, PoolId};
use tripoint_oracle::NaiveFile;
use tripoint_telemetry::format::{EntryState, EventKind, OTHER_POOLS, SampleWord, SectionKind};
use tripoint_telemetry::reader::{Item, Reader, RecordedSample, Start};
use tripoint_telemetry::{
    Confidence, Estimate, Groups, Interval, Mean, ObjectKind, Room, Sample, SampledObject, Stream, Trials,
    Window,
};

use crate::decoder::InMemory;
use crate::estimates::{By, show};

const MEAN: Mean = Mean::new(1000).unwrap();

const KINDS: [ObjectKind; 4] = [ObjectKind::Small, ObjectKind::Large, ObjectKind::Direct, ObjectKind::Global];

const TYPES: [Option<&str>; 3] = [None, Some("Order"), Some("Level")];

/// An object of the `number`-th allocation, and the frames of its site.
fn object(number: usize, sample: Sample) -> (SampledObject, [usize; 2]) {
    let known = SampledObject::new(KINDS[number % 4], Addr::new(0x1000 + 16 * number), sample);
    let pool = (known.kind != ObjectKind::Global).then(|| PoolId::new(2 + number as u32 % 2).unwrap());
    let class = pool.map(|pool| if pool.get() == 2 { "MVFF" } else { "SNC" });
    (SampledObject { pool, class, type_name: TYPES[number % 3], ..known }, [0xc0de + number % 5, 7])
}

/// Draws objects until `samples` are sampled, and reports these.
fn report_samples(hook: &dyn EventHook, samples: usize) -> Vec<(SampledObject, [usize; 2])> {
    let mut trials = Trials::new(Stream::new(0x5a3, 0), MEAN);
    let drawn =
        (0..).filter_map(|number| Some(object(number, trials.allocate(8 + number as u64 * 37 % 500)?)));
    let drawn: Vec<_> = drawn.take(samples).collect();
    drawn.iter().for_each(|(object, site)| hook.event_at(object.event(), site));
    drawn
}

fn reader(memory: &InMemory) -> Reader {
    Reader::from_bytes(memory.file().bytes()).unwrap()
}

/// The samples that can be read, and how many events were missed.
fn read_samples(reader: &Reader) -> (Vec<RecordedSample>, u64) {
    let (mut samples, mut missed) = (Vec::new(), 0);
    let mut events = reader.events(Start::Oldest);
    while let Some(item) = events.poll() {
        match item {
            Item::Event(event) => samples.push(event.sample().expect("nothing else was reported")),
            Item::Gap(gap) => missed += gap.count,
        }
    }
    (samples, missed)
}

fn estimate<'s>(samples: impl Iterator<Item = &'s Sample>) -> Estimate {
    let mut estimate = Estimate::new(MEAN);
    samples.for_each(|sample| estimate.add(sample));
    estimate
}

/// The estimates of all groups are the same, whatever stands for their keys there and here.
fn assert_same_groups<T, K: Copy + Eq, U, L: Copy + Eq>(
    here: &[T],
    there: &[U],
    key_here: impl Fn(&T) -> (K, Sample),
    key_there: impl Fn(&U) -> (L, Sample),
) {
    let (mut ours, mut theirs) = (Groups::<K, 32>::new(MEAN), Groups::<L, 32>::new(MEAN));
    here.iter().map(key_here).for_each(|(key, sample)| ours.add(key, &sample));
    there.iter().map(key_there).for_each(|(key, sample)| theirs.add(key, &sample));
    let (ours, theirs): (Vec<_>, Vec<_>) =
        (ours.iter().map(|(_, group)| *group).collect(), theirs.iter().map(|(_, group)| *group).collect());
    assert!(ours.len() > 1, "more than one group");
    assert_eq!(ours, theirs);
    for (one, other) in ours.iter().zip(&theirs) {
        let [one, other] = [one, other].map(|group| group.limits(Confidence::PERCENT_95, Window::ANY));
        assert_eq!(one, other);
        assert!(one.is_ok());
    }
}

#[test]
fn a_reader_finds_all_that_the_program_knows_of_a_sample() {
    let memory = InMemory::new(&Room { ring_bytes: 256 << 10, ..Room::LEAST });
    let reported = report_samples(&memory.telemetry.arena_hook(), 300);
    let (read, missed) = read_samples(&reader(&memory));
    assert_eq!((read.len(), missed), (300, 0));
    for (read, (object, site)) in read.iter().zip(&reported) {
        assert_eq!((read.sample, read.kind), (object.sample, Some(object.kind)));
        assert_eq!(read.object, object.object.get() as u64);
        assert_eq!((read.thread, read.arena), (object.thread, 1));
        assert_eq!(read.pool, object.pool.map(|pool| pool.get().into()));
        assert_eq!(read.class.as_str(), Some(object.class.unwrap_or("")));
        assert_eq!(read.type_name.as_str(), Some(object.type_name.unwrap_or("")));
        assert!(read.site.as_slice().iter().eq(site.map(|frame| frame as u64).iter()));
        assert_eq!(read.size_class(), object.size_class());
    }
    let (here, there) = (&reported[..], &read[..]);
    assert_same_groups(here, there, |(o, _)| (o.type_name, o.sample), |r| (r.type_name, r.sample));
    assert_same_groups(here, there, |(o, site)| (*site, o.sample), |r| (r.site, r.sample));
    assert_same_groups(here, there, |(o, _)| (o.size_class(), o.sample), |r| (r.size_class(), r.sample));
    assert_same_groups(here, there, |(o, _)| (o.pool, o.sample), |r| (r.pool, r.sample));
    assert_same_groups(here, there, |(o, _)| (o.kind, o.sample), |r| (r.kind, r.sample));
}

/// The ring keeps few of the events. The sums have all of them, to the last digit; what is read and
/// what was missed are all as well, so a reader knows that an estimate of these events alone is too
/// low.
#[test]
fn sums_are_complete_when_the_ring_was_lapped() {
    let memory = InMemory::new(&Room { pools: 4, ..Room::LEAST });
    let count = 2000;
    let reported = report_samples(&memory.telemetry.arena_hook(), count);
    let reader = reader(&memory);
    let (read, missed) = read_samples(&reader);
    assert!(missed > 0 && !read.is_empty());
    assert_eq!(read.len() as u64 + missed, count as u64);

    let samples = reader.counters().unwrap().samples;
    assert_eq!((samples.entries.len(), samples.left_out, samples.unsteady), (3, 0, 0));
    for pool in &samples.entries {
        let of_pool = reported.iter().filter(|(o, _)| o.pool.map_or(0, |p| u64::from(p.get())) == pool.pool);
        assert_eq!(pool.estimate, estimate(of_pool.map(|(object, _)| &object.sample)));
        let class = ["", "", "MVFF", "SNC"][pool.pool as usize];
        assert_eq!((pool.class.as_str(), pool.arena), (Some(class), 1));
    }
    let (total, all) = (samples.total().unwrap(), estimate(reported.iter().map(|(o, _)| &o.sample)));
    assert_eq!((total.samples(), total.bytes_by_trials()), (all.samples(), all.bytes_by_trials()));
    assert!((total.bytes() / all.bytes() - 1.0).abs() < 1e-12);
    assert!((total.standard_error() / all.standard_error() - 1.0).abs() < 1e-12);
    let limits = |estimate: &Estimate| estimate.limits(Confidence::PERCENT_95, Window::ANY).unwrap();
    assert_eq!(limits(&total), limits(&all));
    // The control: events alone are not enough.
    assert!(estimate(read.iter().map(|read| &read.sample)).bytes() < limits(&all).low as f64);
}

#[test]
fn sums_need_no_event_and_no_entry_of_their_own() {
    let memory = InMemory::new(&Room::LEAST);
    memory.telemetry.switches().switch(EventKind::Sample, false);
    let reported = report_samples(&memory.telemetry.arena_hook(), 200);
    let reader = reader(&memory);
    assert_eq!(read_samples(&reader), (vec![], 0));
    let samples = reader.counters().unwrap().samples;
    let [own, others] = samples.entries[..] else { panic!("{samples:?}") };
    assert_eq!((others.arena, others.pool), (OTHER_POOLS, OTHER_POOLS));
    assert!(own.pool != OTHER_POOLS && samples.left_out > 0);
    assert_eq!(samples.total().unwrap().samples(), reported.len() as u64);
    assert_eq!(memory.file().left_out(SectionKind::Samples), samples.left_out);
}

#[test]
fn samples_with_another_mean_are_added_up_without_exact_limits() {
    let memory = InMemory::new(&Room::LEAST);
    for mean in [MEAN, Mean::EVERY_BYTE, MEAN] {
        let sample = Sample::new(64, 3, mean).unwrap();
        memory.telemetry.event(SampledObject::new(ObjectKind::Global, Addr::new(16), sample).event());
    }
    let total = reader(&memory).counters().unwrap().samples.total().unwrap();
    assert_eq!(total.samples(), 3);
    assert!(total.limits(Confidence::PERCENT_95, Window::ANY).is_err());
}

/// No addition of a thread is lost to that of another, also of their first samples.
#[test]
fn threads_add_to_the_same_sums() {
    const THREADS: usize = 4;
    let samples = if cfg!(miri) { 20 } else { 5000 };
    let memory = InMemory::new(&Room { threads: 2, pools: 8, ..Room::LEAST });
    let together = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                together.wait();
                for number in 0..samples {
                    let sample = Sample::new(1 + number as u64 % 64, 0, Mean::EVERY_BYTE).unwrap();
                    memory.telemetry.event(object(number, sample).0.event());
                }
            });
        }
    });
    let table = reader(&memory).counters().unwrap().samples;
    let total = table.total().unwrap();
    // All are whole numbers, so sums are exact in any order.
    let bytes: usize = (0..samples).map(|number| 1 + number % 64).sum();
    assert_eq!(total.bytes(), (THREADS * bytes) as f64);
    assert_eq!((total.samples(), total.objects()), ((THREADS * samples) as u64, (THREADS * samples) as f64));
    assert_eq!(table.entries.iter().map(|pool| pool.pool).collect::<Vec<_>>(), [0, 2, 3], "each pool once");
}

/// Threads that took an entry of one pool each are added up, and words that no writer writes are left
/// out.
#[test]
fn sums_of_samples_are_checked() {
    let entry = |pool: u64, bytes: f64, mean: u64| {
        let mut entry = [0; 16];
        entry[SampleWord::State as usize] = EntryState::Live as u64;
        for (word, value) in [
            (SampleWord::Arena, 1),
            (SampleWord::Pool, pool),
            (SampleWord::Samples, 2),
            (SampleWord::Bytes, bytes.to_bits()),
            (SampleWord::Objects, 4.0_f64.to_bits()),
            (SampleWord::Trials, 5),
            (SampleWord::Rest, 6),
            (SampleWord::Mean, mean),
        ] {
            entry[word as usize] = value;
        }
        entry
    };
    let mut file = NaiveFile::new(1, 2);
    let empty = [EntryState::Live as u64; 1].into_iter().chain([0; 15]).collect::<Vec<_>>();
    file.tables[4] = vec![
        entry(3, 100.0, 7),
        entry(3, 50.0, 7),
        entry(4, 1.0, 8),
        entry(5, f64::NAN, 8),
        entry(6, f64::INFINITY, 8),
        entry(7, -1.0, 8),
        entry(8, 1.0, 0),
        entry(9, 1.0, u64::MAX),
        empty.try_into().unwrap(),
    ];
    let counters = Reader::from_bytes(file.bytes()).unwrap().counters().unwrap();
    let samples = &counters.samples;
    assert_eq!((samples.entries.len(), samples.unsteady), (2, 5));
    let [third, fourth] = samples.entries[..] else { panic!("{samples:?}") };
    assert_eq!((third.pool, third.estimate.samples(), third.estimate.bytes()), (3, 4, 150.0));
    assert_eq!(third.estimate.bytes_by_trials(), 22);
    assert!(third.estimate.limits(Confidence::PERCENT_95, Window::ANY).is_ok());
    assert_eq!((fourth.pool, fourth.estimate.objects()), (4, 4.0));
    let total = samples.total().unwrap();
    assert_eq!((total.samples(), total.bytes()), (6, 151.0));
    assert!(total.limits(Confidence::PERCENT_95, Window::ANY).is_err(), "two means");
    let shown = counters.to_string();
    let expected = "samples class=\"\" arena=1 pool=3 samples=4 bytes=150 objects=8 standard_error=0";
    assert!(shown.contains(expected), "{shown}");
}

fn shown(reader: &Reader, by: By) -> String {
    let mut text = Vec::new();
    show(reader, by, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The numbers of a row, without its name.
fn numbers<'s>(shown: &'s str, name: &str) -> Vec<&'s str> {
    let row = shown.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("{name} in {shown}"));
    row.split_whitespace().take(5).collect()
}

/// The example that shows estimates warns of lost samples, and only if there are some.
#[test]
fn the_share_of_samples_that_was_lost_is_said() {
    for (ring_bytes, is_lost) in [(256 << 10, false), (Room::LEAST.ring_bytes, true)] {
        let memory = InMemory::new(&Room { ring_bytes, pools: 4, ..Room::LEAST });
        let reported = report_samples(&memory.telemetry.arena_hook(), 600);
        let reader = reader(&memory);
        let all = estimate(reported.iter().map(|(object, _)| &object.sample));
        let read = read_samples(&reader).0.len();
        assert_eq!(read < 600, is_lost);
        for by in ["type", "site", "size", "thread"] {
            let shown = shown(&reader, By::from_name(by).unwrap());
            let share = 100.0 * (600 - read) as f64 / 600.0;
            let warning =
                format!("WARNING: the events of {} of 600 samples ({share:.1} %) were lost", 600 - read);
            assert_eq!((shown.contains(&warning), shown.contains("No sample was lost")), (is_lost, !is_lost));
            let bytes = format!("{:.0}", all.bytes());
            assert_eq!(numbers(&shown, "nothing is lost")[0], bytes, "{shown}");
        }
        let orders = |object: &&SampledObject| object.type_name == Some("Order");
        let orders = estimate(reported.iter().map(|(object, _)| object).filter(orders).map(|o| &o.sample));
        let Interval { low, high } = orders.limits(Confidence::PERCENT_95, Window::ANY).unwrap();
        let row = [orders.bytes().round() as u64, low, high].map(|number| number.to_string());
        assert_eq!(numbers(&shown(&reader, By::Type), "Order")[..3] == row, !is_lost);
        let pools = shown(&reader, By::Pool);
        assert!(!pools.contains("lost or") && pools.contains("arena 1 pool 2 MVFF"), "{pools}");
    }
    assert_eq!(By::from_name("colour"), None);
}

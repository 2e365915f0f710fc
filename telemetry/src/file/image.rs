//! The words of a file, divided as planned.

#![forbid(unsafe_code)]

use tripoint_core::internal::{AtomicU64, Ordering, fence};

use crate::clock::Clock;
#[cfg(tripoint_on_linux)]
use crate::file::objects::ObjectTable;
use crate::file::plan::Plan;
use crate::file::table::{Entry, Table};
use crate::format::{
    BYTE_ORDER, FileState, HEADER_WORDS, HeaderFlags, HeaderWord, MAGIC, OTHER_POOLS, RingState, RingWord,
    SECTION_WORDS, SampleWord, SectionKind, SectionWord, VERSION, WORD_BYTES,
};
use crate::ring::thread_rings::ThreadRings;

/// How many files this process has made.
static FILES: AtomicU64 = AtomicU64::new(0);

/// The parts of a file.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "std"), allow(dead_code, reason = "all threads share one ring then"))]
pub(crate) struct Image<'w> {
    /// The number of the file in this process, not zero. It tells files in the same memory apart.
    number: u64,
    /// A word with this number: zero in a forked child, if the system provides for that.
    instance: &'w AtomicU64,
    header: &'w [AtomicU64; HEADER_WORDS],
    pub(crate) arenas: Table<'w>,
    pub(crate) pools: Table<'w>,
    pub(crate) points: Table<'w>,
    pub(crate) phase: Table<'w>,
    pub(crate) heaps: Table<'w>,
    /// What the contract counts, behind the names of what it counts.
    pub(crate) tallies: &'w [AtomicU64],
    pub(crate) samples: Table<'w>,
    /// The entry of samples of all pools that found none in the table.
    pub(crate) other_samples: Entry<'w>,
    #[cfg(tripoint_on_linux)]
    pub(crate) objects: ObjectTable<'w>,
    pub(crate) extents: Table<'w>,
    rings: RingWords<'w>,
    lasting_rings: RingWords<'w>,
    /// The last rings, of the threads that have none of their own.
    pub(crate) shared_rings: ThreadRings<'w>,
    threads_left_out: &'w AtomicU64,
}

impl<'w> Image<'w> {
    /// Makes a file of these words, which no reader has seen, and writes to all of them. The file is
    /// complete after [`open`](Self::open). `None` if there are fewer words than planned. `parent` is zero in
    /// children that are forked later.
    pub(crate) fn make(words: &'w [AtomicU64], parent: Option<&'w AtomicU64>, plan: &Plan) -> Option<Self> {
        let words = words.get(..plan.words)?;
        words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        let header: &[AtomicU64; HEADER_WORDS] = words.first_chunk()?;
        for (index, section) in plan.sections.iter().enumerate() {
            let set =
                |word, value: usize| section_word(header, index, word).store(value as u64, Ordering::Relaxed);
            set(SectionWord::Kind, section.kind as usize);
            set(SectionWord::Offset, section.start * WORD_BYTES);
            set(SectionWord::Entries, section.entries);
            set(SectionWord::EntryBytes, section.entry_words * WORD_BYTES);
        }
        let place = |kind: SectionKind| {
            let index = plan.sections.iter().position(|section| section.kind == kind)?;
            let section = plan.sections[index];
            let words = words.get(section.start..section.start + section.words())?;
            Some((words, section.entry_words, section_word(header, index, SectionWord::LeftOut)))
        };
        let (samples, _, samples_left_out) = place(SectionKind::Samples)?;
        let (other_samples, samples) = samples.split_first_chunk()?;
        let table = |kind| place(kind).map(|(words, _, left_out)| Table::new(words, left_out));
        #[cfg(tripoint_on_linux)]
        let (objects, _, objects_left_out) = place(SectionKind::Objects)?;
        let (rings, ring_words, threads_left_out) = place(SectionKind::Rings)?;
        let (rings, shared) = RingWords { words: rings, of_each: ring_words }.split_last()?;
        let (lasting_rings, ring_words, _) = place(SectionKind::LastingRings)?;
        let lasting_rings = RingWords { words: lasting_rings, of_each: ring_words };
        let (lasting_rings, shared_lasting) = lasting_rings.split_last().unwrap_or((lasting_rings, shared));
        let number = FILES.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let instance = parent.unwrap_or(&header[HeaderWord::Instance as usize]);
        instance.store(number, Ordering::Relaxed);
        let image = Self {
            number,
            instance,
            header,
            arenas: table(SectionKind::Arenas)?,
            pools: table(SectionKind::Pools)?,
            points: table(SectionKind::Points)?,
            phase: table(SectionKind::Phase)?,
            heaps: table(SectionKind::Heaps)?,
            tallies: place(SectionKind::Tallies)?.0,
            samples: Table::new(samples, samples_left_out),
            other_samples: Entry::new(other_samples),
            #[cfg(tripoint_on_linux)]
            objects: ObjectTable::new(objects, objects_left_out),
            extents: table(SectionKind::Extents)?,
            rings,
            lasting_rings,
            shared_rings: ThreadRings::new(shared, shared_lasting)?,
            threads_left_out,
        };
        image.set(HeaderWord::Instance, number);
        image.other_samples.renew(|entry| {
            entry.set(SampleWord::Arena as usize, OTHER_POOLS);
            entry.set(SampleWord::Pool as usize, OTHER_POOLS);
        });
        image.set(HeaderWord::FileBytes, (plan.words * WORD_BYTES) as u64);
        image.set(HeaderWord::Sections, plan.sections.len() as u64);
        image
            .shared_rings
            .recent
            .words()
            .word(RingWord::State)
            .store(RingState::Shared as u64, Ordering::Relaxed);
        Some(image)
    }

    /// Completes the header. Readers may read from here on.
    pub(crate) fn open(&self, process: u64, identity: u64, clock: &Clock, flags: HeaderFlags) {
        // First what tells a reader whose file is being made: to measure the clock takes a while.
        self.set(HeaderWord::Process, process);
        self.set(HeaderWord::Identity, identity);
        self.set(HeaderWord::Version, VERSION);
        self.set(HeaderWord::ByteOrder, BYTE_ORDER);
        self.set(HeaderWord::Magic, u64::from_ne_bytes(MAGIC));
        let anchor = clock.anchor();
        self.set(HeaderWord::PointerBytes, size_of::<usize>() as u64);
        self.set(HeaderWord::Flags, flags.bits());
        self.set(HeaderWord::Clock, clock.kind() as u64);
        self.set(HeaderWord::AnchorTicks, anchor.ticks);
        self.set(HeaderWord::AnchorNanoseconds, anchor.nanoseconds);
        self.set(HeaderWord::AnchorUnix, anchor.unix);
        self.set(HeaderWord::SpanTicks, anchor.span_ticks);
        self.set(HeaderWord::SpanNanoseconds, anchor.span_nanoseconds);
        self.state().store(FileState::Open as u64, Ordering::Release);
    }

    /// Marks the file as closed: nothing changes any more.
    pub(crate) fn close(&self) {
        fence(Ordering::Release);
        self.state().store(FileState::Closed as u64, Ordering::Relaxed);
    }

    /// The number of the file in this process.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// A word with the file's number, which is zero in a forked child if the system provides for that.
    #[inline]
    pub(crate) fn instance(&self) -> &'w AtomicU64 {
        self.instance
    }

    /// The word that says whether the file is open.
    #[inline]
    pub(crate) fn state(&self) -> &'w AtomicU64 {
        &self.header[HeaderWord::State as usize]
    }

    fn set(&self, word: HeaderWord, value: u64) {
        self.header[word as usize].store(value, Ordering::Relaxed);
    }

    /// The rings that threads may claim.
    #[cfg(any(feature = "std", test))]
    pub(crate) fn rings(&self) -> impl Iterator<Item = ThreadRings<'w>> {
        let lasting_rings = self.lasting_rings;
        let of_thread = move |(index, recent)| {
            ThreadRings::new(recent, lasting_rings.each().nth(index).unwrap_or(recent))
        };
        self.rings.each().enumerate().filter_map(of_thread)
    }

    /// Counts a thread that found no ring of its own.
    #[cfg(feature = "std")]
    pub(crate) fn leave_out_thread(&self) {
        self.threads_left_out.fetch_add(1, Ordering::Relaxed);
    }
}

/// The words of rings of one size.
#[derive(Clone, Copy, Debug)]
struct RingWords<'w> {
    words: &'w [AtomicU64],
    of_each: usize,
}

impl<'w> RingWords<'w> {
    /// All but the last, and the words of the last; `None` if there are none.
    fn split_last(self) -> Option<(Self, &'w [AtomicU64])> {
        let (words, last) = self.words.split_at_checked(self.words.len().checked_sub(self.of_each)?)?;
        Some((Self { words, ..self }, last))
    }

    #[cfg(any(feature = "std", test))]
    fn each(self) -> impl Iterator<Item = &'w [AtomicU64]> {
        self.words.chunks_exact(self.of_each)
    }
}

/// A word of an entry in the table of sections.
fn section_word(header: &[AtomicU64; HEADER_WORDS], section: usize, word: SectionWord) -> &AtomicU64 {
    &header[HeaderWord::SectionTable as usize + section * SECTION_WORDS + word as usize]
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::file::plan::Room;

    #[test]
    fn the_header_says_where_everything_is() {
        let room = Room { threads: 2, ..Room::LEAST };
        let plan = Plan::new(&room).unwrap();
        let words: Vec<_> = (0..plan.words).map(|_| AtomicU64::new(!0)).collect();
        assert!(Image::make(&words[1..], None, &plan).is_none(), "a word is missing");
        let image = Image::make(&words, None, &plan).unwrap();
        let at = |word: usize| words[word].load(Ordering::Relaxed);
        assert_eq!(at(HeaderWord::State as usize), FileState::Making as u64);
        image.open(7, 8, &Clock::new(|| 5), HeaderFlags::PREFAULTED);
        assert_eq!(at(0).to_ne_bytes(), MAGIC);
        assert_eq!(at(HeaderWord::State as usize), FileState::Open as u64);
        assert_eq!(at(HeaderWord::Process as usize), 7);
        assert_eq!(at(HeaderWord::Identity as usize), 8);
        assert_eq!(at(HeaderWord::AnchorTicks as usize), 5);
        let mut end = HEADER_WORDS as u64 * 8;
        for section in 0..at(HeaderWord::Sections as usize) as usize {
            let entry = HeaderWord::SectionTable as usize + section * SECTION_WORDS;
            let [kind, offset, entries, bytes] = [0, 1, 2, 3].map(|word| at(entry + word));
            assert!(SectionKind::from_number(kind).is_some() && offset >= end && offset % 4096 == 0);
            end = offset + entries * bytes;
        }
        assert!(end <= at(HeaderWord::FileBytes as usize));
        assert_eq!(image.rings().count(), 2);
        assert_eq!(image.shared_rings.recent.words().word(RingWord::State).load(Ordering::Relaxed), 2);
        image.close();
        assert_eq!(at(HeaderWord::State as usize), FileState::Closed as u64);
    }
}

//! Text: lines of eight words, in objects without references. The words and the text of the last lines are kept.

use core::alloc::Layout;
use core::cell::RefCell;
use core::ptr::NonNull;

use benches::random::Random;
use boa_gc::{Finalize, Gc as BoaGc, GcRefCell, Trace as BoaTrace};
use dumpster::unsync::Gc as DumpsterGc;
use gc_arena::metrics::Pacing;
use gc_arena::{Arena, Collect, Gc as ArenaGc, RefLock, Rootable};
use tripoint::gc::{Gc, Heap, Link, Rooted, SweptOptions, TypedObjects, object_types};
use tripoint::{Error, Store};

use crate::Contender;
use crate::contenders::contenders;
use crate::run::{Laps, Size};
use crate::trees::heap;
use crate::trees::memory::arena;

pub(crate) const CONTENDERS: &[Contender] = contenders!(typed, manual, gc_arena, boa_gc, dumpster);

/// The lines that are kept.
const KEPT: usize = 1 << 14;
/// The lines that are made.
const LINES: usize = 1 << 19;
/// The lines in a lap.
const LAP: usize = 16;
/// The words of a line.
const WORDS: usize = 8;

/// A line that is about to be stored: its text, and where its words end in it.
struct Draft {
    text: String,
    ends: [usize; WORDS],
}

impl Draft {
    fn draw(&mut self, random: &mut Random) {
        self.text.clear();
        for end in &mut self.ends {
            for _ in 0..3 + random.below(8) {
                self.text.push((b'a' + random.below(26) as u8).into());
            }
            *end = self.text.len();
            self.text.push(' ');
        }
    }

    fn word(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] + 1);
        &self.text[start..self.ends[index]]
    }
}

/// What a line comes to: its last word is compared with the end of its text.
fn sum(text: &str, last: &str) -> u64 {
    assert!(text.trim_end().ends_with(last));
    text.len() as u64 * 31 + u64::from(last.as_bytes()[0])
}

/// Calls `store` with the place and the draft of each line, which returns the sum of the line that it replaced.
/// `lap` is called at the end of each lap.
fn drive<S>(
    size: Size,
    laps: &mut Laps,
    state: &mut S,
    mut lap: impl FnMut(&mut S, &[(usize, Draft)]) -> u64,
) -> u64 {
    let (mut random, mut sum) = (Random(42), 0_u64);
    let kept = size.of(KEPT);
    let mut drafts: [(usize, Draft); LAP] =
        core::array::from_fn(|_| (0, Draft { text: String::new(), ends: [0; WORDS] }));
    for first in (0..size.of(LINES)).step_by(LAP) {
        for (index, (place, draft)) in drafts.iter_mut().enumerate() {
            *place = (first + index) % kept;
            draft.draw(&mut random);
        }
        sum = sum.wrapping_add(lap(state, &drafts));
        laps.lap();
    }
    sum
}

object_types! {
    struct TypedLine<'g> {
        text: Gc<'g, str>,
        words: [Gc<'g, str>; WORDS],
    }
}

fn typed(size: Size, laps: &mut Laps) -> u64 {
    let arena = arena().expect("an arena");
    let heap = Heap::create(&arena, heap()).expect("a heap");
    let objects = TypedObjects::create(&heap, SweptOptions::default()).expect("pools");
    let mut mutator = objects.register().expect("a mutator");
    let lines = mutator.enter(|inside| {
        objects.root(inside, inside.slice(size.of(KEPT), |_| Link::<TypedLine<'_>>::default())?)
    });
    let lines: Rooted<'_, [Link<'static, TypedLine<'static>>]> = lines.expect("memory");
    drive(size, laps, &mut mutator, |mutator, drafts| {
        let found = mutator.enter(|inside| {
            let (lines, mut found) = (lines.get(inside)?, 0);
            for (place, draft) in drafts {
                let text = inside.text(&draft.text)?;
                let mut words = [text; WORDS];
                for (index, word) in words.iter_mut().enumerate() {
                    *word = inside.text(draft.word(index))?;
                }
                found += lines[*place].get().map_or(0, |old| sum(&old.text, &old.words[WORDS - 1]));
                lines[*place].set(inside, inside.alloc(TypedLine { text, words })?);
            }
            Ok::<u64, Error>(found)
        });
        found.expect("memory")
    })
}

/// A text in a store: its length, and behind that its bytes.
#[derive(Clone, Copy)]
struct Text(NonNull<usize>);

impl Text {
    fn layout(length: usize) -> Layout {
        Layout::from_size_align(size_of::<usize>() + length, align_of::<usize>()).expect("a text that fits")
    }

    fn make(store: &impl Store, text: &str) -> Self {
        let place = store.alloc(Self::layout(text.len())).expect("memory").cast::<usize>();
        // SAFETY: room for the length and the bytes was just allocated.
        unsafe {
            place.write(text.len());
            place.add(1).cast::<u8>().copy_from_nonoverlapping(NonNull::from(text).cast(), text.len());
        }
        Self(place)
    }

    /// # Safety
    /// - The text was made, and is not freed as long as the result is used.
    unsafe fn get<'t>(self) -> &'t str {
        // SAFETY: `make` wrote the length, and as many bytes behind it, which are those of a text.
        unsafe {
            let length = self.0.read();
            let bytes = core::slice::from_raw_parts(self.0.add(1).cast::<u8>().as_ptr(), length);
            core::str::from_utf8_unchecked(bytes)
        }
    }

    /// # Safety
    /// - The text was made in this store, and is not used afterwards.
    unsafe fn free(self, store: &impl Store) {
        // SAFETY: it is a text.
        let layout = Self::layout(unsafe { self.0.read() });
        // SAFETY: it came from this store, with this layout.
        unsafe { store.free(self.0.cast(), layout) };
    }
}

struct Line {
    text: Text,
    words: [Text; WORDS],
}

fn manual(nodes: &impl Store, leaves: &impl Store, size: Size, laps: &mut Laps) -> u64 {
    let count = size.of(KEPT);
    // In memory of the store, because a collector has to find it.
    let table = Layout::array::<Option<NonNull<Line>>>(count).expect("a table that fits");
    let mut lines = nodes.alloc(table).expect("memory").cast::<Option<NonNull<Line>>>();
    for place in 0..count {
        // SAFETY: the table has room for `count` lines.
        unsafe { lines.add(place).write(None) };
    }
    drive(size, laps, &mut lines, |lines, drafts| {
        let mut found = 0;
        for (place, draft) in drafts {
            let text = Text::make(leaves, &draft.text);
            let words = core::array::from_fn(|index| Text::make(leaves, draft.word(index)));
            let line = nodes.alloc(Layout::new::<Line>()).expect("memory").cast::<Line>();
            // SAFETY: room for the line was just allocated.
            unsafe { line.write(Line { text, words }) };
            // SAFETY: the table has `count` places, all of them written.
            let place = unsafe { lines.add(*place).as_mut() };
            let Some(old) = place.replace(line) else { continue };
            // SAFETY: a line in the table was not freed, nor were its texts, which only it led to. All came from these
            // stores.
            unsafe {
                let Line { text, words } = old.read();
                found += sum(text.get(), words[WORDS - 1].get());
                text.free(leaves);
                words.into_iter().for_each(|word| word.free(leaves));
                nodes.free(old.cast(), Layout::new::<Line>());
            }
        }
        found
    })
}

#[derive(Collect)]
#[collect(no_drop)]
struct ArenaLine<'gc> {
    text: ArenaGc<'gc, Box<str>>,
    words: [ArenaGc<'gc, Box<str>>; WORDS],
}

type ArenaLines<'gc> = RefLock<Vec<Option<ArenaGc<'gc, ArenaLine<'gc>>>>>;

fn gc_arena(pacing: Pacing, size: Size, laps: &mut Laps) -> u64 {
    let mut arena = Arena::<Rootable![ArenaGc<'_, ArenaLines<'_>>]>::new(|context| {
        ArenaGc::new(context, RefLock::new(vec![None; size.of(KEPT)]))
    });
    arena.metrics().set_pacing(pacing);
    drive(size, laps, &mut arena, |arena, drafts| {
        let found = arena.mutate(|context, lines| {
            let (mut lines, mut found) = (lines.borrow_mut(context), 0);
            for (place, draft) in drafts {
                let text = ArenaGc::new(context, draft.text.as_str().into());
                let words = core::array::from_fn(|index| ArenaGc::new(context, draft.word(index).into()));
                let line = ArenaGc::new(context, ArenaLine { text, words });
                let old = lines[*place].replace(line);
                found += old.map_or(0, |old| sum(&old.text, &old.words[WORDS - 1]));
            }
            found
        });
        arena.collect_debt();
        found
    })
}

#[derive(BoaTrace, Finalize)]
struct BoaLine {
    text: BoaGc<Box<str>>,
    words: [BoaGc<Box<str>>; WORDS],
}

#[derive(dumpster::Trace)]
struct DumpsterLine {
    text: DumpsterGc<str>,
    words: [DumpsterGc<str>; WORDS],
}

/// Does the work with a cell of a collector, whose texts `$make_text` makes.
macro_rules! replace_in_cell {
    ($run:ident, $Line:ident, $Gc:ident, $Cell:ident, $make_text:expr) => {
        fn $run(size: Size, laps: &mut Laps) -> u64 {
            let empty = (0..size.of(KEPT)).map(|_| None::<$Gc<$Line>>).collect::<Vec<_>>();
            let mut lines = $Gc::new($Cell::new(empty));
            drive(size, laps, &mut lines, |lines, drafts| {
                let mut found = 0;
                for (place, draft) in drafts {
                    let text = $make_text(draft.text.as_str());
                    let words = core::array::from_fn(|index| $make_text(draft.word(index)));
                    let line = $Gc::new($Line { text, words });
                    let old = lines.borrow_mut()[*place].replace(line);
                    found += old.map_or(0, |old| sum(&old.text, &old.words[WORDS - 1]));
                }
                found
            })
        }
    };
}

replace_in_cell!(boa_gc, BoaLine, BoaGc, GcRefCell, |text: &str| BoaGc::new(text.into()));
replace_in_cell!(dumpster, DumpsterLine, DumpsterGc, RefCell, DumpsterGc::from);

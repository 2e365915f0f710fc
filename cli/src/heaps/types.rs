//! Types of objects: sizes, names, and where references lie (design/inspection.md `.types`, `.formats`).

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::heaps::layout::{KindOutline, PoolOutline, TYPED, TypeOutline, structure, text};
use crate::memory::Memory;

/// No program has more types, no type more parts or a longer name, and none is larger.
const MOST_TYPES: usize = 1 << 16;
const MOST_PARTS: u64 = 1 << 12;
const MOST_NAME: u64 = 1 << 10;
const MOST_KINDS: u64 = 1 << 12;
const MOST_SIZE: u64 = 1 << 47;

/// No type has parts in parts of more storeys.
const MOST_DEPTH: usize = 64;

/// How a reference keeps what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    Strong,
    /// It keeps nothing.
    Weak,
    /// It is not known whether the word is a reference.
    Perhaps,
}

/// Where the references of a value lie.
#[derive(Debug)]
enum Shape {
    /// Nowhere. Only these have less than a word.
    Leaf,
    One(Reference),
    /// In this many words, each of which may be one.
    Words(u64),
    /// In parts, by their offsets. They do not overlap.
    Parts(Vec<(u64, Rc<Known>)>),
    Items {
        step: u64,
        count: u64,
        item: Rc<Known>,
    },
}

/// A type, as its outline describes it.
#[derive(Debug)]
struct Known {
    name: String,
    size: u64,
    align: u64,
    shape: Shape,
    /// How many storeys of parts it has.
    depth: usize,
}

/// Where values of a type begin in an object, in bytes from its base, and to how many bytes they are aligned.
#[derive(Debug)]
struct Placed {
    offset: u64,
    align: u64,
    known: Rc<Known>,
}

impl Placed {
    fn beginning(&self, base: u64) -> Option<u64> {
        base.checked_add(self.offset)?.checked_next_multiple_of(self.align)
    }
}

/// The items of an object. How many there are is in a word at an offset, shifted.
#[derive(Debug)]
struct Items {
    count: u64,
    shift: u32,
    size: u64,
    /// `None` if they have no references.
    placed: Option<Placed>,
}

impl Items {
    fn length(&self, memory: &dyn Memory, base: u64) -> Option<u64> {
        Some(memory.word_at(base, self.count)? >> self.shift)
    }
}

/// A type of objects.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) name: String,
    /// The bytes without items, header included.
    fixed: u64,
    /// Sizes are multiples of this.
    align: u64,
    value: Option<Placed>,
    items: Option<Items>,
    /// Which bits of a reference are its tag, and what these are.
    tag: (u64, u64),
}

/// The types of a heap.
#[derive(Debug, Default)]
pub(super) struct Types {
    types: Vec<Type>,
    /// By pool and by what objects say of their type: the address of a table, or their kind. `None` for what is no type.
    known: HashMap<(u64, u64), Option<usize>>,
    outlines: HashMap<u64, Option<Rc<Known>>>,
}

impl Types {
    pub(super) fn get(&self, index: usize) -> &Type {
        &self.types[index]
    }

    /// The type of the object at an address, which is aligned as its format says; `None` if no object can be there.
    pub(super) fn of_object(
        &mut self,
        memory: &dyn Memory,
        pool: &PoolOutline,
        align: u64,
        base: u64,
    ) -> Option<usize> {
        let is_typed = pool.form == TYPED;
        let key = match is_typed {
            true => memory.word_at(base, 0).filter(|table| table % memory.word() as u64 == 0)?,
            false => memory.word_at(base, pool.first)? & pool.second,
        };
        // All pools of typed objects have the same tables.
        let owner = if is_typed { 0 } else { pool.id };
        if let Some(known) = self.known.get(&(owner, key)) {
            return *known;
        }
        let found = match self.types.len() < MOST_TYPES {
            true if is_typed => self.of_table(memory, pool, key),
            true => of_kind(memory, pool, align, key),
            false => None,
        };
        let index = found.map(|found| {
            self.types.push(found);
            self.types.len() - 1
        });
        self.known.insert((owner, key), index);
        index
    }

    /// The type with a table at an address.
    fn of_table(&mut self, memory: &dyn Memory, pool: &PoolOutline, table: u64) -> Option<Type> {
        let PoolOutline { first, second, third, fourth, fifth, sixth, seventh: header, .. } = *pool;
        let read = |offset| memory.word_at(table, offset);
        let (fixed, whole, item, align) = (read(first)?, read(second)?, read(third)?, memory.word() as u64);
        let is_table =
            fixed > header && fixed.checked_next_multiple_of(align)? == whole && fixed.max(item) < MOST_SIZE;
        if !is_table {
            return None;
        }
        let (is_traced, contents) = (read(fourth)? != 0, read(fifth)?);
        let known = self.outline(memory, read(sixth)?, &mut HashSet::new())?;
        let name = match &known.name {
            name if name.is_empty() => format!("a type of {} bytes without a name", known.size),
            name => name.clone(),
        };
        let (value_align, known_size) = (known.align.max(align), known.size);
        let placed = |offset| is_traced.then_some(Placed { offset, align: value_align, known });
        let (name, value, items) = match contents {
            0 if known_size <= fixed - header => (name, placed(header), None),
            1 | 2 if item == known_size => {
                let name = if contents == 1 { format!("[{name}]") } else { "str".to_owned() };
                (
                    name,
                    None,
                    Some(Items { count: header, shift: 0, size: item, placed: placed(header + align) }),
                )
            }
            _ => return None,
        };
        Some(Type { name, fixed, align, value, items, tag: (0, 0) })
    }

    /// What is known of a type with an outline at an address. `open` are those in which it is a part: none of them may be a
    /// part of it.
    fn outline(&mut self, memory: &dyn Memory, address: u64, open: &mut HashSet<u64>) -> Option<Rc<Known>> {
        if let Some(known) = self.outlines.get(&address) {
            return known.clone();
        }
        if self.outlines.len() >= MOST_TYPES || open.len() >= MOST_DEPTH || !open.insert(address) {
            return None;
        }
        let found = self.read_outline(memory, address, open).map(Rc::new);
        open.remove(&address);
        self.outlines.insert(address, found.clone());
        found
    }

    fn read_outline(&mut self, memory: &dyn Memory, address: u64, open: &mut HashSet<u64>) -> Option<Known> {
        let outline = structure!(TypeOutline, memory, address)?;
        let TypeOutline { form, size, align, .. } = outline;
        if size >= MOST_SIZE || !align.is_power_of_two() || outline.part_count > MOST_PARTS {
            return None;
        }
        let name = text(memory, outline.name, outline.name_size, MOST_NAME).unwrap_or_default();
        let mut parts = Vec::new();
        for part in 0..outline.part_count {
            let words = memory.words(outline.parts.checked_add(part * 2 * memory.word() as u64)?, 2)?;
            parts.push((words[0], self.outline(memory, words[1], open)?));
        }
        let word = memory.word() as u64;
        let depth = 1 + parts.iter().map(|(_, part)| part.depth).max().unwrap_or(0);
        let words = if size < word { Shape::Leaf } else { Shape::Words(size / word) };
        let (shape, name) = match (form, parts.as_slice()) {
            (0, _) => (Shape::Leaf, name),
            (1, []) if size == word => (Shape::One(Reference::Strong), name),
            (2, []) if size == word => (Shape::One(Reference::Weak), name),
            (3, _) => {
                let names: Vec<_> = parts.iter().map(|(_, part)| part.name.as_str()).collect();
                let name = if name.is_empty() { tuple(&names) } else { name };
                let parts = in_order(parts, size)?;
                (if parts.is_empty() { Shape::Leaf } else { Shape::Parts(parts) }, name)
            }
            (4, [(step, item)]) => {
                let count = size.checked_div(*step).unwrap_or(0);
                if *step < item.size {
                    return None;
                }
                let name = format!("[{}; {count}]", item.name);
                let is_leaf = count == 0 || matches!(item.shape, Shape::Leaf);
                let items = Shape::Items { step: *step, count, item: item.clone() };
                (if is_leaf { Shape::Leaf } else { items }, name)
            }
            (5, [(_, value)]) => (words, format!("{name}<{}>", value.name)),
            (5, _) => (words, name),
            _ => return None,
        };
        // Each look at a value then costs no more than its size.
        let is_bounded = matches!(shape, Shape::Leaf) || size >= word;
        (is_bounded && depth <= MOST_DEPTH).then(|| Known { name: cut(name), size, align, shape, depth })
    }
}

/// The name of a tuple whose parts have these names.
fn tuple(names: &[&str]) -> String {
    let mut name = "(".to_owned();
    for (index, part) in names.iter().enumerate() {
        if name.len() as u64 > MOST_NAME {
            break;
        }
        name.push_str(if index == 0 { "" } else { ", " });
        name.push_str(part);
    }
    name + ")"
}

/// A name, of which what is too long is left out.
fn cut(mut name: String) -> String {
    if name.len() as u64 > MOST_NAME {
        let mut end = MOST_NAME as usize;
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        name.truncate(end);
        name.push('…');
    }
    name
}

/// Parts with references in the order of their offsets; `None` if they overlap, or do not lie in a value of `size` bytes.
fn in_order(parts: Vec<(u64, Rc<Known>)>, size: u64) -> Option<Vec<(u64, Rc<Known>)>> {
    let mut parts: Vec<_> =
        parts.into_iter().filter(|(_, part)| !matches!(part.shape, Shape::Leaf)).collect();
    parts.sort_by_key(|(offset, _)| *offset);
    let mut end = 0;
    for (offset, part) in &parts {
        if *offset < end {
            return None;
        }
        end = offset.checked_add(part.size)?;
    }
    (end <= size).then_some(parts)
}

/// The type of objects of a kind, by the value that their word has.
fn of_kind(memory: &dyn Memory, pool: &PoolOutline, align: u64, value: u64) -> Option<Type> {
    let count = pool.third.min(MOST_KINDS);
    let size = (KindOutline::WORDS * memory.word()) as u64;
    let kinds =
        (0..count).map_while(|index| structure!(KindOutline, memory, pool.kinds.checked_add(index * size)?));
    let kind = kinds.into_iter().find(|kind| kind.value == value)?;
    let name = text(memory, kind.name, kind.name_size, MOST_NAME)?;
    let references = |first: u64, count: u64, size: u64| {
        let offsets = memory.words(first, usize::try_from(count).ok().filter(|_| count <= MOST_PARTS)?)?;
        let one = |offset| {
            let (name, word) = (String::new(), memory.word() as u64);
            let shape = Shape::One(Reference::Strong);
            (offset, Rc::new(Known { name, size: word, align: word, shape, depth: 1 }))
        };
        let parts = in_order(offsets.into_iter().map(one).collect(), size)?;
        let shape = Shape::Parts(parts);
        Some(Rc::new(Known { name: String::new(), size, align: 1, shape, depth: 2 }))
    };
    let placed = |offset, known| Placed { offset, align: 1, known };
    let value = match kind.reference_count {
        0 => None,
        count => Some(placed(0, references(kind.references, count, kind.size)?)),
    };
    let items = match (kind.item, kind.item_reference_count) {
        (0, _) => None,
        (size, 0) => Some((size, None)),
        (size, count) => {
            Some((size, Some(placed(kind.size, references(kind.item_references, count, size)?))))
        }
    };
    let shift = u32::try_from(kind.shift).ok().filter(|shift| *shift < 64)?;
    let items = items.map(|(size, placed)| Items { count: kind.count, shift, size, placed });
    (kind.size < MOST_SIZE && kind.item < MOST_SIZE).then_some(Type {
        name,
        fixed: kind.size,
        align,
        value,
        items,
        tag: (pool.fourth, pool.fifth),
    })
}

impl Type {
    /// The bytes of the object at `base`, header included; `None` if it cannot have that many.
    pub(super) fn size(&self, memory: &dyn Memory, base: u64) -> Option<u64> {
        let items = match &self.items {
            Some(items) => {
                items.size.checked_mul(items.length(memory, base).filter(|_| items.size > 0).unwrap_or(0))?
            }
            None => 0,
        };
        let size = items.checked_add(self.fixed).filter(|size| *size < MOST_SIZE)?;
        size.checked_next_multiple_of(self.align)
    }

    /// Passes each address in the object at `base` that is a reference, or may be one, to `visit`. `None` if not all of the
    /// object is there.
    pub(super) fn for_each_reference(
        &self,
        memory: &dyn Memory,
        base: u64,
        visit: &mut dyn FnMut(u64, Reference),
    ) -> Option<()> {
        let (mask, pattern) = self.tag;
        let mut untag = |word: u64, reference| {
            if word & mask == pattern {
                visit(word & !mask, reference);
            }
        };
        if let Some(value) = &self.value {
            value.known.for_each_reference(memory, value.beginning(base)?, &mut untag)?;
        }
        // Items without a size have no references.
        if let Some(items) = self.items.as_ref().filter(|items| items.size > 0)
            && let Some(placed) = &items.placed
        {
            let first = placed.beginning(base)?;
            for index in 0..items.length(memory, base)? {
                let at = first.checked_add(items.size.checked_mul(index)?)?;
                placed.known.for_each_reference(memory, at, &mut untag)?;
            }
        }
        Some(())
    }
}

impl Known {
    fn for_each_reference(
        &self,
        memory: &dyn Memory,
        at: u64,
        visit: &mut dyn FnMut(u64, Reference),
    ) -> Option<()> {
        match &self.shape {
            Shape::Leaf => {}
            Shape::One(reference) => visit(memory.word_at(at, 0)?, *reference),
            Shape::Words(count) => {
                for index in 0..*count {
                    visit(memory.word_at(at, index * memory.word() as u64)?, Reference::Perhaps);
                }
            }
            Shape::Parts(parts) => {
                for (offset, part) in parts {
                    part.for_each_reference(memory, at.checked_add(*offset)?, visit)?;
                }
            }
            Shape::Items { step, count, item } => {
                for index in 0..*count {
                    item.for_each_reference(memory, at.checked_add(step.checked_mul(index)?)?, visit)?;
                }
            }
        }
        Some(())
    }
}

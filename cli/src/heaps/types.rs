//! Types of typed objects: sizes, names, and where references lie (design/inspection.md `.types`).

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::heaps::layout::{PoolOutline, TypeOutline, read, text};
use crate::memory::Memory;

/// No program has more types, no type more parts or a longer name, and none is larger.
const MOST_TYPES: usize = 1 << 16;
const MOST_PARTS: u64 = 1 << 12;
const MOST_NAME: u64 = 1 << 12;
const MOST_SIZE: u64 = 1 << 47;

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
    /// Nowhere.
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
}

/// What is behind the header of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    Value,
    Items,
}

/// A type of objects.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) name: String,
    contents: Contents,
    fixed: u64,
    whole: u64,
    item: u64,
    header: u64,
    /// `None` if objects of the type have no references.
    traced: Option<Rc<Known>>,
}

/// The types of a heap.
#[derive(Debug, Default)]
pub(super) struct Types {
    types: Vec<Type>,
    /// By the addresses of their tables; `None` for what is no table.
    tables: HashMap<u64, Option<usize>>,
    outlines: HashMap<u64, Option<Rc<Known>>>,
}

impl Types {
    pub(super) fn get(&self, index: usize) -> &Type {
        &self.types[index]
    }

    /// The type with a table at an address; `None` if no table is there.
    pub(super) fn of_table(&mut self, memory: &dyn Memory, pool: &PoolOutline, table: u64) -> Option<usize> {
        if let Some(known) = self.tables.get(&table) {
            return *known;
        }
        let found = if self.types.len() < MOST_TYPES { self.read(memory, pool, table) } else { None };
        let index = found.map(|found| {
            self.types.push(found);
            self.types.len() - 1
        });
        self.tables.insert(table, index);
        index
    }

    fn read(&mut self, memory: &dyn Memory, pool: &PoolOutline, table: u64) -> Option<Type> {
        let word = |offset| memory.word_at(table, offset);
        let (fixed, whole, item) = (word(pool.fixed)?, word(pool.whole)?, word(pool.item)?);
        let is_table = fixed > pool.header
            && fixed.checked_next_multiple_of(memory.word() as u64)? == whole
            && fixed.max(item) < MOST_SIZE;
        if !is_table {
            return None;
        }
        let outline = self.outline(memory, word(pool.outline)?, &mut HashSet::new())?;
        let name = match &outline.name {
            name if name.is_empty() => format!("a type of {} bytes without a name", outline.size),
            name => name.clone(),
        };
        let (contents, name) = match word(pool.contents)? {
            0 => (Contents::Value, name),
            1 => (Contents::Items, format!("[{name}]")),
            2 => (Contents::Items, "str".to_owned()),
            _ => return None,
        };
        if contents == Contents::Items && item != outline.size {
            return None;
        }
        let is_traced = word(pool.trace)? != 0;
        let traced = Some(outline).filter(|_| is_traced);
        Some(Type { name, contents, fixed, whole, item, header: pool.header, traced })
    }

    /// What is known of a type with an outline at an address. `open` are those in which it is a part: none of them may be a
    /// part of it.
    fn outline(&mut self, memory: &dyn Memory, address: u64, open: &mut HashSet<u64>) -> Option<Rc<Known>> {
        if let Some(known) = self.outlines.get(&address) {
            return known.clone();
        }
        if self.outlines.len() >= MOST_TYPES || !open.insert(address) {
            return None;
        }
        let found = self.read_outline(memory, address, open).map(Rc::new);
        open.remove(&address);
        self.outlines.insert(address, found.clone());
        found
    }

    fn read_outline(&mut self, memory: &dyn Memory, address: u64, open: &mut HashSet<u64>) -> Option<Known> {
        let outline = read!(TypeOutline, memory, address)?;
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
        let (shape, name) = match (form, parts.as_slice()) {
            (0, _) => (Shape::Leaf, name),
            (1, []) if size == word => (Shape::One(Reference::Strong), name),
            (2, []) if size == word => (Shape::One(Reference::Weak), name),
            (3, _) => {
                let names: Vec<_> = parts.iter().map(|(_, part)| part.name.as_str()).collect();
                let name = if name.is_empty() { format!("({})", names.join(", ")) } else { name };
                (Shape::Parts(in_order(parts, size)?), name)
            }
            (4, [(step, item)]) => {
                let count = size.checked_div(*step).unwrap_or(0);
                if *step < item.size {
                    return None;
                }
                let name = format!("[{}; {count}]", item.name);
                (Shape::Items { step: *step, count, item: item.clone() }, name)
            }
            (5, [(_, value)]) => (Shape::Words(size / word), format!("{name}<{}>", value.name)),
            (5, _) => (Shape::Words(size / word), name),
            _ => return None,
        };
        Some(Known { name, size, align, shape })
    }
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

impl Type {
    /// The bytes of the object at `base`, header included; `None` if it cannot have that many.
    pub(super) fn size(&self, memory: &dyn Memory, base: u64) -> Option<u64> {
        if self.contents == Contents::Value || self.item == 0 {
            return Some(self.whole);
        }
        let count = memory.word_at(base, self.header)?;
        let size = self.item.checked_mul(count)?.checked_add(self.fixed).filter(|size| *size < MOST_SIZE)?;
        size.checked_next_multiple_of(memory.word() as u64)
    }

    /// Passes each word of the object at `base` that is a reference, or may be one, to `visit`, until it returns false.
    pub(super) fn for_each_reference(
        &self,
        memory: &dyn Memory,
        base: u64,
        visit: &mut dyn FnMut(u64, Reference) -> bool,
    ) -> Option<bool> {
        let Some(known) = &self.traced else { return Some(true) };
        let place = base.checked_add(self.header)?;
        let (first, count) = match self.contents {
            Contents::Value => (place, 1),
            // Items without a size have no references.
            Contents::Items if self.item == 0 => return Some(true),
            Contents::Items => (place.checked_add(memory.word() as u64)?, memory.word_at(place, 0)?),
        };
        let first = first.checked_next_multiple_of(known.align.max(1))?;
        for index in 0..count {
            let at = first.checked_add(self.item.checked_mul(index)?)?;
            if !known.for_each_reference(memory, at, visit)? {
                return Some(false);
            }
        }
        Some(true)
    }
}

impl Known {
    fn for_each_reference(
        &self,
        memory: &dyn Memory,
        at: u64,
        visit: &mut dyn FnMut(u64, Reference) -> bool,
    ) -> Option<bool> {
        match &self.shape {
            Shape::Leaf => {}
            Shape::One(reference) => return Some(visit(memory.word_at(at, 0)?, *reference)),
            Shape::Words(count) => {
                for index in 0..*count {
                    if !visit(memory.word_at(at, index * memory.word() as u64)?, Reference::Perhaps) {
                        return Some(false);
                    }
                }
            }
            Shape::Parts(parts) => {
                for (offset, part) in parts {
                    if !part.for_each_reference(memory, at.checked_add(*offset)?, visit)? {
                        return Some(false);
                    }
                }
            }
            Shape::Items { item, .. } if matches!(item.shape, Shape::Leaf) => {}
            Shape::Items { step, count, item } => {
                for index in 0..*count {
                    if !item.for_each_reference(memory, at.checked_add(step.checked_mul(index)?)?, visit)? {
                        return Some(false);
                    }
                }
            }
        }
        Some(true)
    }
}

//! The shortest path from a root to an object: why it is kept. A search in breadth, as the heap has its own
//! (design/gc.md `.walk.path`).

use std::collections::VecDeque;

use crate::heaps::faults::Faults;
use crate::heaps::heap::{Heap, Lead};
use crate::heaps::roots::{self, Kind, RootReference};
use crate::heaps::types::Reference;
use crate::memory::Memory;

/// What a path leads to.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// The object with this index.
    Object(usize),
    /// Any object of the type with this name.
    Type(String),
}

/// How an object was met.
#[derive(Clone, Copy, Debug)]
enum Met {
    Not,
    /// From the root with this index.
    Root(u32),
    /// From the object with this index, by a word of which is known that it is a reference, or not.
    Object(u32, bool),
}

/// A step of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The index of the object.
    pub(crate) object: usize,
    /// Whether the word that leads to it is only perhaps a reference.
    pub(crate) is_perhaps: bool,
}

/// A path. No other is shorter.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) kind: Kind,
    /// Where the reference of the root is.
    pub(crate) place: u64,
    pub(crate) steps: Vec<Step>,
}

/// What a search for a path found.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) path: Option<Path>,
    /// How many roots there are of each kind.
    pub(crate) roots: Vec<(Kind, usize)>,
    /// Roots whose references are not known: an object that only they keep has no path.
    pub(crate) unknown_roots: usize,
    /// References of the objects that were met, or of roots, that lead to no object.
    pub(crate) broken: u64,
    /// References into pools whose objects are not described.
    pub(crate) undescribed: u64,
    faults: Faults,
}

impl Search {
    /// What could not be read.
    pub(crate) fn faults(self, of: &str) -> impl Iterator<Item = String> {
        self.faults.of(of)
    }
}

impl Heap {
    /// Looks for the shortest path to a goal.
    pub(crate) fn search(&self, memory: &dyn Memory, goal: Option<&Goal>) -> Search {
        let mut found = Search::default();
        let mut met = vec![Met::Not; if goal.is_some() { self.objects.len() } else { 0 }];
        let (mut queue, mut from) = (VecDeque::new(), Vec::<RootReference>::new());
        let looked = roots::look(memory, self, |reference| {
            let lead = match reference.kind.is_ambiguous() {
                true => self.lead_around(reference.word),
                false => self.lead(memory, reference.word),
            };
            match lead {
                Lead::Object(object) => {
                    if let Some(met) = met.get_mut(object)
                        && matches!(met, Met::Not)
                    {
                        *met = Met::Root(from.len() as u32);
                        from.push(reference);
                        queue.push_back(object);
                    }
                }
                Lead::Undescribed => found.undescribed += 1,
                Lead::Nowhere if !reference.kind.is_ambiguous() => found.broken += 1,
                Lead::Nowhere | Lead::Elsewhere => {}
            }
        });
        found.unknown_roots = looked.unknown;
        found.faults = looked.faults;
        for kind in looked.roots {
            match found.roots.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, count)) => *count += 1,
                None => found.roots.push((kind, 1)),
            }
        }
        let Some(goal) = goal else { return found };
        let is_goal = |object: usize| match goal {
            Goal::Object(index) => object == *index,
            Goal::Type(name) => self.type_of(&self.objects[object]).name == *name,
        };
        while let Some(object) = queue.pop_front() {
            if is_goal(object) {
                found.path = Some(gather(&met, &from, object));
                return found;
            }
            let here = self.objects[object];
            let kind = self.type_of(&here);
            let followed = kind.for_each_reference(memory, here.base, &mut |word, reference| {
                if word == 0 || reference == Reference::Weak {
                    return;
                }
                let is_perhaps = reference == Reference::Perhaps;
                match self.lead(memory, word) {
                    Lead::Object(next) => {
                        if matches!(met[next], Met::Not) {
                            met[next] = Met::Object(object as u32, is_perhaps);
                            queue.push_back(next);
                        }
                    }
                    Lead::Undescribed => found.undescribed += 1,
                    // A format may pass on references that lead elsewhere.
                    Lead::Nowhere if !is_perhaps => found.broken += 1,
                    Lead::Nowhere | Lead::Elsewhere => {}
                }
            });
            if followed.is_none() {
                found.faults.add(format!("the references of the object at {:#x} are not there", here.base));
            }
        }
        found
    }
}

/// The path that ends at an object.
fn gather(met: &[Met], from: &[RootReference], last: usize) -> Path {
    let (mut steps, mut object) = (Vec::new(), last);
    loop {
        match met[object] {
            Met::Object(before, is_perhaps) => {
                steps.push(Step { object, is_perhaps });
                object = before as usize;
            }
            Met::Root(root) => {
                steps.push(Step { object, is_perhaps: false });
                steps.reverse();
                let RootReference { kind, place, .. } = from[root as usize];
                return Path { kind, place, steps };
            }
            // A search meets each object from another one, or from a root.
            Met::Not => unreachable!("an object of a path was not met"),
        }
    }
}

//! The store: four pools, and how objects are made in them.
//!
//! | pool | objects | because |
//! |---|---|---|
//! | `Amc` | with references: pairs, symbols, functions, scopes, vectors, tables | they move together |
//! | `Amcz` | without: strings, ports | they move together, and are not scanned |
//! | `Awl` | weak keys | their references keep nothing |
//! | `Ams` | the values of weak keys | the format writes there during a scan, so they must not move |

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{self, NonNull};

use point_log::{Logger, logger};
use tripoint::author::SymmetricFence;
use tripoint::gc::{
    Amc, Amcz, Ams, Awl, Heap, Kind as PoolKind, Moved, MovedLeaf, Mutator, MutatorBuffer, Swept,
    SweptOptions, Traced, WeakSlots,
};
use tripoint::{AllocationPoint, ArenaVm, BufferKind, Error};

use super::format::Objects;
use super::keys::{self, Keys};
use super::object::{Header, Kind, Object};
use super::stack::{Register, Stack};
use super::value::{Constant, Value, Word};
use crate::failure::{Failure, Outcome};

type Pool<'h, K> = Swept<'h, &'h ArenaVm, SymmetricFence, Objects, K>;
type Point<'p, 'h, K> = AllocationPoint<'p, Pool<'h, K>, Logger>;

/// The objects of a Lisp, and the stack that keeps them.
pub(crate) struct Store<'p, 'h> {
    // The points are dropped before the mutator that they belong to.
    moved: Point<'p, 'h, Moved>,
    leaves: Point<'p, 'h, MovedLeaf>,
    fixed: Point<'p, 'h, Traced>,
    weak: Point<'p, 'h, WeakSlots>,
    pub(super) mutator: Mutator<'h, &'h ArenaVm, SymmetricFence>,
    stack: &'p Stack,
}

thread_local! {
    /// Whether this thread has a store.
    static HAS_STORE: Cell<bool> = const { Cell::new(false) };
}

/// Calls `body` with a new store, whose root is `stack`.
///
/// A thread has one store at a time, and values stay on their thread: so no value of one store gets into another, where
/// no collection would follow it.
pub(crate) fn with_store<R>(
    heap: &Heap<'_, &ArenaVm>,
    stack: &Stack,
    body: impl FnOnce(Store<'_, '_>) -> R,
) -> Result<R, Error> {
    struct Only;
    impl Drop for Only {
        fn drop(&mut self) {
            HAS_STORE.set(false);
        }
    }
    if HAS_STORE.replace(true) {
        return Err(Error::Parameter("a thread has one store at a time"));
    }
    let _only = Only;
    let options = SweptOptions::default();
    let (moved, leaves) = (Amc::create(heap, Objects, options)?, Amcz::create(heap, Objects, options)?);
    let (fixed, weak) = (Ams::create(heap, Objects, options)?, Awl::create(heap, Objects, options)?);
    // SAFETY: the stack outlives the root. Only this thread uses it, and it gives way while the heap is stopped.
    let _root = unsafe { heap.root_function(Stack::scan, ptr::from_ref(stack).cast_mut().cast()) }?;
    let mutator = heap.register()?;
    let store = Store {
        moved: point(&moved, &mutator)?,
        leaves: point(&leaves, &mutator)?,
        fixed: point(&fixed, &mutator)?,
        weak: point(&weak, &mutator)?,
        mutator,
        stack,
    };
    Ok(body(store))
}

fn point<'p, 'h, K: PoolKind<Objects>>(
    pool: &'p Pool<'h, K>,
    mutator: &Mutator<'h, &'h ArenaVm, SymmetricFence>,
) -> Result<Point<'p, 'h, K>, Error> {
    AllocationPoint::create_in(pool, BufferKind::Mutator, logger(), |buffer: &MutatorBuffer| {
        // SAFETY: the point stays with the mutator, in a store, which is used by one thread and drops the point first.
        // The mutator runs whenever the store is used.
        unsafe { buffer.attend(mutator) };
    })
}

/// Makes an object, and returns its address. `field` is asked for each of its fields when there is room for it: any
/// collection was before.
fn make<K: PoolKind<Objects>>(
    point: &mut Point<'_, '_, K>,
    heap: &Heap<'_, &ArenaVm>,
    header: Header,
    field: impl Fn(usize) -> Word,
) -> Outcome<NonNull<u8>> {
    let layout = Layout::from_size_align(header.size(), align_of::<Word>()).map_err(|_| Failure::TooLarge)?;
    let refusals = heap.counts().by_refusal.get();
    loop {
        let reservation = point.reserve(layout)?;
        if heap.counts().by_refusal.get() != refusals && has_freed_little(heap) {
            return Err(Failure::Memory(Error::CommitLimit));
        }
        // SAFETY: as many bytes are reserved as the header says.
        unsafe { Object::put(reservation.as_ptr(), header, &field) };
        // SAFETY: the object was just written.
        if let Ok(object) = unsafe { reservation.commit() } {
            return Ok(object);
        }
    }
}

/// Whether the last collection freed so little that a program would soon do nothing but collect: it is out of memory before
/// the last word is used.
fn has_freed_little(heap: &Heap<'_, &ArenaVm>) -> bool {
    heap.last_collection().is_some_and(|last| last.freed < last.kept / 8)
}

impl Store<'_, '_> {
    /// Replaces the uppermost values by an object with these fields.
    pub(crate) fn make(&mut self, kind: Kind, detail: usize) -> Outcome {
        let header = Header::new(kind, detail).ok_or(Failure::TooLarge)?;
        assert_eq!(header.values().len(), header.fields(), "the fields of a {kind:?} are no values");
        let (stack, base) = (self.stack, self.depth() - header.fields());
        let object = make(&mut self.moved, self.mutator.heap(), header, |field| stack.word(base + field))?;
        stack.cut(base);
        self.push_object(object)
    }

    /// Replaces the two uppermost values by a pair of them. The line is that of the program, or zero.
    pub(crate) fn make_pair(&mut self, line: usize) -> Outcome {
        self.make(Kind::Pair, line)
    }

    /// Replaces the uppermost values by a list of them.
    pub(crate) fn make_list(&mut self, count: usize, line: usize) -> Outcome {
        self.push(Value::NIL)?;
        (0..count).try_for_each(|_| self.make_pair(line))
    }

    /// Replaces the uppermost value by a vector that has it `count` times.
    pub(crate) fn make_vector(&mut self, count: usize) -> Outcome {
        let header = Header::new(Kind::Vector, count).ok_or(Failure::TooLarge)?;
        let (stack, top) = (self.stack, self.depth() - 1);
        let object = make(&mut self.moved, self.mutator.heap(), header, |_| stack.word(top))?;
        stack.cut(top);
        self.push_object(object)
    }

    /// Puts a string on the stack.
    pub(crate) fn make_text(&mut self, text: &str) -> Outcome {
        let header = Header::new(Kind::Text, text.len()).ok_or(Failure::TooLarge)?;
        let word = |field: usize| {
            let mut bytes = [0; size_of::<Word>()];
            let rest = &text.as_bytes()[field * bytes.len()..];
            let count = rest.len().min(bytes.len());
            bytes[..count].copy_from_slice(&rest[..count]);
            ptr::without_provenance_mut(usize::from_ne_bytes(bytes))
        };
        let object = make(&mut self.leaves, self.mutator.heap(), header, word)?;
        self.push_object(object)
    }

    /// Puts a port on the stack. If nothing refers to it any more, [`Store::next_dropped_port`] returns its number.
    pub(crate) fn make_port(&mut self, number: usize) -> Outcome {
        let header = Header::new(Kind::Port, 0).ok_or(Failure::TooLarge)?;
        let object =
            make(&mut self.leaves, self.mutator.heap(), header, |_| ptr::without_provenance_mut(number))?;
        self.mutator.finalize(object)?;
        self.push_object(object)
    }

    /// Puts weak keys with that many slots on the stack, with values if they are those of a table.
    pub(super) fn make_keys(&mut self, slots: usize, has_values: bool) -> Outcome {
        let header = Header::new(Kind::Keys, slots).ok_or(Failure::TooLarge)?;
        if has_values {
            let header = Header::new(Kind::Values, slots).ok_or(Failure::TooLarge)?;
            let values = make(&mut self.fixed, self.mutator.heap(), header, |_| Value::NIL.word())?;
            self.push_object(values)?;
        } else {
            self.push(Value::NIL)?;
        }
        let (stack, place) = (self.stack, self.depth() - 1);
        let empty = Value::constant(Constant::Empty).word();
        let keys = make(&mut self.weak, self.mutator.heap(), header, |field| match field {
            keys::SLOTS.. => empty,
            _ if has_values => keys::front(field, stack.word(place)),
            _ => keys::front(field, ptr::null_mut()),
        })?;
        stack.set_word(place, keys.as_ptr());
        self.keys_at(place).set_dependency(self.mutator.reset_dependency());
        Ok(())
    }

    fn push_object(&self, object: NonNull<u8>) -> Outcome {
        // The object was just made, by this thread, which has not given way since.
        if self.stack.push(object.as_ptr()) { Ok(()) } else { Err(Failure::TooDeep) }
    }

    /// The keys at a place of the stack.
    pub(super) fn keys_at(&self, place: usize) -> Keys<'_> {
        Keys::of(self.value(place).object().expect("keys are an object"))
    }

    /// The keys in a register.
    pub(super) fn keys_in(&self, register: Register) -> Keys<'_> {
        self.keys_at(register as usize)
    }

    /// The value at a place, counted from the ground.
    pub(crate) fn value(&self, place: usize) -> Value<'_> {
        // SAFETY: what is on the stack is kept, and followed where it moves. Nothing is allocated while the store is
        // borrowed.
        unsafe { Value::of_word(self.stack.word(place)) }
    }

    pub(crate) fn set_value(&self, place: usize, value: Value<'_>) {
        self.stack.set_word(place, value.word());
    }

    /// How many places the stack has: the value on top is at the place below.
    pub(crate) fn depth(&self) -> usize {
        self.stack.depth()
    }

    /// How many values the stack has room for.
    pub(crate) fn size(&self) -> usize {
        self.stack.size()
    }

    /// Forgets the values at this place and above.
    pub(crate) fn cut(&self, depth: usize) {
        self.stack.cut(depth);
    }

    /// Puts a value on top.
    pub(crate) fn push(&self, value: Value<'_>) -> Outcome {
        if self.stack.push(value.word()) { Ok(()) } else { Err(Failure::TooDeep) }
    }

    /// Takes the uppermost value off.
    pub(crate) fn pop(&self) -> Value<'_> {
        let value = self.top();
        self.cut(self.depth() - 1);
        value
    }

    /// The uppermost value.
    pub(crate) fn top(&self) -> Value<'_> {
        self.value(self.depth() - 1)
    }

    pub(crate) fn get(&self, register: Register) -> Value<'_> {
        self.value(register as usize)
    }

    pub(crate) fn set(&self, register: Register, value: Value<'_>) {
        self.set_value(register as usize, value);
    }

    /// Moves the uppermost value to a register.
    pub(crate) fn pop_to(&self, register: Register) {
        self.set(register, self.pop());
    }
}

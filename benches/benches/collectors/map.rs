//! A map from numbers to entries, each with a value: two small objects. Random entries are replaced in a table that is
//! old and large, so references to young objects are everywhere in it.

use core::alloc::Layout;
use core::cell::RefCell;
use core::ptr::NonNull;

use benches::random::Random;
use boa_gc::{Finalize, Gc as BoaGc, GcRefCell, Trace as BoaTrace};
use dumpster::unsync::Gc as DumpsterGc;
use gc_arena::metrics::Pacing;
use gc_arena::{Arena, Collect, Gc as ArenaGc, Mutation, RefLock, Rootable};
use tripoint::author::Membarrier;
use tripoint::gc::{Gc, Heap, Inside, Link, Rooted, SweptOptions, TypedObjects, object_types};
use tripoint::{ArenaVm, Error, Store};

use crate::Contender;
use crate::contenders::contenders;
use crate::run::{Laps, Size};
use crate::trees::heap;
use crate::trees::memory::arena;

pub(crate) const CONTENDERS: &[Contender] = contenders!(typed, manual, gc_arena, boa_gc, dumpster);

/// The entries of the map.
const ENTRIES: usize = 1 << 18;
/// The entries that are replaced.
const REPLACED: usize = 1 << 22;
/// The entries in a lap.
const LAP: usize = 256;

/// What an entry leads to: two words.
type Value = [u64; 2];

/// The value after `value` in the entry with this key.
fn next(value: Value, key: usize) -> Value {
    [value[0] + 1, value[1] ^ (key as u64).wrapping_mul(value[0])]
}

/// Calls `lap` with the keys of the entries that are replaced in each lap. Returns the sum of what it returns.
fn drive(size: Size, laps: &mut Laps, mut lap: impl FnMut(&[usize]) -> u64) -> u64 {
    let (mut random, mut sum) = (Random(42), 0_u64);
    for _ in 0..size.of(REPLACED) / LAP {
        let keys: [usize; LAP] = core::array::from_fn(|_| random.below(size.of(ENTRIES)));
        sum = sum.wrapping_add(lap(&keys));
        laps.lap();
    }
    sum
}

object_types! {
    struct TypedEntry<'g> {
        key: usize,
        value: Gc<'g, Value>,
    }
}

type TypedTable<'g> = [Link<'g, TypedEntry<'g>>];
type In<'g, 'a> = Inside<'g, &'a ArenaVm, Membarrier>;

fn typed_entry<'g>(inside: &In<'g, '_>, key: usize, value: Value) -> Result<Gc<'g, TypedEntry<'g>>, Error> {
    inside.alloc(TypedEntry { key, value: inside.alloc(value)? })
}

fn replace_typed<'g>(inside: &In<'g, '_>, table: Gc<'g, TypedTable<'g>>, key: usize) -> Result<u64, Error> {
    let old = table[key].get().expect("an entry for each key");
    assert_eq!(old.key, key);
    let value = next(*old.value, key);
    table[key].set(inside, typed_entry(inside, key, value)?);
    Ok(value[1])
}

fn typed(size: Size, laps: &mut Laps) -> u64 {
    let arena = arena().expect("an arena");
    let heap = Heap::create(&arena, heap()).expect("a heap");
    let objects = TypedObjects::create(&heap, SweptOptions::default()).expect("pools");
    let mut mutator = objects.register().expect("a mutator");
    let table = mutator.enter(|inside| {
        let table = inside.slice(size.of(ENTRIES), |_| Link::default())?;
        for key in 0..size.of(ENTRIES) {
            table[key].set(inside, typed_entry(inside, key, [0; 2])?);
        }
        objects.root(inside, table)
    });
    let table: Rooted<'_, TypedTable<'static>> = table.expect("memory");
    drive(size, laps, |keys| {
        let sum = mutator.enter(|inside| {
            let table = table.get(inside)?;
            keys.iter().try_fold(0_u64, |sum, key| Ok(sum.wrapping_add(replace_typed(inside, table, *key)?)))
        });
        sum.map_err(|error: Error| error.to_string()).expect("memory")
    })
}

#[derive(Clone, Copy)]
struct Entry {
    key: usize,
    value: NonNull<Value>,
}

fn make_in<T>(store: &impl Store, value: T) -> NonNull<T> {
    let place = store.alloc(Layout::new::<T>()).expect("memory").cast::<T>();
    // SAFETY: room for the value was just allocated.
    unsafe { place.write(value) };
    place
}

fn manual(entries: &impl Store, values: &impl Store, size: Size, laps: &mut Laps) -> u64 {
    let make = |key, value| make_in(entries, Entry { key, value: make_in(values, value) });
    let count = size.of(ENTRIES);
    // In memory of the store, because a collector has to find it.
    let table = Layout::array::<NonNull<Entry>>(count).expect("a table that fits");
    let table = entries.alloc(table).expect("memory").cast::<NonNull<Entry>>();
    for key in 0..count {
        // SAFETY: the table has room for `count` entries.
        unsafe { table.add(key).write(make(key, [0; 2])) };
    }
    drive(size, laps, |keys| {
        let mut sum = 0_u64;
        for key in keys.iter().copied() {
            // SAFETY: the table has `count` entries, all of them written.
            let place = unsafe { table.add(key).as_mut() };
            // SAFETY: an entry in the table was not freed.
            let old = unsafe { place.as_ref() };
            assert_eq!(old.key, key);
            // SAFETY: nor was its value.
            let value = next(unsafe { old.value.read() }, key);
            let (old_entry, old_value) = (*place, old.value);
            *place = make(key, value);
            // SAFETY: the value came from this store, and nothing uses it any more.
            unsafe { values.free(old_value.cast(), Layout::new::<Value>()) };
            // SAFETY: the entry came from this store, and nothing uses it any more.
            unsafe { entries.free(old_entry.cast(), Layout::new::<Entry>()) };
            sum = sum.wrapping_add(value[1]);
        }
        sum
    })
}

#[derive(Collect)]
#[collect(no_drop)]
struct ArenaEntry<'gc> {
    key: usize,
    value: ArenaGc<'gc, Value>,
}

type ArenaTable<'gc> = RefLock<Vec<ArenaGc<'gc, ArenaEntry<'gc>>>>;

fn arena_entry<'gc>(context: &Mutation<'gc>, key: usize, value: Value) -> ArenaGc<'gc, ArenaEntry<'gc>> {
    ArenaGc::new(context, ArenaEntry { key, value: ArenaGc::new(context, value) })
}

fn gc_arena(pacing: Pacing, size: Size, laps: &mut Laps) -> u64 {
    let mut arena = Arena::<Rootable![ArenaGc<'_, ArenaTable<'_>>]>::new(|context| {
        let entries = (0..size.of(ENTRIES)).map(|key| arena_entry(context, key, [0; 2]));
        ArenaGc::new(context, RefLock::new(entries.collect()))
    });
    arena.metrics().set_pacing(pacing);
    drive(size, laps, |keys| {
        let sum = arena.mutate(|context, table| {
            let mut table = table.borrow_mut(context);
            let mut sum = 0_u64;
            for key in keys.iter().copied() {
                let old = table[key];
                assert_eq!(old.key, key);
                let value = next(*old.value, key);
                table[key] = arena_entry(context, key, value);
                sum = sum.wrapping_add(value[1]);
            }
            sum
        });
        arena.collect_debt();
        sum
    })
}

#[derive(BoaTrace, Finalize)]
struct BoaEntry {
    key: usize,
    value: BoaGc<Value>,
}

#[derive(dumpster::Trace)]
struct DumpsterEntry {
    key: usize,
    value: DumpsterGc<Value>,
}

/// Does the work with pointers that are cloned, and a cell of a collector. An allocation may collect, and a table that is
/// borrowed is not looked at then.
macro_rules! replace_in_cell {
    ($run:ident, $Entry:ident, $Gc:ident, $Cell:ident) => {
        fn $run(size: Size, laps: &mut Laps) -> u64 {
            let make = |key, value| $Gc::new($Entry { key, value: $Gc::new(value) });
            let entries: Vec<_> = (0..size.of(ENTRIES)).map(|key| make(key, [0; 2])).collect();
            let table = $Gc::new($Cell::new(entries));
            drive(size, laps, |keys| {
                let mut sum = 0_u64;
                for key in keys.iter().copied() {
                    let old = table.borrow()[key].clone();
                    assert_eq!(old.key, key);
                    let value = next(*old.value, key);
                    let entry = make(key, value);
                    table.borrow_mut()[key] = entry;
                    sum = sum.wrapping_add(value[1]);
                }
                sum
            })
        }
    };
}

replace_in_cell!(boa_gc, BoaEntry, BoaGc, GcRefCell);
replace_in_cell!(dumpster, DumpsterEntry, DumpsterGc, RefCell);

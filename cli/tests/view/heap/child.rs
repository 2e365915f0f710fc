//! What the child processes of these tests do: they make objects that they count themselves, say what they know, and stay
//! until their input ends, or crash.

use core::ptr::NonNull;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use serde_json::{Value, json};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::{Addr, Block};
use tripoint_gc::{
    Gc, Heap, HeapOptions, Inside, Link, Rooted, Scan, Step, SweptOptions, TypedObjects, WeakLink, WeakPair,
    object_types,
};

use super::{KNOWN, MODE};

type Arena<'a> = &'a ArenaVm;
pub(super) type In<'g, 'a> = Inside<'g, Arena<'a>>;
pub(super) type Objects<'h, 'a> = TypedObjects<'h, Arena<'a>>;

object_types! {
    /// No references.
    pub struct Leaf { number: u64 }

    /// A list.
    pub struct Node<'g> {
        number: u32,
        next: Link<'g, Node<'g>>,
        leaf: Link<'g, Leaf>,
        last: Link<'g, Holder<'g>>,
    }

    /// What the paths lead to.
    pub struct Needle(u8);

    /// What leads to it.
    pub struct Holder<'g> { before: u64, needle: Gc<'g, Needle> }

    /// In which variant it is, only the program knows.
    pub enum Either<'g> {
        Empty,
        One(Gc<'g, Leaf>),
        Two { text: Gc<'g, str>, holder: Gc<'g, Holder<'g>> },
    }

    /// References at many places.
    pub struct Mixed<'g>(u8, Gc<'g, Leaf>, (u64, Option<Gc<'g, Node<'g>>>), [Link<'g, Leaf>; 3]);

    /// Does not move.
    #[repr(align(32))]
    pub struct Aligned<'g> { number: u64, leaf: Gc<'g, Leaf> }

    /// Weak references.
    pub struct Table<'g> { weak: WeakLink<'g, Leaf>, pair: WeakPair<'g, Leaf, Node<'g>> }

    /// Nothing leads to one.
    pub struct Lost(u64);

    /// A weak link alone leads to one.
    pub struct Faint(u64);

    /// Weak links, the last of which leads somewhere.
    pub struct Faints<'g> { links: [WeakLink<'g, Faint>; 3] }

    /// The last item of an array leads to it.
    pub struct Last(u64);

    /// An array of references.
    pub struct Items<'g> { number: u64, items: [Link<'g, Last>; 4] }
}

/// How many objects there are of each type, and their bytes.
#[derive(Default)]
struct Tally(BTreeMap<String, (u64, u64)>);

impl Tally {
    /// An object with one value, or with items: a header, a count, what aligns the contents, and the contents.
    fn add(&mut self, name: &str, size: usize) {
        let is_own = !matches!(name, "str" | "[Gc]");
        let name = if is_own { format!("{}::{name}", module_path!()) } else { name.to_owned() };
        let (count, bytes) = self.0.entry(name).or_default();
        *count += 1;
        *bytes += size.next_multiple_of(8) as u64;
    }

    fn value<T>(&mut self, name: &str) {
        self.add(name, 8 + (align_of::<T>().max(8) - 8) + size_of::<T>());
    }
}

fn leaf<'g>(inside: &In<'g, '_>, tally: &mut Tally, number: u64) -> Gc<'g, Leaf> {
    tally.value::<Leaf>("Leaf");
    inside.alloc(Leaf { number }).unwrap()
}

/// A list of nodes, of which each third has a leaf. The last one leads to what is passed.
fn list<'g>(
    inside: &In<'g, '_>,
    tally: &mut Tally,
    length: u32,
    last: Option<Gc<'g, Holder<'g>>>,
) -> Gc<'g, Node<'g>> {
    let mut list = None;
    for number in 0..length {
        tally.value::<Node<'_>>("Node");
        let leaf = (number % 3 == 0).then(|| leaf(inside, tally, number.into()));
        let last = last.filter(|_| number == 0);
        let node = Node { number, next: Link::new(list), leaf: Link::new(leaf), last: Link::new(last) };
        list = Some(inside.alloc(node).unwrap());
    }
    list.unwrap()
}

/// The roots of a graph, and the objects that a path leads through.
struct Graph<'o> {
    _list: Rooted<'o, Node<'static>>,
    either: Rooted<'o, Either<'static>>,
    _mixed: Rooted<'o, [Gc<'static, Mixed<'static>>]>,
    _aligned: tripoint_gc::PinnedRooted<'o, Aligned<'static>>,
    _table: Rooted<'o, Table<'static>>,
}

fn graph<'o, 'a>(objects: &'o Objects<'_, 'a>, inside: &In<'_, 'a>, tally: &mut Tally) -> Graph<'o> {
    tally.value::<Needle>("Needle");
    tally.value::<Holder<'_>>("Holder");
    let needle = inside.alloc(Needle(7)).unwrap();
    let holder = inside.alloc(Holder { before: 1, needle }).unwrap();
    let list = list(inside, tally, 100, Some(holder));
    let text = "a text of 25 bytes, or so";
    tally.add("str", 16 + text.len());
    let text = inside.text(text).unwrap();
    tally.value::<Either<'_>>("Either");
    let either = inside.alloc(Either::Two { text, holder }).unwrap();
    // An enum without references, and one with another.
    for either in [Either::Empty, Either::One(leaf(inside, tally, 1))] {
        tally.value::<Either<'_>>("Either");
        inside.alloc(either).unwrap();
    }
    tally.add("[Gc]", 16 + 5 * 8);
    let mixed = inside
        .slice(5, |number| {
            tally.value::<Mixed<'_>>("Mixed");
            let leaf = leaf(inside, tally, 2);
            let node = (number % 2 == 0).then_some(list);
            let links = [leaf; 3].map(|leaf| Link::new(Some(leaf)));
            inside.alloc(Mixed(number as u8, leaf, (3, node), links)).unwrap()
        })
        .unwrap();
    tally.value::<Aligned<'_>>("Aligned");
    // This keeps the key of the weak pair.
    let key = leaf(inside, tally, 5);
    let aligned = inside.alloc(Aligned { number: 4, leaf: key }).unwrap();
    tally.value::<Table<'_>>("Table");
    let pair = WeakPair::new(Some((key, list)));
    let table = inside.alloc(Table { weak: WeakLink::new(Some(key)), pair }).unwrap();
    Graph {
        _list: objects.root(inside, list).unwrap(),
        either: objects.root(inside, either).unwrap(),
        _mixed: objects.root(inside, mixed).unwrap(),
        _aligned: objects.pin(inside, aligned).unwrap(),
        _table: objects.root(inside, table).unwrap(),
    }
}

/// Where the objects of the path are: the address of each in front of its value.
fn path<'a>(graph: &Graph<'_>, inside: &In<'_, 'a>) -> Vec<String> {
    let either = graph.either.get(inside).unwrap();
    let Either::Two { holder, .. } = *either else { panic!("it has a holder") };
    let addresses = [either.as_ptr().addr(), holder.as_ptr().addr(), holder.needle.as_ptr().addr()];
    addresses.map(|address| format!("{:#x}", address - 8)).into()
}

/// Says what the child knows, and stays until its input ends, or crashes.
pub(super) fn stay(known: &Value) {
    if let Ok(file) = std::env::var(KNOWN) {
        std::fs::write(file, known.to_string()).unwrap();
        std::process::abort();
    }
    println!("\nknown: {known}");
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    while std::io::stdin().lock().read_line(&mut line).unwrap() > 0 {
        println!("still here");
        std::io::stdout().flush().unwrap();
    }
}

fn known(tally: &Tally, more: &Value) -> Value {
    json!({ "types": tally.0, "more": more })
}

pub(super) fn arena() -> ArenaVm {
    let options =
        ArenaVmOptions { reserve: 256 << 20, reserve_floor: 256 << 20, ..ArenaVmOptions::default() };
    ArenaVm::create(options).unwrap()
}

/// Makes an arena, a heap and typed objects, and calls `body`.
pub(super) fn with_objects(body: impl for<'h, 'a> FnOnce(&'h Heap<'h, Arena<'a>>, &Objects<'h, 'a>)) {
    let arena = arena();
    let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
    let objects = TypedObjects::create(&heap, SweptOptions::default()).unwrap();
    body(&heap, &objects);
}

/// Some objects are old, some are young and in buffers, and some are dead.
fn plain(objects: &Objects<'_, '_>, tally: &mut Tally) -> Value {
    let mut mutator = objects.register().unwrap();
    let graph = mutator.enter(|inside| graph(objects, inside, tally));
    // What nothing leads to is freed, and is no part of the tally: two enums with a leaf.
    mutator.collect(Duration::MAX).unwrap();
    for (name, count, size) in [("Either", 2, size_of::<Either<'_>>()), ("Leaf", 1, size_of::<Leaf>())] {
        let entry = tally.0.get_mut(&format!("{}::{name}", module_path!())).unwrap();
        *entry = (entry.0 - count, entry.1 - count * (8 + size as u64));
    }
    let more = mutator.enter(|inside| {
        tally.value::<Faint>("Faint");
        let faint = inside.alloc(Faint(1)).unwrap();
        tally.value::<Faints<'_>>("Faints");
        let links = [None, None, Some(faint)].map(WeakLink::new);
        let faints = inside.alloc(Faints { links }).unwrap();
        tally.value::<Last>("Last");
        let last = inside.alloc(Last(1)).unwrap();
        tally.value::<Items<'_>>("Items");
        let items =
            inside.alloc(Items { number: 2, items: [None, None, None, Some(last)].map(Link::new) }).unwrap();
        (objects.root(inside, faints).unwrap(), objects.root(inside, items).unwrap())
    });
    let young = mutator.enter(|inside| {
        for number in 0..10 {
            tally.value::<Lost>("Lost");
            inside.alloc(Lost(number)).unwrap();
        }
        let list = list(inside, tally, 50, None);
        objects.root(inside, list).unwrap()
    });
    let path = mutator.enter(|inside| path(&graph, inside));
    // The roots and the mutator stay.
    core::mem::forget((graph, more, young, mutator));
    json!({ "path": path })
}

/// What the child runs, by its mode.
pub(super) fn run() {
    let Ok(mode) = std::env::var(MODE) else { return };
    let mut tally = Tally::default();
    match mode.as_str() {
        "plain" => with_objects(|_, objects| {
            let more = plain(objects, &mut tally);
            stay(&known(&tally, &more));
        }),
        "two" => with_objects(|_, objects| {
            let more = plain(objects, &mut tally);
            with_objects(|_, others| {
                let mut others_tally = Tally::default();
                let mut mutator = others.register().unwrap();
                let list = mutator
                    .enter(|inside| others.root(inside, list(inside, &mut others_tally, 7, None)).unwrap());
                stay(&json!({ "types": tally.0, "others": others_tally.0, "more": more }));
                drop(list);
            });
        }),
        "frozen" => with_objects(|heap, objects| {
            let more = plain(objects, &mut tally);
            let mut memory = vec![0_u64; 1024];
            let base = NonNull::from(memory.as_mut_slice()).cast::<u8>();
            // SAFETY: the memory is that of the vector, which outlives the segment.
            let block = unsafe { Block::new(base, 8192) };
            // SAFETY: the memory does not change, and has no references.
            let frozen = unsafe { heap.register_frozen(block, 64..4096) }.unwrap();
            let address = Addr::of(base.as_ptr()).get() + 64;
            stay(&known(&tally, &json!({ "path": more["path"], "frozen": format!("{address:#x}") })));
            drop(frozen);
        }),
        "threads" => with_objects(|_, objects| threads(objects, tally)),
        "moving" => moving(&mut tally),
        "steps" => with_objects(|heap, objects| {
            let more = plain(objects, &mut tally);
            let step = heap.step(Duration::MAX, || false).unwrap();
            assert!(matches!(step, Step::Marking { .. }), "{step:?}");
            stay(&known(&tally, &more));
        }),
        "sweeping" => with_objects(|heap, objects| {
            let more = plain(objects, &mut tally);
            tally.0.remove(&format!("{}::Faint", module_path!()));
            // The memory of these is in no buffer any more.
            let mut mutator = objects.register().unwrap();
            mutator.enter(|inside| {
                for number in 0..20_000 {
                    inside.alloc(Lost(number)).unwrap();
                }
            });
            while !matches!(heap.step(Duration::MAX, || false).unwrap(), Step::Sweeping { .. }) {}
            // Dead objects wait to be freed, and are no part of the heap any more. Those in the segment of a buffer were freed.
            tally.0.remove(&format!("{}::Lost", module_path!()));
            stay(&known(&tally, &more));
        }),
        "many" => with_objects(|_, objects| {
            let mut mutator = objects.register().unwrap();
            let list = mutator
                .enter(|inside| objects.root(inside, list(inside, &mut tally, 200_000, None)).unwrap());
            stay(&known(&tally, &Value::Null));
            drop(list);
        }),
        // In another thread than the first.
        "ended" => std::thread::scope(|scope| {
            scope.spawn(|| {
                with_objects(|_, objects| {
                    let more = plain(objects, &mut tally);
                    end_first_thread();
                    stay(&known(&tally, &more));
                });
            });
        }),
        "waiting" => with_objects(|_, objects| {
            plain(objects, &mut tally);
            let thread = wait_for_a_child();
            stay(&known(&tally, &json!({ "thread": thread })));
        }),
        "cells" => super::cells::run(),
        "guide" => super::guide::child(),
        other => panic!("there is no mode {other}"),
    }
}

/// Three threads have a mutator each, with objects in its buffers, and one is inside.
fn threads(objects: &Objects<'_, '_>, tally: Tally) {
    let tally = Mutex::new(tally);
    std::thread::scope(|scope| {
        let (ready, all_ready) = channel();
        let mut ends = Vec::new();
        for number in 0..3 {
            let (end, until_end) = channel::<()>();
            ends.push(end);
            let (ready, tally) = (ready.clone(), &tally);
            scope.spawn(move || {
                let mut mutator = objects.register().unwrap();
                let root = mutator.enter(|inside| {
                    let list = list(inside, &mut tally.lock().unwrap(), 20 + number, None);
                    objects.root(inside, list).unwrap()
                });
                if number == 0 {
                    mutator.enter(|inside| {
                        tally.lock().unwrap().value::<Lost>("Lost");
                        inside.alloc(Lost(1)).unwrap();
                        ready.send(()).unwrap();
                        let _ = until_end.recv();
                    });
                } else {
                    ready.send(()).unwrap();
                    let _ = until_end.recv();
                }
                drop(root);
            });
        }
        (0..3).for_each(|_| all_ready.recv().unwrap());
        stay(&known(&tally.lock().unwrap(), &Value::Null));
        drop(ends);
    });
}

/// What a root function knows that is called in a collection: for ambiguous references, before anything has moved, and for
/// exact ones, after the objects have moved that typed roots lead to, because that root is newer.
#[derive(Default)]
struct Middle(Mutex<(usize, Value)>);

/// # Safety
/// - `data` leads to a [`Middle`].
unsafe fn in_the_middle(data: *mut (), _scan: &mut Scan<'_>) {
    // SAFETY: the caller promises what is there, which is only borrowed shared.
    let middle = unsafe { &*data.cast::<Middle>() };
    let mut middle = middle.0.lock().unwrap();
    middle.0 += 1;
    if middle.0 == 2 {
        stay(&middle.1);
    }
}

/// Stays in the middle of a collection that moves objects.
fn moving(tally: &mut Tally) {
    let (arena, middle) = (arena(), Middle::default());
    let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
    // SAFETY: the function passes no references, and its data outlives the root.
    let root = unsafe { heap.root_function(in_the_middle, (&raw const middle).cast_mut().cast()) }.unwrap();
    let objects = TypedObjects::create(&heap, SweptOptions::default()).unwrap();
    let mut mutator = objects.register().unwrap();
    let graph = mutator.enter(|inside| graph(&objects, inside, tally));
    middle.0.lock().unwrap().1 = known(tally, &Value::Null);
    mutator.collect(Duration::MAX).unwrap();
    drop((graph, root));
}

extern "C" fn end_this_thread(_signal: libc::c_int) {
    // SAFETY: the call ends a thread, of which nothing is borrowed: it only waits for others.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Ends the first thread of the process, which waits for that of the test.
fn end_first_thread() {
    let process = i32::try_from(std::process::id()).unwrap();
    let end: extern "C" fn(libc::c_int) = end_this_thread;
    // SAFETY: the handler calls only the system.
    unsafe { libc::signal(libc::SIGUSR1, end as libc::sighandler_t) };
    // SAFETY: the call passes numbers.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, process, libc::SIGUSR1) };
    assert_eq!(sent, 0);
    let stat = format!("/proc/self/task/{process}/stat");
    let begin = std::time::Instant::now();
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        assert!(begin.elapsed() < Duration::from_secs(60), "the first thread did not end");
        std::thread::yield_now();
    }
}

/// Has a thread wait in the kernel for a child, as `vfork` does, until the input of both ends. Returns its number.
fn wait_for_a_child() -> i64 {
    let (number, numbers) = channel();
    std::thread::spawn(move || {
        // SAFETY: the call passes nothing.
        number.send(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap();
        let flags = i64::from(libc::CLONE_VFORK | libc::SIGCHLD);
        // SAFETY: the child has memory of its own, as one of `fork`.
        let child = unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) };
        if child == 0 {
            // SAFETY: the call passes numbers. The child ends with the process that it was made by.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            loop {
                // SAFETY: the call passes nothing.
                unsafe { libc::pause() };
            }
        }
    });
    numbers.recv().unwrap()
}

//! Automatic pools for tripoint: objects that no root leads to are freed. The threads that allocate are
//! stopped at their allocation points, without signals.
//!
//! # What there is, and what there is not
//!
//! There are **stops** ([`Heap`], [`Mutator`]), **formats** and **roots** ([`Format`], [`Root`],
//! [`Scan`]), and five classes of pool:
//!
//! | objects | that stay where they are | that a collection moves together |
//! |---|---|---|
//! | with exact references | [`Ams`] | [`Amc`] |
//! | without references: text, numbers, buffers | [`Lo`] | [`Amcz`] |
//! | with weak references: keys of tables | [`Awl`] | |
//!
//! A collection changes the references to an object that it moves: those that formats and roots fix. So after a
//! mutator gave way, it reads its references again from roots and objects. An object that an ambiguous reference
//! leads to does not move: one from an [area](Heap::root_ambiguous) or a [stack](Heap::root_stack), in which each
//! word may be a reference.
//!
//! Above these are **typed objects** ([`TypedObjects`], [`TypedMutator`], [`Gc`]), which need no `unsafe`.
//!
//! A collection is of the whole heap ([`Heap::collect`]), or of its young **generations** ([`Heap::collect_up_to`]). The
//! heap is stopped meanwhile. It begins when the program asks for it, or in a reserve that finds it due or is refused
//! memory ([`Policy`]), unless the heap is parked ([`Heap::park`]). Classes that move objects allocate them in the
//! youngest generation, and others in the last. Which older objects refer to young ones is known if mutators note their
//! writes ([`Swept::note_write`]), as they do with typed objects. If they do not, the platform is asked which pages were
//! written ([`Arena::write_watch`](tripoint_core::Arena::write_watch)), or all older objects are looked at
//! ([`design::gc_generations`]).
//!
//! Objects may be registered for **finalization** ([`FinalQueue`], [`Mutator::finalize`]), and references may be **weak**
//! ([`WeakLink`], [`WeakPair`], [`WeakRooted`], [`ShortWeakRooted`], [`Heap::root_weak`], [`Awl`]). A mutator takes **messages** from a queue
//! ([`Mutator::next_message`]): objects to be finalized, and the begin and the end of collections.
//!
//! # Typed objects
//!
//! [`object_types!`] declares the types of objects. [`Inside::alloc`] makes an object and returns a [`Gc`], a reference
//! to it, which is one word and may be copied. Objects may refer to each other in cycles. What a [`Rooted`] leads to
//! is kept, and what a [`PinnedRooted`] leads to does not move.
//!
//! ```
//! use core::time::Duration;
//! use tripoint_core::{ClientArena, ClientArenaOptions};
//! use tripoint_gc::{Gc, Heap, HeapOptions, Link, TypedObjects, SweptOptions, object_types};
//!
//! object_types! {
//!     /// A place, and the roads from it.
//!     struct Town<'g> {
//!         name: Gc<'g, str>,
//!         next: Link<'g, Town<'g>>,
//!     }
//! }
//!
//! let mut memory = Box::new_uninit_slice(256 << 10);
//! let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//! let heap = Heap::create(&arena, HeapOptions::default())?;
//! let objects = TypedObjects::create(&heap, SweptOptions::default())?;
//! let mut mutator = objects.register()?;
//!
//! let start = mutator.try_enter(|inside| {
//!     let ulm = inside.alloc(Town { name: inside.text("Ulm")?, next: Link::default() })?;
//!     let bonn = inside.alloc(Town { name: inside.text("Bonn")?, next: Link::new(Some(ulm)) })?;
//!     ulm.next.set(inside, bonn);
//!     objects.root(inside, ulm)
//! })?;
//! assert_eq!(mutator.collect(Duration::MAX).map(|found| found.freed), Ok(0));
//! mutator.try_enter(|inside| {
//!     let ulm = start.get(inside)?;
//!     let bonn = ulm.next.get().unwrap();
//!     assert_eq!((&*bonn.name, bonn.next.get().unwrap().is_same(ulm)), ("Bonn", true));
//!     Ok(())
//! })?;
//! drop(start);
//! assert!(mutator.collect(Duration::MAX).unwrap().freed > 0);
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! Collections begin while a thread is outside [`TypedMutator::enter`], and references are used inside: none can
//! be held across a collection. Inside, objects are plain `&T`. Each of these does not compile:
//!
//! | mistake | why |
//! |---|---|
//! | a reference leaves the closure, or is kept outside it | each closure has a lifetime of its own |
//! | a collection inside | it takes the mutator, which is borrowed |
//! | an object that refers to one of another heap | the two lifetimes differ |
//! | a field that is not traced | [`object_types!`] names them all |
//! | a cell whose writes collectors do not know of | it is not `Sync`, or not [`Trace`]; [`Link`] is |
//! | a value that has something to drop | its object would be freed without that |
//!
//! # A collection
//!
//! ```
//! use core::alloc::Layout;
//! use core::ptr::{self, NonNull};
//! use core::time::Duration;
//! use tripoint_ap::AllocationPoint;
//! use tripoint_core::{Block, BufferKind, ClientArena, ClientArenaOptions, PoolClass};
//! use tripoint_gc::{Ams, Format, Heap, HeapOptions, Scan, SweptOptions, Tag};
//!
//! /// A pair of references, as in Lisp.
//! struct Pairs;
//!
//! // SAFETY: every object is a pair of references, and both are passed on.
//! unsafe impl Format for Pairs {
//!     unsafe fn skip(&self, _pair: NonNull<u8>) -> usize {
//!         size_of::<[*mut u8; 2]>()
//!     }
//!
//!     unsafe fn scan(&self, pairs: Block, scan: &mut Scan<'_>) {
//!         let references = pairs.base().cast::<*mut u8>();
//!         for index in 0..pairs.size() / size_of::<*mut u8>() {
//!             // SAFETY: the pairs have that many references, and no thread uses them meanwhile.
//!             scan.fix(unsafe { references.add(index).as_mut() });
//!         }
//!     }
//! }
//!
//! let mut memory = Box::new_uninit_slice(256 << 10);
//! let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//! let heap = Heap::create(&arena, HeapOptions::default())?;
//! let pool = Ams::create(&heap, Pairs, SweptOptions::default())?;
//! let mut mutator = heap.register()?;
//! // SAFETY: this thread has the mutator, and uses the point only while the mutator is running.
//! let mut point = AllocationPoint::create_in(&pool, BufferKind::Mutator, (), |buffer| unsafe {
//!     buffer.attend(&mutator)
//! })?;
//!
//! let mut list: *mut u8 = ptr::null_mut();
//! let slot = NonNull::from(&mut list);
//! // SAFETY: the variable outlives the root, and only this thread uses it.
//! let root = unsafe { heap.root_table(slot, 1, Tag::default()) }?;
//! for _ in 0..1000 {
//!     let pair = point.reserve(Layout::new::<[*mut u8; 2]>())?;
//!     // SAFETY: the pair has room for two references, and the slot is the variable above.
//!     unsafe { pair.as_ptr().cast().write([ptr::null_mut(), slot.read()]) };
//!     // SAFETY: both words of the pair were just written.
//!     if let Ok(pair) = unsafe { pair.commit() } {
//!         // SAFETY: the slot is the variable above.
//!         unsafe { slot.write(pair.as_ptr()) };
//!     }
//! }
//! point.empty();
//! assert_eq!(mutator.collect(Duration::MAX).map(|found| found.freed), Ok(0));
//! drop(root);
//! let found = mutator.collect(Duration::MAX).unwrap();
//! assert_eq!((found.kept, found.freed), (0, 1000 * size_of::<[*mut u8; 2]>()));
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! # Stops
//!
//! A **mutator** is a thread's registration with a heap. While its thread uses objects of the heap it
//! is *running*. A thread that wants all others out of the way **stops** the heap. It then has
//! the heap to itself until it drops the [`Stopped`] guard. A running mutator gives way
//!
//! | where | by |
//! |---|---|
//! | in the slow path of reserve, to which a stop trips every allocation point | the pool's class |
//! | in a loop that does not allocate | [`Mutator::poll`], a load and a branch |
//! | in a call that may block, or lasts | [`Mutator::away`], during which it delays no stop |
//!
//! and never between a reserve and the commit of the same point. If a mutator does none of these in
//! the time that the stop allows, the stop is [`Postponed`]: all go on, and the error says which mutator
//! it was and where it was last seen.
//!
//! ```
//! use std::time::Duration;
//! use tripoint_core::{ClientArena, ClientArenaOptions};
//! use tripoint_gc::{Heap, HeapOptions, Postponed};
//!
//! let mut memory = Box::new_uninit_slice(64 << 10);
//! let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//! let heap = Heap::create(&arena, HeapOptions::default())?;
//! let mut mutator = heap.register()?;
//!
//! // This mutator runs, so the heap does not stop for another thread.
//! let postponed = std::thread::scope(|scope| {
//!     scope.spawn(|| heap.stop(Duration::from_micros(10)).map(drop)).join().unwrap()
//! });
//! assert!(matches!(postponed, Err(Postponed::Late(late)) if late.number == mutator.number()));
//!
//! // While it is away, the heap stops at once.
//! let stops = mutator.away(|| heap.stop(Duration::ZERO).map(|stopped| stopped.heap().counts().stops.get()));
//! assert_eq!(stops, Ok(1));
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! # Walks
//!
//! While the heap is stopped, [`Stopped`] shows [all objects](Stopped::walk_objects) and [all
//! roots](Stopped::walk_roots), counts objects [by type](Stopped::census), shows [how segments are
//! used](Stopped::walk_segments), and finds what
//! [refers](Stopped::walk_referrers) to an object and what [keeps](Stopped::path_to) it. Walks allocate nothing: the
//! caller provides the memory that they need.
//!
//! ```
//! # use core::time::Duration;
//! # use tripoint_core::{Addr, Arena, BarrierPair};
//! use tripoint_gc::{Heap, NoPath, PathStep};
//!
//! /// Prints why an object is kept.
//! fn explain<A: Arena, B: BarrierPair>(heap: &Heap<'_, A, B>, object: *const u8) {
//!     let Ok(stopped) = heap.stop(Duration::from_millis(1)) else { return };
//!     let mut table = vec![PathStep::default(); stopped.census(&mut []).all.objects];
//!     match stopped.path_to(object, &mut table) {
//!         Ok(path) => {
//!             let types = path.steps.iter().filter_map(|step| stopped.object_at(step.object_base())?.type_name);
//!             println!("{:?} keeps it, by {:?}", path.root, types.collect::<Vec<_>>());
//!         }
//!         Err(none) => println!("{none}"),
//!     }
//! }
//! ```
//!
//! # Transforms
//!
//! A [`Transform`] has new objects take the place of old ones: with the heap stopped, it replaces every exact reference to
//! an old object, in all objects and roots. So a program can redefine a type of objects while there are instances of it.
//!
//! # Collections in steps
//!
//! A collection of a large heap takes long. [`Heap::step`] does a part of one, so that mutators run in between:
//!
//! ```
//! # use core::time::Duration;
//! # use std::time::Instant;
//! # use tripoint_core::{Arena, BarrierPair};
//! use tripoint_gc::{Collection, Heap, Postponed, Step};
//!
//! /// Does about a millisecond of a collection, when there is nothing else to do. Returns its report when it is over.
//! fn when_idle<A: Arena, B: BarrierPair>(heap: &Heap<'_, A, B>) -> Result<Option<Collection>, Postponed> {
//!     let begin = Instant::now();
//!     let goes_on = || begin.elapsed() < Duration::from_millis(1);
//!     match heap.step(Duration::from_millis(1), goes_on)? {
//!         Step::Done(report) => Ok(Some(report)),
//!         _ => Ok(None),
//!     }
//! }
//! ```
//!
//! [`design::gc_steps`] says what is not divided, and why such a collection moves nothing.
//!
//! # What is reported
//!
//! The hook of the heap's arena observes stops, the waits of mutators, and collections
//! ([`Event::BeginStop`](tripoint_core::Event::BeginStop) and those after it). The steady-state contract counts
//! collections and waits of its threads by them, and telemetry records them with their times.
//!
//! # Frozen segments
//!
//! Reference data that never dies, and refers to no object that can, is better kept out of the heap, in a frozen
//! segment. [`Heap::register_frozen`] registers one, [`FrozenSegment::update`] changes where its objects end, and
//! [`Heap::is_in_frozen`] returns whether an address is in one. Collections do not look at its memory, which may
//! therefore be read-only and shared by processes.
//!
//! # Images
//!
//! [`Stopped::plan_image`] and [`ImagePlan::write_to`] write objects, and all that they lead to, as bytes. Many
//! processes map these read-only at the same address, and register them as a frozen segment. [`ImageHeader::parse`]
//! returns that address, [`Image::open`] refuses bytes that are not an image, and [`relocate_image`] adjusts a copy if
//! the address is taken. The program `apps/frozen-instruments` shows all of this.
//!
//! # From outside
//!
//! `tripoint heap` of the package `tripoint-cli` shows the objects of a stopped process, or of its core file, by type, and
//! what keeps each. It calls no function of the program, and needs no symbols: heaps, pools and types say in data where
//! their objects and references are ([`design::inspection`]).
//!
//! # For authors of pool classes
//!
//! A class of your own may take part in stops, though not in collections. A class whose points give way says
//! [`GivesWay::GIVES_WAY`](tripoint_core::GivesWay::GIVES_WAY), has a [`MutatorBuffer`] as its buffer class, asks
//! [`Heap::wants_stop`], and answers by [`Heap::give_way`]. The thread that stops the heap has to trip the points of
//! each such pool ([`Heap::stop_with`], [`PoolHeader::trip_points`](tripoint_core::PoolHeader::trip_points)); the heap
//! trips those of automatic pools.
//!
//! # How it is built
//!
//! ```text
//!   typed        typed objects: enter, Gc, Link, roots, by the allocation points of `ap`
//!   images       objects as bytes that processes map and share
//!   frozen       memory that collections never look at
//!   transforms   objects that take the place of others, in all references
//!   walks        all objects, all roots, and what keeps an object
//!   classes      Ams, Lo, Amc, Amcz, Awl: what a pool does with its segments, copies, free runs, the sweep
//!   collect      one collection, at once or in steps; registering roots; collections in a fill; stress
//!   heaps        Heap, Mutator, the pools of a heap: how threads are stopped
//!   messages     the queue of messages: objects to be finalized, collections
//!   locations    whether addresses still hold
//!   policy       what was allocated, and when a collection is due
//!   roots        where references come from, other than objects
//!   scans        formats, and the state of a scan: what references are passed to
//!   segments     the memory of pools: bits, cards, generations
//!   outlines     what readers outside of the process know, as data
//!   list, queue  things that stay where they are
//!   at_stop      what says that a heap is stopped
//! ```
//!
//! Design: [`design::gc`], [`design::gc_generations`], [`design::gc_steps`], [`design::gc_typed`],
//! [`design::gc_transforms`], [`design::inspection`].
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

mod at_stop;
mod classes;
mod collect;
pub mod design;
mod frozen;
mod heaps;
mod images;
mod list;
mod locations;
mod messages;
mod outlines;
mod policy;
mod queue;
mod roots;
mod scans;
mod segments;
mod transforms;
mod typed;
mod walks;

pub use classes::class::{
    Amc, Amcz, Ams, Awl, Kind, Leaf, Lo, Moved, MovedLeaf, Swept, SweptOptions, Traced, WeakSlots,
};
pub use collect::pressure::Parked;
pub use collect::registering::Root;
pub use collect::steps::Step;
pub use collect::stress::Stressed;
pub use frozen::fault::FrozenFault;
pub use frozen::segment::FrozenSegment;
pub use heaps::heap::{Heap, HeapCounts, HeapOptions};
pub use heaps::mutator::Mutator;
pub use heaps::mutator_buffer::MutatorBuffer;
pub use heaps::postponed::{Late, Postponed};
pub use heaps::stopped::Stopped;
pub use images::error::{ImageError, WriteImageError};
pub use images::header::{IMAGE_ALIGN, ImageHeader};
pub use images::image::{Image, relocate_image};
pub use images::plan::{ImageEntry, ImageOptions, ImagePlan};
pub use locations::dependency::LocationDependency;
pub use messages::message::Message;
pub use outlines::format_outline::{FormatOutline, ObjectKind};
pub use policy::accounts::{GenerationPolicy, Policy};
pub use policy::due::{Due, Nearness};
pub use policy::report::{Cause, Collection};
pub use roots::root::{RootFunction, RootId, Tag};
pub use scans::format::{Format, MovableFormat};
pub use scans::scan::Scan;
pub use segments::generation::GENERATIONS;
pub use segments::object::Object;
pub use segments::segment_use::SegmentUse;
pub use segments::writes::Writes;
pub use transforms::not_applied::NotApplied;
pub use transforms::transform::Transform;
pub use typed::final_queue::FinalQueue;
pub use typed::inside::Inside;
pub use typed::link::Link;
pub use typed::pinned_rooted::PinnedRooted;
pub use typed::plain::Plain;
pub use typed::reference::Gc;
pub use typed::referent::Referent;
pub use typed::rooted::Rooted;
pub use typed::short_weak_rooted::ShortWeakRooted;
pub use typed::trace::Trace;
pub use typed::typed_mutator::TypedMutator;
pub use typed::typed_objects::TypedObjects;
pub use typed::weak_link::WeakLink;
pub use typed::weak_pair::WeakPair;
pub use typed::weak_rooted::WeakRooted;
pub use walks::census::{Census, TypeCount};
pub use walks::path::{NoPath, Path, PathStep};
pub use walks::roots::{Referrer, RootReference};

/// For models and tests of this workspace, and for what macros expand to: not part of what the crate promises.
#[doc(hidden)]
pub mod internal {
    pub use crate::heaps::attendance::{Attendance, Place, Waiting};
    pub use crate::heaps::frozen_range::{EnclosingRange, FrozenRange};
    pub use crate::heaps::stop_word::StopWord;
    pub use crate::outlines::type_outline::{PartOutline, TypeOutline};
    pub use crate::typed::declared::{Fields, field_outline, have_references, have_weak_links};
}

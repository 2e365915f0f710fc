//! Typed objects are dropped while another thread collects the same heap (design/gc-typed.md `.typed.leave`).

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use crate::common::Yield;
use crate::items::{ALL, Item, objects};
use tripoint_core::{ClientArena, ClientArenaOptions, Event, EventHook, SymmetricFence};
use tripoint_gc::{Gc, Heap, HeapOptions, object_types};

object_types! {
    /// Does not move, so it is in another pool than what it refers to.
    #[repr(align(16))]
    struct Fixed<'g> {
        item: Option<Gc<'g, Item<'g>>>,
    }
}

/// Once a first pool was destroyed and returned its memory: has another thread act, and waits for it.
#[derive(Debug, Default)]
struct Act {
    channels: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>>,
    destroyed: AtomicUsize,
}

impl EventHook for Act {
    fn event(&self, event: Event) {
        if let Event::DestroyPool { .. } = event
            && let Some((act, acted)) = &*self.channels.lock().unwrap()
            // A collection while the first one still has its memory would find what refers to it, once and for all.
            && self.destroyed.fetch_add(1, Ordering::Relaxed) == 1
        {
            act.send(()).unwrap();
            acted.recv().unwrap();
        }
    }
}

/// What the objects of one pool refer to is memory of others as soon as its pool is dropped.
#[test]
fn objects_are_dropped_while_others_are_collected() {
    let mut memory = Box::new_uninit_slice(128 << 10);
    let hook = Act::default();
    let options = ClientArenaOptions { grain: Some(1 << 10), event_hook: Some(&hook) };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    let heap = Heap::create(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }).unwrap();
    let (dropped, kept) = (objects(&heap), objects(&heap));
    let mut mutator = dropped.register().unwrap();
    let roots = mutator.enter(|inside| {
        [(); 100].map(|()| {
            let item = inside.alloc(Item { name: 1, copy: 1, next: None }).unwrap();
            dropped.root(inside, inside.alloc(Fixed { item: Some(item) }).unwrap()).unwrap()
        })
    });
    drop((roots, mutator));
    let ((act, asked), (answer, acted)) = (mpsc::channel(), mpsc::channel());
    let rounds = thread::scope(|scope| {
        let collector = scope.spawn(|| {
            let answer = answer;
            let mut mutator = kept.register().unwrap();
            // No collection but the one below: that of the whole heap looks at no dead object.
            let _parked = heap.park();
            let mut rounds = 0;
            for () in asked {
                // Objects like items, but larger, in all memory that there is.
                mutator
                    .enter(|inside| while inside.alloc((None::<Gc<'_, str>>, 1, 1, [1_usize; 4])).is_ok() {});
                heap.collect_up_to(0, ALL).unwrap();
                rounds += 1;
                answer.send(()).unwrap();
            }
            rounds
        });
        *hook.channels.lock().unwrap() = Some((act, acted));
        drop(dropped);
        *hook.channels.lock().unwrap() = None;
        collector.join().unwrap()
    });
    assert_eq!((rounds, hook.destroyed.load(Ordering::Relaxed)), (1, 5));
}

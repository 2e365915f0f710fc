//! Weak links, weak pairs and weak roots of typed objects, against a naive model (design/gc-typed.md `.typed.weak`,
//! `.typed.pairs`).

use core::time::Duration;

use crate::common::{WORD, with_heap};
use crate::items::{ALL, kept, with_objects};
use proptest::prelude::*;
use tripoint_core::{Arena, Error};
use tripoint_gc::{
    Gc, Link, Rooted, Scan, SweptOptions, Trace, TypedObjects, WeakLink, WeakPair, WeakRooted, object_types,
};
use tripoint_oracle::cases;

object_types! {
    struct Symbol<'g> {
        name: Gc<'g, str>,
        value: Link<'g, Symbol<'g>>,
    }

    /// Strong and weak references in one object.
    struct Mixed<'g> {
        strong: Link<'g, str>,
        weak: WeakLink<'g, str>,
        pair: WeakPair<'g, str, [u64]>,
    }
}

#[test]
fn a_weak_link_is_cleared_when_its_object_is_freed() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let (table, mut symbols) = mutator.enter(|inside| {
            let table = inside.slice(20, |_| WeakLink::<Symbol<'_>>::default()).unwrap();
            let mut symbols = Vec::new();
            for (index, entry) in table.iter().enumerate() {
                let name = inside.text(&index.to_string()).unwrap();
                let symbol = inside.alloc(Symbol { name, value: Link::default() }).unwrap();
                entry.set(inside, symbol);
                symbols.push(objects.root(inside, symbol).unwrap());
            }
            (objects.root(inside, table).unwrap(), symbols)
        });
        for left in [20, 13, 0] {
            symbols.truncate(left);
            mutator.collect(ALL).unwrap();
            mutator.enter(|inside| {
                let table = table.get(inside).unwrap();
                for (index, entry) in table.iter().enumerate() {
                    let found = entry.get().map(|symbol| symbol.name.parse().unwrap());
                    assert_eq!(found, (index < left).then_some(index));
                    if index < left {
                        assert!(
                            symbols[index].get(inside).unwrap().is_same(entry.get().unwrap()),
                            "it was moved"
                        );
                    }
                }
            });
        }
        assert_eq!(kept(&mut mutator), (2 + 20) * WORD, "the table alone");
    });
}

#[test]
fn one_object_has_references_of_all_ranks() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let (mixed, key): (Rooted<'_, Mixed<'static>>, Rooted<'_, str>) = mutator
            .try_enter(|inside| {
                let (strong, weak) = (inside.text("strong")?, inside.text("weak")?);
                let (key, value) = (inside.text("key")?, inside.slice(3, |index| index as u64)?);
                let mixed = inside.alloc(Mixed {
                    strong: Link::new(Some(strong)),
                    weak: WeakLink::new(Some(weak)),
                    pair: WeakPair::new(Some((key, value))),
                })?;
                Ok((objects.root(inside, mixed)?, objects.root(inside, key)?))
            })
            .unwrap();
        mutator.collect(ALL).unwrap();
        mutator.enter(|inside| {
            let mixed = mixed.get(inside).unwrap();
            assert_eq!(mixed.strong.get().as_deref(), Some("strong"));
            assert!(mixed.weak.get().is_none());
            let (found, value) = mixed.pair.get().unwrap();
            assert!(found.is_same(key.get(inside).unwrap()));
            assert_eq!((&*found, &*value), ("key", &[0, 1, 2][..]));
            // Another pair: the key is kept by the link.
            let strong = mixed.strong.get().unwrap();
            mixed.pair.set(inside, (strong, inside.slice(1, |_| 9).unwrap()));
            mixed.weak.set(inside, strong);
        });
        mutator.collect(ALL).unwrap();
        mutator.enter(|inside| {
            let mixed = mixed.get(inside).unwrap();
            assert_eq!(mixed.weak.get().as_deref(), Some("strong"));
            assert_eq!(mixed.pair.get().map(|(_, value)| value[0]), Some(9));
            mixed.strong.set(inside, None);
        });
        mutator.collect(ALL).unwrap();
        mutator.enter(|inside| {
            let mixed = mixed.get(inside).unwrap();
            assert!(mixed.weak.get().is_none() && mixed.pair.get().is_none());
            mixed.pair.set(inside, None);
        });
        drop(key);
        assert_eq!(kept(&mut mutator), WORD + size_of::<Mixed<'_>>());
    });
}

#[test]
fn weak_roots_keep_nothing() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let (root, mut weak): (Rooted<'_, u64>, Vec<WeakRooted<'_, u64>>) = mutator.enter(|inside| {
            let numbers: Vec<_> = (0..40_u64).map(|number| inside.alloc(number).unwrap()).collect();
            let weak = numbers.iter().map(|number| objects.weak_root(inside, *number).unwrap()).collect();
            (objects.root(inside, numbers[33]).unwrap(), weak)
        });
        assert_eq!(kept(&mut mutator), WORD + size_of::<u64>());
        let others = TypedObjects::create(objects.heap(), SweptOptions::default()).unwrap();
        mutator.enter(|inside| {
            for (index, weak) in weak.iter().enumerate() {
                assert_eq!(weak.get(inside).unwrap().as_deref(), (index == 33).then_some(&33));
            }
            let number = weak[33].get(inside).unwrap().unwrap();
            assert!(number.is_same(root.get(inside).unwrap()));
            weak[0].set(inside, number).unwrap();
        });
        drop(weak.split_off(1));
        mutator.collect(ALL).unwrap();
        mutator.enter(|inside| assert_eq!(weak[0].get(inside).unwrap().as_deref(), Some(&33)));
        others.register().unwrap().enter(|inside| {
            assert!(matches!(weak[0].get(inside), Err(Error::Parameter(_))));
            let number = inside.alloc(1).unwrap();
            assert!(matches!(weak[0].set(inside, number), Err(Error::Parameter(_))));
        });
    });
}

object_types! {
    struct Node<'g> {
        name: usize,
        links: [Link<'g, Node<'g>>; 2],
    }

    struct Table<'g> {
        pairs: Gc<'g, [WeakPair<'g, Node<'g>, Node<'g>>]>,
        weak: Gc<'g, [WeakLink<'g, Node<'g>>]>,
    }
}

const NODES: usize = 12;

/// Nodes with links, pairs of key and value, weak links, and the nodes that are roots, in the order in which these are dropped.
#[derive(Clone, Debug)]
struct Graph {
    links: Vec<[Option<usize>; 2]>,
    pairs: Vec<(usize, usize)>,
    weak: Vec<usize>,
    roots: Vec<usize>,
}

fn graph() -> impl Strategy<Value = Graph> {
    let link = prop_oneof![2 => Just(None), 1 => (0..NODES).prop_map(Some)];
    (
        prop::collection::vec([link.clone(), link], NODES),
        prop::collection::vec((0..NODES, 0..NODES), 0..10),
        prop::collection::vec(0..NODES, 0..5),
        prop::collection::vec(0..NODES, 0..5),
    )
        .prop_map(|(links, pairs, weak, roots)| Graph { links, pairs, weak, roots })
}

impl Graph {
    /// Which nodes these roots and pairs keep.
    fn live(&self, roots: &[usize]) -> [bool; NODES] {
        let mut is_live = [false; NODES];
        roots.iter().for_each(|&root| is_live[root] = true);
        loop {
            let before = is_live;
            for (node, links) in self.links.iter().enumerate() {
                links.iter().flatten().for_each(|&to| is_live[to] |= is_live[node]);
            }
            for &(key, value) in &self.pairs {
                is_live[value] |= is_live[key];
            }
            if is_live == before {
                return is_live;
            }
        }
    }
}

/// Makes the graph, and drops one root after the other, with a collection after each.
fn check(graph: &Graph) {
    with_heap(256 << 10, |heap| {
        let objects = TypedObjects::create(heap, SweptOptions { segment_size: 4 << 10 }).unwrap();
        let mut mutator = objects.register().unwrap();
        let (table, mut roots) = mutator.enter(|inside| {
            let nodes: [_; NODES] =
                core::array::from_fn(|name| inside.alloc(Node { name, links: Default::default() }).unwrap());
            for (node, links) in nodes.iter().zip(&graph.links) {
                for (link, to) in node.links.iter().zip(links) {
                    link.set(inside, to.map(|to| nodes[to]));
                }
            }
            let pair = |&(key, value): &(usize, usize)| WeakPair::new(Some((nodes[key], nodes[value])));
            let pairs = inside.slice(graph.pairs.len(), |index| pair(&graph.pairs[index])).unwrap();
            let weak = inside
                .slice(graph.weak.len(), |index| WeakLink::new(Some(nodes[graph.weak[index]])))
                .unwrap();
            let table = inside.alloc(Table { pairs, weak }).unwrap();
            let roots: Vec<_> =
                graph.roots.iter().map(|&root| objects.root(inside, nodes[root]).unwrap()).collect();
            (objects.root(inside, table).unwrap(), roots)
        });
        loop {
            let is_live = graph.live(&graph.roots[..roots.len()]);
            mutator.empty();
            let found = mutator.collect(Duration::MAX).unwrap();
            let nodes = is_live.iter().filter(|is_live| **is_live).count() * (WORD + size_of::<Node<'_>>());
            let tables = (3 + 4 + 2 * graph.pairs.len() + graph.weak.len()) * WORD;
            assert_eq!(found.kept, nodes + tables, "what is kept is reachable");
            mutator.enter(|inside| {
                let table = table.get(inside).unwrap();
                for (pair, &(key, value)) in table.pairs.iter().zip(&graph.pairs) {
                    let names = pair.get().map(|(key, value)| (key.name, value.name));
                    assert_eq!(names, is_live[key].then_some((key, value)));
                }
                for (weak, &node) in table.weak.iter().zip(&graph.weak) {
                    assert_eq!(weak.get().map(|node| node.name), is_live[node].then_some(node));
                }
            });
            if roots.pop().is_none() {
                break;
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 2 } else { 200 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn weak_references_are_as_the_model_says(graph in graph()) {
        check(&graph);
    }

    /// Most pairs are of a chain, in any order: the values have to wait for their keys.
    #[test]
    fn chains_of_pairs_are_as_the_model_says(
        graph in graph(),
        chain in Just((1..NODES).map(|value| (value - 1, value)).collect::<Vec<_>>()).prop_shuffle(),
        length in 0..NODES,
    ) {
        let pairs = chain.into_iter().take(length).chain(graph.pairs.into_iter().take(3)).collect();
        let links = graph.links.into_iter().map(|[link, _]| [link.filter(|to| to % 4 == 0), None]).collect();
        check(&Graph { links, pairs, ..graph });
    }
}

object_types! {
    /// A key without references, so that no scan meets it.
    struct Key(usize);

    /// One pair, and the object with the next one.
    struct Chained<'g> {
        pair: WeakPair<'g, Key, Chained<'g>>,
        next_key: Gc<'g, Key>,
    }

    struct Chains<'g> {
        pairs: Gc<'g, [WeakPair<'g, Key, Key>]>,
        first: Gc<'g, Chained<'g>>,
    }
}

/// Collects two chains of pairs, in which each value leads to the next key, in the worst order: one in a slice, and one in
/// objects that keep each other. Returns the bytes that were examined while there was a key, and how many pairs there were
/// after it was gone.
fn collect_chains(memory: usize, count: usize, limit: Option<usize>) -> (usize, usize) {
    let mut outcome = (0, 0);
    with_heap(memory, |heap| {
        let objects = TypedObjects::create(heap, SweptOptions { segment_size: 4 << 10 }).unwrap();
        let mut mutator = objects.register().unwrap();
        let (chains, key) = mutator.enter(|inside| {
            let keys = inside.slice(count + 1, |index| inside.alloc(Key(index)).ok()).unwrap();
            let key = |index: usize| keys[index].unwrap();
            let pair = |index| WeakPair::new(Some((key(index), key(index + 1))));
            let pairs = inside.slice(count, |index| pair(count - 1 - index)).unwrap();
            let end = Chained { pair: WeakPair::default(), next_key: key(count) };
            let mut first = inside.alloc(end).unwrap();
            for index in (0..count).rev() {
                let pair = WeakPair::new(Some((key(index), first)));
                first = inside.alloc(Chained { pair, next_key: key(index) }).unwrap();
            }
            let first =
                inside.alloc(Chained { pair: WeakPair::new(Some((key(0), first))), next_key: key(count) });
            let chains = inside.alloc(Chains { pairs, first: first.unwrap() }).unwrap();
            (objects.root(inside, chains).unwrap(), objects.root(inside, key(0)).unwrap())
        });
        let mut hog = None;
        if let Some(limit) = limit {
            mutator.collect(ALL).unwrap();
            let owner = heap.arena().register().unwrap();
            let rest = (0..).map_while(|_| heap.arena().alloc_tracts(limit, owner).ok()).count();
            assert!(rest > 0);
            hog = Some(owner);
        }
        let examined = mutator.collect(ALL).unwrap().examined;
        mutator.enter(|inside| {
            let chains = chains.get(inside).unwrap();
            for (index, pair) in chains.pairs.iter().rev().enumerate() {
                let (key, value) = pair.get().unwrap();
                assert_eq!((key.0, value.0), (index, index + 1));
            }
            let (mut at, mut length) = (chains.first, 0);
            while let Some((_, next)) = at.pair.get() {
                (at, length) = (next, length + 1);
            }
            assert_eq!(length, count + 1);
        });
        drop(key);
        mutator.collect(ALL).unwrap();
        let left = mutator.enter(|inside| {
            let chains = chains.get(inside).unwrap();
            chains.pairs.iter().filter(|pair| pair.get().is_some()).count()
                + usize::from(chains.first.pair.get().is_some())
        });
        if let Some(owner) = hog {
            // SAFETY: the pool's number is used no more, and nothing uses its memory.
            unsafe { heap.arena().unregister(owner) };
        }
        outcome = (examined, left);
    });
    outcome
}

/// Each pair is looked at as often as in a short chain (design/gc-typed.md `.typed.pairs.waiting`).
#[test]
fn chains_of_pairs_take_time_in_proportion_to_them() {
    let count = if cfg!(miri) { 10 } else { 1_000 };
    let (short, none) = collect_chains(1 << 20, count, None);
    let (long, no_other) = collect_chains(1 << 20, 4 * count, None);
    assert_eq!((none, no_other), (0, 0), "the key is dead");
    assert!(long < 5 * short, "{short} bytes were examined for {count} pairs, {long} for four times as many");
}

/// If there is no memory for pairs that wait, all are looked at until nothing changes.
#[test]
fn chains_of_pairs_need_no_memory() {
    let count = if cfg!(miri) { 10 } else { 300 };
    let (examined, left) = collect_chains(256 << 10, count, Some(1 << 10));
    let (with_memory, _) = collect_chains(256 << 10, count, None);
    assert_eq!(left, 0, "the key is dead");
    assert!(
        cfg!(miri) || examined > 3 * with_memory,
        "{examined} bytes without memory, {with_memory} with it"
    );
}

/// Each value is the next key, against the order in which pairs are looked at, and refers to a key before.
#[test]
fn values_keep_keys_of_other_pairs() {
    let pairs = (1..NODES).rev().map(|value| (value - 1, value)).collect();
    let links = (0..NODES).map(|node| [node.checked_sub(1), None]).collect();
    check(&Graph { links, pairs, weak: (0..NODES).collect(), roots: vec![5, 0] });
}

/// The table is old and its entries are young, or the other way round (design/gc-generations.md `.card`).
#[test]
fn minor_collections_fix_weak_references_of_older_objects() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let (table, old) = mutator.enter(|inside| {
            let pairs = inside.slice(4, |_| WeakPair::default()).unwrap();
            let weak = inside.slice(4, |_| WeakLink::default()).unwrap();
            let old = inside.alloc(Node { name: 100, links: Default::default() }).unwrap();
            let table = inside.alloc(Table { pairs, weak }).unwrap();
            (objects.root(inside, table).unwrap(), objects.root(inside, old).unwrap())
        });
        for _ in 0..3 {
            mutator.collect(ALL).unwrap();
        }
        for round in 0..if cfg!(miri) { 2 } else { 20 } {
            let mut kept = mutator.enter(|inside| {
                let node = |name| inside.alloc(Node { name, links: Default::default() }).unwrap();
                let (table, old) = (table.get(inside).unwrap(), old.get(inside).unwrap());
                let (live, dead) = (node(1), node(2));
                // Young keys, an old key of a young value, and a pair whose key is the value of another.
                table.pairs[0].set(inside, (live, node(3)));
                table.pairs[1].set(inside, (dead, live));
                table.pairs[2].set(inside, (old, node(4)));
                let value = table.pairs[2].get().unwrap().1;
                table.pairs[3].set(inside, (value, node(5)));
                for (weak, to) in table.weak.iter().zip([live, dead, old, value]) {
                    weak.set(inside, to);
                }
                Some(objects.root(inside, live).unwrap())
            });
            for oldest in [0, 0, 1, 1, 2] {
                let found = mutator.collect_up_to(oldest, ALL).unwrap();
                mutator.enter(|inside| {
                    let table = table.get(inside).unwrap();
                    let pairs = [0, 1, 2, 3].map(|index: usize| {
                        table.pairs[index].get().map(|(key, value)| (key.name, value.name))
                    });
                    let weak = [0, 1, 2, 3].map(|index: usize| table.weak[index].get().map(|node| node.name));
                    let context = (round, oldest, found);
                    if kept.is_some() {
                        assert_eq!(pairs, [Some((1, 3)), None, Some((100, 4)), Some((4, 5))], "{context:?}");
                        assert_eq!(weak, [Some(1), None, Some(100), Some(4)], "{context:?}");
                    } else {
                        assert_eq!(pairs[1..], [None, Some((100, 4)), Some((4, 5))], "{context:?}");
                        assert_eq!(weak[1..], [None, Some(100), Some(4)], "{context:?}");
                    }
                });
                if oldest == 1 {
                    kept = None;
                }
            }
            mutator.enter(|inside| {
                let table = table.get(inside).unwrap();
                assert!(table.pairs[0].get().is_none() && table.weak[0].get().is_none(), "after all of it");
            });
        }
    });
}

/// The twin: a weak link that collections do not see.
struct Unseen<'g>(WeakLink<'g, u64>);

// SAFETY: none: it forgets a weak link. The test does not follow it.
unsafe impl Trace for Unseen<'_> {
    type At<'g> = Unseen<'g>;
    type Static = Unseen<'static>;

    const HAS_REFERENCES: bool = true;
    const HAS_WEAK_LINKS: bool = true;

    fn trace(&mut self, _scan: &mut Scan<'_>) {}
}

#[test]
#[should_panic(expected = "it leads to a dead object")]
fn a_weak_link_that_is_not_traced_is_found() {
    with_objects(64 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let unseen = mutator.enter(|inside| {
            let unseen = inside.alloc(Unseen(WeakLink::new(Some(inside.alloc(7).unwrap())))).unwrap();
            objects.root(inside, unseen).unwrap()
        });
        mutator.collect(ALL).unwrap();
        mutator.enter(|inside| {
            assert!(unseen.get(inside).unwrap().0.get().is_none(), "it leads to a dead object");
        });
    });
}

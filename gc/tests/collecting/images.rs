//! Images of objects: written, opened, relocated, and refused if they are damaged (design/gc.md `.req.image`).

use core::ptr;
use core::time::Duration;

use crate::common::{Slots, TestHeap, WORD, make, point, pool, set_reference, with_heap};
use proptest::prelude::*;
use tripoint_core::{Addr, Arena, Block};
use tripoint_gc::{
    Format, Gc, IMAGE_ALIGN, Image, ImageEntry, ImageError, ImageHeader, ImageOptions, Leaf, Moved,
    MovedLeaf, Scan, Swept, SweptOptions, Tag, Traced, TypedObjects, WeakSlots, WriteImageError,
    object_types, relocate_image,
};
use tripoint_oracle::cases;

const ALL: Duration = Duration::MAX;
const FINGERPRINT: u64 = 0x0123_4567_89ab_cdef;

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; IMAGE_ALIGN]);

/// Memory for an image at a place that it can have as its base.
struct Pages(Vec<Page>);

impl Pages {
    fn new(size: usize) -> Self {
        Self(vec![Page([0; IMAGE_ALIGN]); size.div_ceil(size_of::<Page>())])
    }

    fn bytes(&mut self, size: usize) -> &mut [u8] {
        assert!(size <= size_of_val(self.0.as_slice()));
        // SAFETY: pages are bytes, one after the other, that many of them, and the vector is borrowed.
        unsafe { core::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), size) }
    }

    fn base(&self) -> usize {
        self.0.as_ptr().addr()
    }
}

fn options(base: usize) -> ImageOptions {
    ImageOptions { base, fingerprint: FINGERPRINT }
}

/// Writes an image of what `roots` lead to. Returns its memory and its size.
fn write_image(heap: &TestHeap<'_>, roots: &[*const u8], base: Option<usize>) -> (Pages, usize) {
    let stopped = heap.stop(ALL).unwrap();
    let mut table = vec![ImageEntry::default(); stopped.census(&mut []).all.objects];
    let size = stopped.plan_image(roots, &mut table, options(IMAGE_ALIGN)).unwrap().size();
    let mut pages = Pages::new(size);
    let base = base.unwrap_or(pages.base());
    let plan = stopped.plan_image(roots, &mut table, options(base)).unwrap();
    assert_eq!(plan.size(), size);
    // SAFETY: nodes have no bytes that are not written, and the heap is stopped since the plan was made.
    unsafe { plan.write_to(pages.bytes(size)) }.unwrap();
    (pages, size)
}

/// The names of the nodes of an image that is in place, in the order in which they are met, each with the numbers of
/// those that it refers to.
fn graph(image: &Image<'_>) -> Vec<(usize, Vec<usize>)> {
    graph_with(image, |_| 0)
}

/// The same for nodes whose headers have as many words as `header` says of their names.
fn graph_with(image: &Image<'_>, header: fn(usize) -> usize) -> Vec<(usize, Vec<usize>)> {
    let mut met: Vec<*const u8> = image.roots().map(Result::unwrap).collect();
    let mut nodes = Vec::new();
    while nodes.len() < met.len() {
        let node = met[nodes.len()].cast::<usize>();
        // SAFETY: the image has whole nodes, and the pointer has its provenance: size, name, references.
        let (size, name) = unsafe { (node.read(), node.add(1).read()) };
        let references = (2..size / WORD - header(name)).filter_map(|word| {
            // SAFETY: that many words are in the node.
            let reference = unsafe { node.add(word).cast::<*const u8>().read() };
            let to = image.pointer(reference)?;
            Some(met.iter().position(|other| *other == to).unwrap_or_else(|| {
                met.push(to);
                met.len() - 1
            }))
        });
        let references = references.collect();
        nodes.push((name, references));
    }
    nodes
}

#[test]
fn an_image_is_what_was_reachable() {
    with_heap(256 << 10, |heap| {
        let (nodes, leaves) = (pool::<Traced>(heap, 0), pool::<Leaf>(heap, 0));
        let mutator = heap.register().unwrap();
        let (mut node_point, mut leaf_point) = (point(&nodes, &mutator), point(&leaves, &mutator));
        let leaf = make(&mut leaf_point, 1, &[]).unwrap();
        let first = make(&mut node_point, 2, &[leaf, ptr::null_mut(), leaf]).unwrap();
        make(&mut node_point, 3, &[first]).unwrap();
        let second = make(&mut node_point, 4, &[first]).unwrap();
        // SAFETY: the node has three references.
        unsafe { set_reference(first, 1, second) };
        drop((node_point, leaf_point, mutator));
        let (mut pages, size) = write_image(heap, &[second, leaf], None);
        let image = Image::open(pages.bytes(size), FINGERPRINT).unwrap();
        assert!(image.is_in_place());
        assert_eq!(image.check(), Ok(()));
        assert_eq!((image.header().count(), image.header().size()), (3, size));
        let expected = vec![(4, vec![2]), (1, vec![]), (2, vec![1, 0, 1])];
        assert_eq!(graph(&image), expected);
        // Elsewhere it is the same, once it was relocated.
        let mut copy = Pages::new(size);
        copy.bytes(size).copy_from_slice(pages.bytes(size));
        assert!(!Image::open(copy.bytes(size), FINGERPRINT).unwrap().is_in_place());
        assert_eq!(relocate_image(copy.bytes(size), FINGERPRINT), Ok(4));
        drop(pages);
        let image = Image::open(copy.bytes(size), FINGERPRINT).unwrap();
        assert!(image.is_in_place());
        assert_eq!(graph(&image), expected);
        // And a heap may have it as a frozen segment.
        let objects = image.header().objects();
        // SAFETY: the pages, which are not changed while the segment is registered.
        let memory = unsafe { Block::new(ptr::NonNull::from(copy.bytes(size)).cast(), size) };
        // SAFETY: the image refers to nothing but itself.
        let segment = unsafe { heap.register_frozen(memory, objects) }.unwrap();
        // SAFETY: the image is of such nodes.
        assert_eq!(unsafe { segment.check(nodes.format()) }, Ok(3));
    });
}

/// What the image has is where the collection moved it to.
#[test]
fn objects_that_moved_are_written_as_others_are() {
    with_heap(256 << 10, |heap| {
        let (nodes, leaves) = (pool::<Moved>(heap, 0), pool::<MovedLeaf>(heap, 0));
        let mut mutator = heap.register().unwrap();
        let (mut node_point, mut leaf_point) = (point(&nodes, &mutator), point(&leaves, &mutator));
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let leaf = make(&mut leaf_point, 1, &[]).unwrap();
        let first = make(&mut node_point, 2, &[leaf, leaf]).unwrap();
        make(&mut node_point, 3, &[first]).unwrap();
        slots.set(0, make(&mut node_point, 4, &[first, leaf]).unwrap());
        node_point.empty();
        leaf_point.empty();
        assert_eq!(mutator.collect(ALL).unwrap().moved, (4 + 4 + 2) * WORD);
        drop((node_point, leaf_point, mutator));
        let (mut pages, size) = write_image(heap, &[slots.get(0)], None);
        let image = Image::open(pages.bytes(size), FINGERPRINT).unwrap();
        assert_eq!(image.check(), Ok(()));
        assert_eq!(graph(&image), [(4, vec![1, 2]), (2, vec![2, 2]), (1, vec![])]);
    });
}

object_types! {
    /// A value that leads to another.
    struct Pair<'g>(Gc<'g, str>, u64);
}

/// Their headers are addresses of this program (design/gc.md `.image.typed`).
#[test]
fn typed_objects_are_refused() {
    with_heap(64 << 10, |heap| {
        let objects = TypedObjects::create(heap, SweptOptions { segment_size: 4 << 10 }).unwrap();
        let mut mutator = objects.register().unwrap();
        let root = mutator.enter(|inside| {
            let pair = Pair(inside.text("typed").unwrap(), 7);
            objects.root(inside, inside.alloc(pair).unwrap()).unwrap()
        });
        let places = mutator.enter(|inside| {
            let pair = root.get(inside).unwrap();
            [ptr::from_ref(pair.get()).cast::<u8>(), ptr::from_ref(pair.0.get()).cast::<u8>()]
        });
        let stopped = heap.stop(ALL).unwrap();
        let mut table = [ImageEntry::default(); 2];
        for place in places {
            let roots = [stopped.object_at(place).unwrap().reference.as_ptr().cast_const()];
            let planned = stopped.plan_image(&roots, &mut table, options(IMAGE_ALIGN));
            let Err(WriteImageError::NotForImages { object: refused }) = planned else {
                panic!("{planned:?}")
            };
            assert!(stopped.object_at(place.with_addr(refused.get())).is_some());
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 2 } else { 64 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Random graphs are the same in their images, at the base and elsewhere.
    #[test]
    fn random_graphs_survive(
        sizes in prop::collection::vec(0_usize..8, 1..60),
        links in prop::collection::vec((any::<usize>(), any::<usize>(), any::<usize>()), 0..120),
        begin in prop::collection::vec(any::<usize>(), 1..4),
    ) {
        with_heap(256 << 10, |heap| {
            let (plain, headed) = (pool::<Traced>(heap, 0), pool::<Traced>(heap, 1));
            let mutator = heap.register().unwrap();
            let (mut plain_point, mut headed_point) = (point(&plain, &mutator), point(&headed, &mutator));
            let nodes: Vec<_> = sizes.iter().enumerate().map(|(name, &size)| {
                let references = vec![ptr::null_mut(); size];
                if name % 2 == 0 {
                    make(&mut plain_point, name, &references).unwrap()
                } else {
                    let node = make(&mut headed_point, name, &references).unwrap();
                    // SAFETY: the header is a word of the node, which nothing reads.
                    unsafe { node.sub(WORD).cast::<usize>().write(usize::MAX) };
                    node
                }
            }).collect();
            let mut shadow: Vec<Vec<Option<usize>>> = sizes.iter().map(|&size| vec![None; size]).collect();
            for (from, index, to) in links {
                let (from, to) = (from % nodes.len(), to % nodes.len());
                if sizes[from] != 0 {
                    shadow[from][index % sizes[from]] = Some(to);
                    // SAFETY: the node has that many references.
                    unsafe { set_reference(nodes[from], index % sizes[from], nodes[to]) };
                }
            }
            drop((plain_point, headed_point, mutator));
            let mut met: Vec<usize> = begin.iter().map(|root| root % nodes.len()).collect();
            let roots: Vec<_> = met.iter().map(|&root| nodes[root].cast_const()).collect();
            let mut expected = Vec::new();
            while expected.len() < met.len() {
                let node = met[expected.len()];
                let references = shadow[node].iter().flatten().map(|to| {
                    met.iter().position(|other| other == to).unwrap_or_else(|| {
                        met.push(*to);
                        met.len() - 1
                    })
                });
                let references = references.collect();
                expected.push((node, references));
            }
            let (mut pages, size) = write_image(heap, &roots, None);
            assert_eq!(graph_with(&Image::open(pages.bytes(size), FINGERPRINT).unwrap(), |name| name % 2), expected);
            let (mut pages, size) = write_image(heap, &roots, Some(IMAGE_ALIGN << 8));
            relocate_image(pages.bytes(size), FINGERPRINT).unwrap();
            assert_eq!(graph_with(&Image::open(pages.bytes(size), FINGERPRINT).unwrap(), |name| name % 2), expected);
        });
    }

    /// Bytes that were changed anywhere are refused, or are an image all of whose references lead into it.
    #[test]
    fn damaged_images_are_refused_or_sound(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        in_header in any::<bool>(),
        is_sealed in any::<bool>(),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = small_image();
        for (index, value) in changes {
            let end = if in_header { ImageHeader::SIZE } else { bytes.len() };
            bytes[index.index(end)] = value;
        }
        if is_sealed {
            seal(&mut bytes);
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        survive(&bytes);
    }

    /// Headers with any numbers, as somebody may write them on purpose.
    #[test]
    fn headers_with_any_numbers_are_refused_or_sound(
        numbers in prop::collection::vec(prop_oneof![any::<u64>(), 0_u64..10_000, (0_u64..1 << 52).prop_map(|page| page << 12)], 4),
    ) {
        let mut bytes = small_image();
        for (index, number) in numbers.iter().enumerate() {
            bytes[24 + 8 * index..][..8].copy_from_slice(&number.to_ne_bytes());
        }
        seal(&mut bytes);
        survive(&bytes);
    }

    #[test]
    fn any_bytes_are_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        assert!(Image::open(&bytes, FINGERPRINT).is_err());
        assert!(relocate_image(&mut bytes, FINGERPRINT).is_err());
    }
}

/// Opens, checks and relocates: each is refused, or what it leads to is inside.
fn survive(bytes: &[u8]) {
    let mut pages = Pages::new(bytes.len());
    let copy = pages.bytes(bytes.len());
    copy.copy_from_slice(bytes);
    let bytes = copy;
    if let Ok(image) = Image::open(bytes, FINGERPRINT) {
        let range = bytes.as_ptr_range();
        assert!(image.roots().flatten().all(|root| range.contains(&root)));
        let is_sound = image.check().is_ok();
        let before = bytes.to_vec();
        let relocated = relocate_image(bytes, FINGERPRINT);
        assert_eq!(relocated.is_ok(), is_sound);
        if is_sound {
            let image = Image::open(bytes, FINGERPRINT).unwrap();
            assert!(image.is_in_place());
            assert_eq!(image.check(), Ok(()));
        } else {
            assert_eq!(bytes, before, "what is refused is not changed");
        }
    } else {
        assert!(relocate_image(bytes, FINGERPRINT).is_err());
    }
}

/// Three nodes that refer to each other.
fn small_image() -> Vec<u8> {
    let mut image = Vec::new();
    with_heap(32 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let end = make(&mut point, 1, &[]).unwrap();
        let middle = make(&mut point, 2, &[end, end]).unwrap();
        let first = make(&mut point, 3, &[middle]).unwrap();
        drop((point, mutator));
        let (mut pages, size) = write_image(heap, &[first, end], Some(0x10_0000));
        image = pages.bytes(size).to_vec();
    });
    image
}

/// Where an image's index ends, by the numbers of its header, if it is among the bytes.
fn index_end(bytes: &[u8]) -> Option<usize> {
    let number = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap()) as u128;
    let end = ImageHeader::SIZE as u128 + 8 * number(32) + (number(40) / WORD as u128).div_ceil(8);
    let end = usize::try_from(end.next_multiple_of(IMAGE_ALIGN as u128)).ok()?;
    (end <= bytes.len()).then_some(end)
}

/// Writes the checksums of an image anew.
fn seal(bytes: &mut [u8]) {
    let end = ImageHeader::SIZE - 8;
    if let Some(end) = index_end(bytes) {
        let sum = fnv(&bytes[ImageHeader::SIZE..end]);
        bytes[56..64].copy_from_slice(&sum.to_ne_bytes());
    }
    let sum = fnv(&bytes[..end]);
    bytes[end..end + 8].copy_from_slice(&sum.to_ne_bytes());
}

/// FNV-1a by words.
fn fnv(bytes: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for word in bytes.chunks(8) {
        sum = (sum ^ u64::from_ne_bytes(word.try_into().unwrap())).wrapping_mul(0x100_0000_01b3);
    }
    sum
}

/// A bit of the header, of a root or of a place that is wrong is found, whichever it is: a reference that is not in its
/// place would be neither checked nor relocated.
#[test]
fn each_bit_of_header_roots_and_places_is_checked() {
    let image = small_image();
    let objects = Image::open(&image, FINGERPRINT).unwrap().header().objects();
    // The header, two roots, a byte of places, and some of what lies behind them.
    let tested = (0..ImageHeader::SIZE + 32).chain([objects.start - 1]);
    for (at, bit) in tested.flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bytes = image.clone();
        bytes[at] ^= 1 << bit;
        let opened = Image::open(&bytes, FINGERPRINT);
        let checked = opened.and_then(|image| image.check());
        if at < ImageHeader::SIZE {
            assert!(opened.is_err(), "bit {bit} of byte {at}");
        } else {
            assert_eq!(checked, Err(ImageError::Index), "bit {bit} of byte {at}");
        }
        let before = bytes.clone();
        assert_eq!(relocate_image(&mut bytes, FINGERPRINT).map(drop), checked, "bit {bit} of byte {at}");
        assert_eq!(bytes, before, "what is refused is not changed");
    }
}

/// Images of other versions are refused by name, before their checksums are compared.
#[test]
fn images_of_version_one_are_refused() {
    let mut bytes = small_image();
    bytes[8..12].copy_from_slice(&1_u32.to_ne_bytes());
    let refused = Image::open(&bytes, FINGERPRINT).map(drop);
    assert_eq!(refused, Err(ImageError::Version(1)));
    assert!(refused.unwrap_err().to_string().contains("write it anew"));
}

#[test]
fn each_kind_of_damage_has_its_error() {
    let image = small_image();
    let refused = |at: usize, value: u8, sealed: bool| {
        let mut bytes = image.clone();
        bytes[at] ^= value;
        if sealed {
            seal(&mut bytes);
        }
        Image::open(&bytes, FINGERPRINT).map(drop)
    };
    assert!(Image::open(&image, FINGERPRINT).is_ok());
    assert_eq!(Image::open(&image, 7).map(drop), Err(ImageError::Fingerprint(FINGERPRINT)));
    assert_eq!(refused(0, 1, true), Err(ImageError::Magic));
    assert!(matches!(refused(8, 2, true), Err(ImageError::Version(_)) | Err(ImageError::Machine)));
    assert_eq!(refused(12, 0x40, true), Err(ImageError::Machine));
    assert_eq!(refused(24, 1, false), Err(ImageError::Header), "the checksum is wrong");
    assert_eq!(refused(24, 1, true), Err(ImageError::Header), "the base is not aligned");
    let needed = image.len();
    assert_eq!(
        Image::open(&image[..needed - 1], FINGERPRINT).map(drop),
        Err(ImageError::Short { size: needed - 1, needed })
    );
    assert_eq!(
        Image::open(&image[..9], FINGERPRINT).map(drop),
        Err(ImageError::Short { size: 9, needed: ImageHeader::SIZE })
    );
    let mut bytes = image.clone();
    let objects = Image::open(&image, FINGERPRINT).unwrap().header().objects();
    // The first reference of the second node, which is the third word behind the first node.
    let at = objects.start + 4 * WORD;
    bytes[at..at + WORD].copy_from_slice(&0x10_0000_usize.to_ne_bytes());
    assert_eq!(Image::open(&bytes, FINGERPRINT).unwrap().check(), Err(ImageError::Reference { at }));
    assert_eq!(relocate_image(&mut bytes, FINGERPRINT), Err(ImageError::Reference { at }));
    let mut pages = Pages::new(needed + WORD);
    let shifted = &mut pages.bytes(needed + WORD)[WORD..];
    shifted.copy_from_slice(&image);
    assert_eq!(relocate_image(shifted, FINGERPRINT), Err(ImageError::Unaligned));
}

#[test]
fn what_cannot_be_in_an_image_is_refused() {
    with_heap(256 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let end = make(&mut point, 1, &[]).unwrap();
        let node = make(&mut point, 2, &[end, ptr::null_mut()]).unwrap();
        drop((point, mutator));
        let manual = heap.arena().register().unwrap();
        let tracts = heap.arena().alloc_tracts(1 << 10, manual).unwrap();
        let write = |roots: &[*const u8], entries: usize, base: usize, lacking: usize| {
            let stopped = heap.stop(ALL).unwrap();
            let mut table = vec![ImageEntry::default(); entries];
            let plan = stopped.plan_image(roots, &mut table, options(base))?;
            let mut out = vec![0; plan.size() - lacking];
            // SAFETY: nodes have no bytes that are not written, and the heap is stopped since the plan was made.
            unsafe { plan.write_to(&mut out) }
        };
        let base = IMAGE_ALIGN;
        assert_eq!(write(&[node], 2, base, 0), Ok(1));
        assert_eq!(write(&[], 0, base, 0), Ok(0));
        assert_eq!(write(&[node], 1, base, 0), Err(WriteImageError::Full));
        assert_eq!(write(&[node], 2, base + WORD, 0), Err(WriteImageError::Base));
        assert_eq!(write(&[node], 2, 0, 0), Err(WriteImageError::Base));
        assert_eq!(write(&[node], 2, usize::MAX - IMAGE_ALIGN + 1, 0), Err(WriteImageError::Base));
        assert!(matches!(write(&[node], 2, base, 1), Err(WriteImageError::Size { .. })));
        let inside = node.wrapping_add(WORD);
        assert_eq!(write(&[node, inside], 2, base, 0), Err(WriteImageError::NoObject(Addr::of(inside))));
        // SAFETY: the node has two references. One leads to other memory of the arena.
        unsafe { set_reference(node, 1, tracts.base().as_ptr()) };
        let outside = WriteImageError::Outside { object: Addr::of(node), to: tracts.range().base() };
        assert_eq!(write(&[node], 2, base, 0), Err(outside));
        // SAFETY: the node has two references. One is a number, which is written as it is.
        unsafe { set_reference(node, 1, ptr::without_provenance_mut(3)) };
        assert_eq!(write(&[node], 2, base, 0), Ok(1));
        // SAFETY: the pool's number is used no more, and no thread uses its memory.
        unsafe { heap.arena().unregister(manual) };
        // A search leaves no marks.
        assert_eq!(heap.collect(ALL).unwrap().kept, 0);
    });
}

#[test]
fn objects_with_weak_references_are_refused() {
    with_heap(64 << 10, |heap| {
        let (weak, nodes) = (pool::<WeakSlots>(heap, 0), pool::<Traced>(heap, 0));
        let mutator = heap.register().unwrap();
        let (mut weak_point, mut node_point) = (point(&weak, &mutator), point(&nodes, &mutator));
        let table = make(&mut weak_point, 1, &[ptr::null_mut()]).unwrap();
        let node = make(&mut node_point, 2, &[table]).unwrap();
        drop((weak_point, node_point, mutator));
        let stopped = heap.stop(ALL).unwrap();
        let (mut entries, roots) = ([ImageEntry::default(); 2], [node.cast_const()]);
        let planned = stopped.plan_image(&roots, &mut entries, options(IMAGE_ALIGN)).map(drop);
        assert_eq!(planned, Err(WriteImageError::Weak { object: Addr::of(table) }));
    });
}

/// One word: a reference with a tag, which the scan is not passed by its place.
struct Tagged;

// SAFETY: every object is a word with a reference, which is passed on.
unsafe impl Format for Tagged {
    unsafe fn skip(&self, _object: ptr::NonNull<u8>) -> usize {
        2 * WORD
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        for at in (0..objects.size()).step_by(2 * WORD) {
            // SAFETY: the word is in an object, which no thread uses meanwhile.
            let mut reference =
                unsafe { objects.base().add(at).cast::<*mut u8>().read() }.map_addr(|addr| addr & !1);
            scan.fix(&mut reference);
        }
    }
}

#[test]
fn references_that_have_no_place_are_refused() {
    with_heap(64 << 10, |heap| {
        let pool: Swept<'_, _, _, _, Traced> =
            Swept::create(heap, Tagged, SweptOptions { segment_size: 4 << 10 }).unwrap();
        let mutator = heap.register().unwrap();
        // SAFETY: this thread has both, and the mutator is running.
        let adjust = |buffer: &tripoint_gc::MutatorBuffer| unsafe { buffer.attend(&mutator) };
        let kind = tripoint_core::BufferKind::Mutator;
        let mut point = tripoint_ap::AllocationPoint::create_in(&pool, kind, (), adjust).unwrap();
        let reservation = point.reserve(core::alloc::Layout::new::<[usize; 2]>()).unwrap();
        let object = reservation.as_ptr();
        // SAFETY: two words were reserved.
        unsafe {
            object.cast::<[*mut u8; 2]>().write([object.as_ptr().map_addr(|addr| addr | 1), ptr::null_mut()])
        };
        // SAFETY: the object was just made.
        let object = unsafe { reservation.commit() }.unwrap().as_ptr();
        drop((point, mutator));
        let stopped = heap.stop(ALL).unwrap();
        let (mut table, roots) = ([ImageEntry::default()], [object.cast_const()]);
        let plan = stopped.plan_image(&roots, &mut table, options(IMAGE_ALIGN)).unwrap();
        let mut out = vec![0; plan.size()];
        // SAFETY: both words were written, and the heap is stopped since the plan was made.
        let written = unsafe { plan.write_to(&mut out) };
        assert_eq!(written, Err(WriteImageError::Place { object: Addr::of(object) }));
        assert!(Image::open(&out, FINGERPRINT).is_err(), "what was written is no image");
    });
}

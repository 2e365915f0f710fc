//! Descriptors, and what holds them beside their allocation point.

use core::cell::Cell;
use std::thread;

use crate::common::{
    BumpPool, Draws, FILL, OBJECT, RESET, addr, allocate, flip, listening, mode, refusal, with_arena,
    with_bump, with_flip,
};
use tripoint_ap::{AllocationPoint, Buffer, CommitFailed, Tripper, for_each_buffer};
use tripoint_core::{
    Addr, AddrRange, Arena, BufferClass, BufferKind, Check, CheckLevel, Control, Describe, Error, PoolClass,
    RankSet, Segment, SegmentBuffer, Store,
};

#[test]
fn descriptors_are_used_again() {
    with_bump(|pool| {
        let own = || pool.header().arena().sizes().own;
        let first = AllocationPoint::create(pool).unwrap();
        let (buffer, before) = (first.buffer(), own());
        drop(first);
        for kind in [BufferKind::Internal, BufferKind::Mutator] {
            let mut point = AllocationPoint::create_with(pool, kind, ()).unwrap();
            assert!(core::ptr::eq(point.buffer(), buffer));
            assert_eq!((buffer.kind(), buffer.fill_size(), buffer.empty_size()), (kind, 0, 0));
            allocate(&mut point, OBJECT).unwrap();
        }
        assert_eq!(own(), before);
        let both = (AllocationPoint::create(pool).unwrap(), AllocationPoint::create(pool).unwrap());
        assert!(!core::ptr::eq(both.0.buffer(), both.1.buffer()));
    });
}

#[test]
fn only_claimed_buffers_are_visited() {
    with_flip(|pool| {
        let visits = || {
            let mut visits = Vec::new();
            for_each_buffer(pool, |buffer| visits.push(core::ptr::from_ref(buffer)));
            visits
        };
        let first = AllocationPoint::create(pool).unwrap();
        let second = AllocationPoint::create(pool).unwrap();
        let both: Vec<_> = [second.buffer(), first.buffer()].map(core::ptr::from_ref).into();
        assert_eq!(visits(), both);
        drop(second);
        assert_eq!(visits(), both[1..]);
    });
}

#[test]
fn a_tripper_outlives_its_point() {
    with_bump(|pool| {
        let tripper = listening(pool, Draws::Never).tripper();
        tripper.trip();
        let mut successor = listening(pool, Draws::Never);
        let buffer: &Buffer = successor.buffer();
        assert!(core::ptr::eq(buffer, tripper.buffer()));
        allocate(&mut successor, OBJECT).unwrap();
        assert_eq!(successor.control().trips(), 0, "that trip was its predecessor's");
        tripper.trip();
        allocate(&mut successor, OBJECT).unwrap();
        assert_eq!(successor.control().trips(), 1);
    });
}

#[test]
fn create_fails_where_the_arena_is_full() {
    with_arena(32 << 10, |arena| {
        let pool = BumpPool::create(arena, FILL);
        let mut points = Vec::new();
        let error = loop {
            match AllocationPoint::create(&pool) {
                Ok(point) => points.push(point),
                Err(error) => break error,
            }
        };
        assert_eq!(error, Error::Limit);
        assert!(points.len() > 10);
        points.pop();
        AllocationPoint::create(&pool).unwrap();
    });
}

#[test]
fn a_point_moves_between_threads() {
    with_flip(|pool| {
        let mut point = listening(pool, Draws::Never);
        let first = addr(allocate(&mut point, OBJECT).unwrap());
        let tripper: Tripper<'_> = point.tripper();
        let mut point = thread::scope(|scope| {
            scope
                .spawn(move || {
                    tripper.trip();
                    let second = addr(allocate(&mut point, OBJECT).unwrap());
                    assert_eq!(second.get(), first.get() + 32);
                    point
                })
                .join()
                .unwrap()
        });
        assert_eq!((point.control().trips(), point.room()), (1, FILL - 64));
    });
}

static EXACT: Segment = Segment::new(NOWHERE, RankSet::EXACT);
static WEAK: Segment = Segment::new(NOWHERE, RankSet::WEAK);
const NOWHERE: AddrRange = AddrRange::new(Addr::ZERO, Addr::ZERO).unwrap();

#[test]
fn a_fill_of_other_ranks_is_refused_and_given_back() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        pool.fill_from(&EXACT);
        allocate(&mut point, OBJECT).unwrap();
        assert!(point.buffer().class().segment().is_some());
        point.empty();
        assert_eq!(point.buffer().class().segment(), None);
        pool.preallocate(64);
        pool.fill_from(&WEAK);
        assert!(matches!(refusal(&mut point, OBJECT), Error::Parameter(_)));
        assert_eq!((mode(&point), pool.fills().len()), (RESET, 0));
        assert_eq!(point.buffer().fill_size() - point.buffer().empty_size(), OBJECT.size() as u64);
        pool.fill_from(&EXACT);
        allocate(&mut point, OBJECT).unwrap();
    });
}

#[test]
fn ranks_change_for_fills_from_now_on() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        point.buffer().class().set_rank_set(RankSet::WEAK);
        point.empty();
        pool.fill_from(&WEAK);
        allocate(&mut point, OBJECT).unwrap();
        assert_eq!(point.buffer().rank_set(), RankSet::WEAK);
    });
}

/// A descriptor left by one kind of allocation point serves another.
#[test]
fn descriptors_serve_other_controls_of_their_size() {
    #[derive(Debug)]
    struct OneWord(#[expect(dead_code)] usize);
    impl Control for OneWord {}
    #[derive(Debug)]
    struct AnotherWord(Cell<usize>);
    impl Control for AnotherWord {}
    #[derive(Debug)]
    struct Large(#[expect(dead_code)] [usize; 16]);
    impl Control for Large {}
    with_bump(|pool| {
        let first = AllocationPoint::create_with(pool, BufferKind::Mutator, OneWord(1)).unwrap();
        let buffer = first.buffer();
        drop(first);
        let mut second =
            AllocationPoint::create_with(pool, BufferKind::Mutator, AnotherWord(Cell::new(2))).unwrap();
        assert!(core::ptr::eq(buffer, second.buffer()));
        assert_eq!(second.control().0.get(), 2);
    });
    with_bump(|pool| {
        let small = AllocationPoint::create(pool).unwrap();
        let buffer = small.buffer();
        drop(small);
        let large = AllocationPoint::create_with(pool, BufferKind::Mutator, Large([0; 16])).unwrap();
        assert!(!core::ptr::eq(buffer, large.buffer()), "it would not fit");
    });
}

#[test]
fn a_descriptor_takes_on_the_ranks_of_its_next_buffer() {
    with_flip(|pool| {
        drop(AllocationPoint::create(pool).unwrap());
        let weak = |class: &SegmentBuffer| class.set_rank_set(RankSet::WEAK);
        let point = AllocationPoint::create_in(pool, BufferKind::Mutator, (), weak).unwrap();
        assert_eq!(
            (point.buffer().class().rank_set(), point.buffer().rank_set()),
            (RankSet::WEAK, RankSet::WEAK)
        );
    });
}

#[test]
fn dropping_drops_the_control() {
    #[derive(Debug)]
    struct Dropped<'d>(&'d Cell<u32>);
    impl Control for Dropped<'_> {}
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    with_bump(|pool| {
        let dropped = Cell::new(0);
        for count in 1..4 {
            drop(AllocationPoint::create_with(pool, BufferKind::Mutator, Dropped(&dropped)).unwrap());
            assert_eq!(dropped.get(), count);
        }
    });
}

#[test]
fn a_deep_check_of_a_point_looks_at_its_pool() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let object = allocate(&mut point, OBJECT).unwrap();
        point.check(CheckLevel::Deep).unwrap();
        // SAFETY: allocated above, freed once. Test pools take an object that is freed
        // within a fill that is out for damage.
        unsafe { pool.free(object, OBJECT) };
        assert!(pool.check(CheckLevel::Deep).is_err());
        assert!(point.check(CheckLevel::Deep).is_err());
        point.check(CheckLevel::Shallow).unwrap();
    });
}

#[test]
fn a_point_describes_its_buffer_and_its_pool() {
    with_bump(|pool| {
        let point = AllocationPoint::create(pool).unwrap();
        assert_eq!(format!("{point:?}"), format!("AllocationPoint({:?})", point.buffer().snapshot()));
        let (mut text, mut buffer, mut header) = (String::new(), String::new(), String::new());
        point.describe(&mut text, 1).unwrap();
        point.buffer().describe(&mut buffer, 1).unwrap();
        pool.header().describe(&mut header, 2).unwrap();
        assert_eq!(text, buffer + &header);
    });
}

#[test]
fn checks_and_descriptions_say_what_is_there() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        flip(pool);
        for level in [CheckLevel::Cheap, CheckLevel::Shallow, CheckLevel::Deep] {
            point.check(level).unwrap();
        }
        let mut text = String::new();
        point.describe(&mut text, 0).unwrap();
        for expected in ["Mutator", "TRAPPED", "FLIPPED", "4096 bytes"] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(CommitFailed.to_string().contains("reserve again"));
    });
}

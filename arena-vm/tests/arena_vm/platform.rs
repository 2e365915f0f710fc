//! What every platform promises.

use std::string::ToString;

use tripoint_arena_vm::mock::Call;
use tripoint_arena_vm::{Platform, PlatformError};
use tripoint_oracle::all_are;

use crate::common::on_each;

#[test]
fn reservations_are_aligned_and_pages_come_zeroed() {
    on_each(|platform| {
        let page = platform.page_size();
        assert!(page.is_power_of_two());
        for align in [page, 64 << 10, 4 << 20] {
            let size = 64 * page;
            let base = platform.reserve(size, align).unwrap();
            assert_eq!(base.addr().get() % align, 0);
            // SAFETY: pages of the reservation; reads and writes only what is
            // committed, and releases it at the end.
            unsafe {
                platform.commit(base, 4 * page).unwrap();
                let bytes = core::slice::from_raw_parts_mut(base.as_ptr(), 4 * page);
                assert!(all_are(bytes, 0));
                bytes.fill(7);
                platform.commit(base, 8 * page).unwrap();
                platform.populate(base, 8 * page).unwrap();
                // Populating may touch the pages, so no borrow of them is held across it.
                let bytes = core::slice::from_raw_parts(base.as_ptr(), 4 * page);
                assert!(all_are(bytes, 7), "committing and populating keep contents");
                platform.decommit(base, 8 * page).unwrap();
                platform.decommit(base.add(32 * page), page).unwrap();
                platform.commit(base, 4 * page).unwrap();
                let bytes = core::slice::from_raw_parts(base.as_ptr(), 4 * page);
                assert!(bytes.iter().all(|&byte| byte == 0 || byte == 7));
                platform.release(base, size, align).unwrap();
            }
        }
    });
}

#[test]
fn reservations_beyond_the_address_space_are_refused() {
    on_each(|platform| {
        // A 32-bit process may have half of all addresses in one piece.
        let half = (isize::MAX as usize & !0xffff).max(3 << 30);
        for size in [half, usize::MAX & !0xffff] {
            let error = platform.reserve(size, 64 << 10).unwrap_err();
            assert_eq!((error.call, error.size >= size), ("reserve", true));
        }
    });
}

#[test]
fn every_refusal_says_what_to_do() {
    for call in Call::ALL.map(Call::name) {
        let error = PlatformError { call, code: 12, addr: 0x1000, size: 4096, limit: None };
        let text = error.to_string();
        assert!(text.starts_with(call) && text.ends_with(error.advice()), "{text}");
        assert!(text.contains("4096") && text.contains("0x1000") && text.contains("12"), "{text}");
    }
}

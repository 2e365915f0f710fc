//! Whether pages lie where they were asked to be ([design/arena-vm.md `.place.strict`](crate::design::arena_vm)).

use core::ptr::NonNull;

use tripoint_core::Error;

use crate::chosen_memory::Placement;
use crate::platform::{Platform, PlatformError};

/// A page that lies elsewhere: for the program, and for people.
#[derive(Debug)]
pub(crate) struct Misplaced {
    pub(crate) error: Error,
    pub(crate) refusal: PlatformError,
}

/// Asks for the node of each page of a range, and returns the first that lies elsewhere than the placement says. Pages
/// without memory lie nowhere, and are passed over. Huge pages that are interleaved have to take turns.
///
/// # Errors
/// If the platform does not know.
///
/// # Safety
/// - `base` and `size` name pages of one reservation, each of `page_size` bytes.
pub(crate) unsafe fn check<P: Platform>(
    platform: &P,
    (base, size): (NonNull<u8>, usize),
    page_size: usize,
    placement: Placement,
) -> Result<Option<Misplaced>, PlatformError> {
    let Some(asked) = placement.nodes() else { return Ok(None) };
    // Of small pages the kernel may put some together by itself, which changes whose turn it is.
    let takes_turns = page_size > platform.page_size() && matches!(placement, Placement::Interleave(_));
    let next = |node: usize| asked.nodes().find(|&next| next > node).or_else(|| asked.nodes().next());
    let (mut last, mut wrong) = (None, None);
    let mut look = |addr: usize, node: Option<usize>| {
        let is_wrong = node.is_some_and(|node| {
            let out_of_turn = last.is_some_and(|last| next(last) != Some(node));
            !asked.contains(node) || takes_turns && out_of_turn
        });
        if is_wrong {
            wrong = wrong.or(Some(addr));
        }
        last = node;
    };
    // SAFETY: the range is pages of one reservation, of this size.
    unsafe { platform.locate(base, size, page_size, &mut look) }?;
    Ok(wrong.map(|addr| Misplaced {
        error: Error::Misplaced { asked, page_size },
        refusal: PlatformError { call: "misplaced", code: 0, addr, size: page_size, limit: None },
    }))
}

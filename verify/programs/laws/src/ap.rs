//! The sums of an allocation point's fast path.

#[path = "../../../../ap/src/protocol/calc.rs"]
mod calc;

use crate::law::laws;
use crate::values::addr::{ADDRESS_CEILING, INLINE_SIZE_MAX};
use calc::{armed_limit, fits, is_aligned};

laws! {
    /// What is reserved lies between `init` and `limit`, and the sum does not wrap.
    fn a_reservation_lies_in_the_buffer(init: usize, size: usize, limit: usize)
    given init <= ADDRESS_CEILING && fits(init, size, limit); {
        size <= limit && init <= limit - size && init + size >= init
    }

    /// What fits is not refused, up to the size that is served inline.
    fn what_fits_is_reserved(init: usize, size: usize, limit: usize)
    given size <= INLINE_SIZE_MAX && init <= limit && limit - init >= size && limit <= ADDRESS_CEILING; {
        fits(init, size, limit)
    }

    /// A trip makes the limit zero; no object fits from then on.
    fn a_trip_is_seen_by_every_reserve(init: usize, size: usize) given init <= ADDRESS_CEILING && (init != 0 || size != 0); {
        !fits(init, size, 0)
    }

    /// Larger sizes take the slow path.
    fn sizes_above_the_inline_maximum_never_fit(init: usize, size: usize, limit: usize) given size > INLINE_SIZE_MAX; {
        !fits(init, size, limit)
    }

    fn an_aligned_init_is_known(init: usize, exponent: u32, min_exponent: u32)
    given exponent < usize::BITS && min_exponent < usize::BITS && init & ((1 << min_exponent) - 1) == 0; {
        is_aligned(init, 1 << exponent, 1 << min_exponent) == (init & ((1 << exponent) - 1) == 0)
    }

    /// The armed limit is the buffer's end, or a stop before it.
    fn the_armed_limit_is_in_the_buffer(limit: usize, origin: usize, budget: usize) given origin <= limit; {
        let armed = armed_limit(limit, origin, budget);
        armed >= origin && armed <= limit && (armed == limit || armed - origin == budget)
    }

    /// Nothing behind the stop is handed out.
    fn no_more_than_the_budget_is_before_the_limit(limit: usize, origin: usize, budget: usize) given origin <= limit; {
        armed_limit(limit, origin, budget) - origin <= budget
    }

    fn without_a_stop_the_limit_is_the_buffers(limit: usize, origin: usize) given true; {
        armed_limit(limit, origin, usize::MAX) == limit
    }
}

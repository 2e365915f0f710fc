//! Any sequence of operations, beside a naive model (design/packets.md `.req.ways`, `.req.count`).

use proptest::prelude::*;
use tripoint_oracle::{Choices, cases, effort, walk_packets};
use tripoint_packets::PacketPoolOptions;

use super::with_pool_of;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(1000)))]

    #[test]
    fn units_are_where_the_model_says(
        bytes in prop::collection::vec(any::<u8>(), 1..effort(2000) as usize),
        count in 1..24_u32,
        cache_size in 1..9_u32,
    ) {
        let options = PacketPoolOptions { count, headroom: 64, caches: 2, cache_size };
        with_pool_of(options, |pool| walk_packets(pool, &mut Choices::new(&bytes)));
    }
}

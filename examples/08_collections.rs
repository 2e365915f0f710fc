//! For programs that want a map or a vector in a pool: collections that take an allocator.
//!
//! The standard library's own take none on stable Rust. `hashbrown` (the implementation of
//! its maps) and `allocator-api2` (its `Vec` and `Box`) do.
//!
//! ```sh
//! cargo run --example 08_collections
//! ```

use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use hashbrown::HashMap;
use tripoint::{
    Arena, ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Error, PoolAllocator, PoolClass,
    Tlsf, TlsfOptions,
};

fn main() -> Result<(), Error> {
    let arena = ArenaVm::create(ArenaVmOptions::default())?;
    let pool = Tlsf::create(&arena, TlsfOptions::default())?; // any size, constant time
    let in_pool = PoolAllocator::new(&pool);

    // A map from words to the places where they stand.
    let text = "the quick brown fox jumps over the lazy dog while the dog sleeps";
    let mut places = HashMap::new_in(in_pool);
    for (place, word) in text.split(' ').enumerate() {
        places.entry(word).or_insert_with(|| Vec::new_in(in_pool)).push(place);
    }
    println!("\"the\" stands at {:?}, \"dog\" at {:?}", places["the"], places["dog"]);
    assert_eq!(places["the"], [0, 6, 10]);

    // A boxed slice.
    let squares: Box<[u64], _> = {
        let mut squares = Vec::with_capacity_in(1_000, in_pool);
        squares.extend((0..1_000_u64).map(|number| number * number));
        squares.into_boxed_slice()
    };
    assert_eq!(squares[999], 998_001);

    // Collections that grow ask for memory with `try_reserve`, and can be refused.
    arena.freeze();
    let mut large: Vec<u64, _> = Vec::new_in(in_pool);
    assert!(large.try_reserve(1 << 20).is_err(), "a frozen arena does not grow");
    assert_eq!(arena.counts().growth_refused.get(), 1);
    arena.thaw();

    // The pool counts every byte of them, and dropping returns the memory.
    let sizes = pool.sizes();
    println!("{} bytes in use of {}", sizes.total - sizes.free, sizes.total);
    assert!(sizes.total - sizes.free >= 8_000);
    drop((places, squares, large));
    assert_eq!(pool.sizes().free, pool.sizes().total);

    // For single objects of mixed sizes on one thread, a cache before the same pool.
    let descriptor = CacheDescriptor::new(CacheClasses::geometric(512, 8)?);
    let cache = Cache::create(&pool, &descriptor)?;
    for length in 1..1_000_u64 {
        let object = cache.boxed([length; 3])?;
        assert_eq!(object.iter().sum::<u64>(), 3 * length);
    }
    Ok(())
}

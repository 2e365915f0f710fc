//! For a parser, a scene graph, a symbol table: allocation points, and the two ways in which
//! an object from one can live: as long as its pool, or as long as its box.
//!
//! ```sh
//! cargo run --example 02_points_and_boxes
//! ```

use std::thread;

use tripoint::{
    AllocationPoint, Arena, ArenaVm, ArenaVmOptions, Error, Mvff, MvffOptions, PoolBox, PoolClass,
};

type Memory<'arena> = Mvff<&'arena ArenaVm>;

/// An expression. Its parts are references: they live as long as the pool, and nothing is
/// ever dropped.
enum Expression<'pool> {
    Number(u64),
    Sum(&'pool Expression<'pool>, &'pool Expression<'pool>),
    Product(&'pool Expression<'pool>, &'pool Expression<'pool>),
}

impl<'pool> Expression<'pool> {
    /// Parses sums of products of numbers, such as `1 + 2 * 3`. Each thread that parses has an
    /// allocation point of its own.
    fn parse(text: &str, point: &mut AllocationPoint<'pool, Memory<'_>>) -> Result<&'pool Self, Error> {
        if let Some((left, right)) = text.split_once('+') {
            let sum = Self::Sum(Self::parse(left, point)?, Self::parse(right, point)?);
            return Ok(point.alloc(sum)?);
        }
        if let Some((left, right)) = text.split_once('*') {
            let product = Self::Product(Self::parse(left, point)?, Self::parse(right, point)?);
            return Ok(point.alloc(product)?);
        }
        let number = text.trim().parse().map_err(|_| Error::Parameter("an operand is not a number"))?;
        Ok(point.alloc(Self::Number(number))?)
    }

    fn value(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Sum(left, right) => left.value() + right.value(),
            Self::Product(left, right) => left.value() * right.value(),
        }
    }
}

/// A job of a work list. Boxes own: dropping the list drops and frees every job in it. A type
/// may hold boxes of itself.
struct Job<'pool> {
    name: String,
    next: Option<PoolBox<'pool, Job<'pool>, Memory<'pool>>>,
}

impl Job<'_> {
    fn count(&self) -> usize {
        1 + self.next.as_ref().map_or(0, |next| next.count())
    }
}

fn main() -> Result<(), Error> {
    let arena = ArenaVm::create(ArenaVmOptions::default())?;

    // As long as the pool: several threads parse into one pool, each on its own point.
    let pool = Mvff::create(&arena, MvffOptions::default())?;
    let texts = ["1 + 2 * 3", "4 * 5 * 6", "7 + 8 + 9 * 10"];
    let expressions = thread::scope(|scope| {
        let parsers = texts.map(|text| {
            let pool = &pool;
            scope.spawn(move || Expression::parse(text, &mut AllocationPoint::create(pool)?))
        });
        parsers.map(|parser| parser.join().expect("the parser does not panic"))
    });
    let mut values = Vec::new();
    for expression in expressions {
        values.push(expression?.value());
    }
    println!("values: {values:?}");
    assert_eq!(values, [7, 120, 105]);

    // As long as the box: freed when dropped, on any thread.
    let jobs = Mvff::create(&arena, MvffOptions::default())?;
    let mut point = AllocationPoint::create(&jobs)?;
    let mut list = None;
    for number in 0..100 {
        list = Some(point.boxed(Job { name: format!("job {number}"), next: list })?);
    }
    let list = list.expect("a hundred jobs");
    println!("{} jobs, the last of them {:?}", list.count(), list.name);
    assert_eq!(list.count(), 100);
    thread::scope(|scope| scope.spawn(move || drop(list)).join()).expect("dropping does not panic");
    point.empty(); // the point returns what it did not use to its pool
    assert_eq!(jobs.sizes().free, jobs.sizes().total, "every job was freed");

    // Several objects that appear together, or not at all.
    let mut batch = point.batch(3)?;
    for price in [61_658_u64, 61_659, 61_660] {
        batch.push(price).expect("room for three");
    }
    let prices = batch.commit();
    assert_eq!(prices.iter().sum::<u64>(), 3 * 61_659);

    // Every count of bytes is exact: what pools took, and what the arena has from the system.
    println!("{} KiB committed", arena.sizes().committed >> 10);
    assert!(arena.sizes().committed < 1 << 20);
    Ok(())
}

//! Tasks that await, and threads that share work, over one pool: by tokio and by rayon (guide: "Async, and threads that
//! share a pool").

use std::sync::OnceLock;

use rayon::prelude::*;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, yield_now};
use tripoint::{
    AllocationPoint, ArenaVm, ArenaVmOptions, Error, Mvff, MvffOptions, PoolBox, PoolClass, Result,
};

/// The pool of all tasks. It has its arena.
pub type Pool = Mvff<ArenaVm>;

/// An object that tasks hand to each other.
pub type Message = PoolBox<'static, [u8; 64], Pool>;

/// How many objects a task or a part of the work allocates.
const PART: usize = 1_000;

/// The pool, which is made when it is first asked for.
///
/// # Errors
/// If there is too little memory.
pub fn pool() -> Result<&'static Pool> {
    static POOL: OnceLock<Pool> = OnceLock::new();
    if let Some(pool) = POOL.get() {
        return Ok(pool);
    }
    let pool = create()?;
    Ok(POOL.get_or_init(|| pool))
}

fn create() -> Result<Pool> {
    Mvff::create(ArenaVm::create(ArenaVmOptions::default())?, MvffOptions::default())
}

/// The bytes of the pool that are in objects, or in buffers of points.
///
/// # Errors
/// Those of [`pool`].
pub fn live_bytes() -> Result<usize> {
    let sizes = pool()?.sizes();
    Ok(sizes.total - sizes.free)
}

/// Counts the bytes of a message that are not zero, in a task that changes its thread meanwhile: the point, and the boxes
/// from it, go with it.
///
/// # Errors
/// If there is too little memory.
pub async fn count(message: Message) -> Result<usize> {
    let mut point = AllocationPoint::create(pool()?)?;
    let copy = point.boxed(*message)?;
    yield_now().await;
    let counted = point.boxed(copy.iter().filter(|&&byte| byte != 0).count())?;
    yield_now().await;
    Ok(*counted)
}

/// Has that many tasks count messages that this one allocates, and returns the sum.
///
/// # Errors
/// If there is too little memory, or a task panicked.
pub async fn count_all(
    tasks: usize,
) -> core::result::Result<usize, Box<dyn core::error::Error + Send + Sync>> {
    let mut point = AllocationPoint::create(pool()?)?;
    let mut counting = JoinSet::new();
    for task in 0..tasks {
        let mut message = point.boxed([0; 64])?;
        message[..task % 65].fill(1);
        counting.spawn(count(message));
    }
    let mut sum = 0;
    while let Some(counted) = counting.join_next().await {
        sum += counted??;
    }
    Ok(sum)
}

/// Sends that many messages from one task to another, which drops them, and returns the sum of their first bytes.
///
/// # Errors
/// If there is too little memory, or the task panicked.
pub async fn send_all(
    messages: usize,
) -> core::result::Result<usize, Box<dyn core::error::Error + Send + Sync>> {
    let (sender, mut receiver) = mpsc::channel::<Message>(16);
    let sending = tokio::spawn(async move {
        let mut point = AllocationPoint::create(pool()?)?;
        for message in 0..messages {
            let message = point.boxed([message as u8; 64])?;
            if sender.send(message).await.is_err() {
                break;
            }
        }
        Ok::<_, Error>(())
    });
    let mut sum = 0;
    while let Some(message) = receiver.recv().await {
        sum += usize::from(message[0]);
    }
    sending.await??;
    Ok(sum)
}

/// A node of a tree, which refers to others of the same pool.
#[derive(Debug)]
pub struct Node<'p> {
    /// What is counted.
    pub number: u64,
    /// The node that was made before it by the same thread.
    pub before: Option<&'p Node<'p>>,
}

/// Makes a list of nodes of each thousand numbers, on all threads, and returns the last node of each.
///
/// # Errors
/// If there is too little memory.
pub fn make_lists<'p>(pool: &'p Pool, numbers: &[u64]) -> Result<Vec<&'p Node<'p>>> {
    numbers
        .par_chunks(PART)
        .map_init(
            || AllocationPoint::create(pool),
            |point, numbers| {
                let point = point.as_mut().map_err(|error| *error)?;
                let mut last = None;
                for &number in numbers {
                    let node: &Node<'_> = point.alloc(Node { number, before: last })?;
                    last = Some(node);
                }
                last.ok_or(Error::Parameter("a part has numbers"))
            },
        )
        .collect()
}

/// Makes lists of that many numbers in a pool of their own, and returns the sum of all nodes.
///
/// # Errors
/// If there is too little memory.
pub fn sum_of_lists(count: u64) -> Result<u64> {
    let pool = create()?;
    let numbers: Vec<_> = (0..count).collect();
    let lists = make_lists(&pool, &numbers)?;
    let sums = lists.par_iter().map(|last| {
        core::iter::successors(Some(*last), |node| node.before).map(|node| node.number).sum::<u64>()
    });
    Ok(sums.sum())
}

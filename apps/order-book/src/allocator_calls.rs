//! The global allocator, which reports every call to the contract.

use tripoint::contract::{ContractAllocator, ViolationClass, current};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

/// How often this thread has called the global allocator, frees included.
pub fn calls_of_this_thread() -> u64 {
    let calls = [ViolationClass::Alloc, ViolationClass::Realloc, ViolationClass::Dealloc];
    calls.into_iter().map(|class| current::count(class).0 as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_a_deliberate_box() {
        let before = calls_of_this_thread();
        drop(core::hint::black_box(Box::new(1_u64)));
        assert_eq!(calls_of_this_thread() - before, 2);
    }
}

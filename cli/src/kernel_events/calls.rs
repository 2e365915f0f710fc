//! The system calls that change a process's memory.

/// What is known of such a call.
pub(super) struct MemoryCall {
    pub(super) number: i64,
    pub(super) name: &'static str,
    /// Which argument is the bytes; none for `brk`, whose argument is an address.
    bytes: Option<usize>,
}

const fn call(number: libc::c_long, name: &'static str, bytes: Option<usize>) -> MemoryCall {
    #[allow(clippy::unnecessary_cast, reason = "its type differs between targets")]
    let number = number as i64;
    MemoryCall { number, name, bytes }
}

/// What programs of 32 bits map memory with.
#[cfg(any(target_arch = "x86", target_arch = "arm"))]
const MMAP: libc::c_long = libc::SYS_mmap2;
#[cfg(not(any(target_arch = "x86", target_arch = "arm")))]
const MMAP: libc::c_long = libc::SYS_mmap;

pub(super) const ALL: [MemoryCall; 12] = [
    call(MMAP, "mmap", Some(1)),
    call(libc::SYS_munmap, "munmap", Some(1)),
    call(libc::SYS_mremap, "mremap", Some(2)),
    call(libc::SYS_mprotect, "mprotect", Some(1)),
    call(libc::SYS_pkey_mprotect, "pkey_mprotect", Some(1)),
    call(libc::SYS_madvise, "madvise", Some(1)),
    call(libc::SYS_brk, "brk", None),
    call(libc::SYS_mlock, "mlock", Some(1)),
    call(libc::SYS_munlock, "munlock", Some(1)),
    call(libc::SYS_mlockall, "mlockall", None),
    call(libc::SYS_munlockall, "munlockall", None),
    call(libc::SYS_mbind, "mbind", Some(1)),
];

/// The filter of the tracepoint that lets only these calls through.
pub(super) fn filter() -> String {
    ALL.map(|call| format!("id=={}", call.number)).join("||")
}

/// A call that a tracepoint reported.
pub(super) struct Called {
    pub(super) number: u64,
    pub(super) name: &'static str,
    /// The first argument: as a rule an address.
    pub(super) address: u64,
    pub(super) bytes: u64,
}

/// The call that the data of the tracepoint has: what all tracepoints begin with, the number, and six arguments. `None` if it
/// is of no call of memory.
pub(super) fn called(data: &[u8]) -> Option<Called> {
    /// What all tracepoints have before.
    const COMMON: usize = 8;

    let (words, _) = data.get(COMMON..)?.as_chunks::<8>();
    let word = |index: usize| words.get(index).map(|word| u64::from_ne_bytes(*word));
    let number = word(0)?;
    let call = ALL.iter().find(|call| call.number.cast_unsigned() == number)?;
    let argument = |index: usize| word(1 + index);
    let bytes = call.bytes.map_or(Some(0), argument)?;
    Some(Called { number, name: call.name, address: argument(0)?, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(words: &[i64]) -> Vec<u8> {
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        [0; 8].into_iter().chain(words).collect()
    }

    #[test]
    fn calls_of_memory_have_their_bytes_and_others_are_none() {
        let found = called(&data(&[libc::SYS_mremap, 0x1000, 4096, 8192, 0, 0, 0])).unwrap();
        assert_eq!((found.name, found.address, found.bytes), ("mremap", 0x1000, 8192));
        assert_eq!(called(&data(&[libc::SYS_brk, 7, 9])).unwrap().bytes, 0);
        assert!(called(&data(&[libc::SYS_read, 1, 2, 3, 0, 0, 0])).is_none());
        for length in 0..16 {
            assert!(called(&data(&[libc::SYS_mmap])[..length]).is_none());
        }
    }
}

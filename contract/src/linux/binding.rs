//! Whether the program asked for all its functions to be bound when it starts.

use core::{ptr, slice};

use tripoint_stack::visit_objects;

/// An entry of a program's dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    tag: usize,
    value: usize,
}

const TAG_END: usize = 0;
const TAG_BIND_NOW: usize = 24;
const TAG_FLAGS: usize = 30;
const TAG_FLAGS_1: usize = 0x6fff_fffb;
const FLAG_BIND_NOW: usize = 8;
const FLAG_1_NOW: usize = 1;

/// Whether this program binds at start. A static program has nothing to bind.
pub(super) fn binds_now() -> bool {
    let mut now = true;
    visit_objects(|program| {
        if let Some(section) = program.dynamic_section() {
            let entries = ptr::with_exposed_provenance::<Entry>(section.start);
            // SAFETY: the loader keeps the section in memory, aligned and of this size, as
            // long as the program runs; it wrote there only before this code ran.
            let entries = unsafe { slice::from_raw_parts(entries, section.len() / size_of::<Entry>()) };
            now = entries_bind_now(entries);
        }
        // The first is the program.
        true
    });
    now
}

fn entries_bind_now(entries: &[Entry]) -> bool {
    entries.iter().take_while(|entry| entry.tag != TAG_END).any(|entry| match entry.tag {
        TAG_BIND_NOW => true,
        TAG_FLAGS => entry.value & FLAG_BIND_NOW != 0,
        TAG_FLAGS_1 => entry.value & FLAG_1_NOW != 0,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_of_saying_now_is_understood() {
        let entry = |(tag, value)| Entry { tag, value };
        let (other, end) = (entry((1, 1)), entry((TAG_END, 0)));
        for now in [(TAG_BIND_NOW, 0), (TAG_FLAGS, FLAG_BIND_NOW), (TAG_FLAGS_1, 0x0800_0001)].map(entry) {
            assert!(entries_bind_now(&[other, now, end]), "{:#x}", now.tag);
            assert!(!entries_bind_now(&[other, end, now]), "{:#x}", now.tag);
        }
        assert!(!entries_bind_now(&[(TAG_FLAGS, 4), (TAG_FLAGS_1, 2), (TAG_END, 0)].map(entry)));
    }

    /// Rust links position-independent programs with -z now.
    #[test]
    fn this_program_binds_now() {
        assert!(binds_now());
    }
}

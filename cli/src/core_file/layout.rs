//! Where a contract's records lie, as the contract says it in words after its magic (design/contract.md `.core`).

use tripoint_contract::ViolationClass;

use crate::memory::of_words;

/// The version of the layout that this program reads.
const VERSION: u64 = 2;

/// No ring has more records, and no record more words.
const MAX: u64 = 1 << 12;

/// The words of a record before its site.
pub(super) const HEAD: usize = 15;

of_words! {
    /// The words after the magic. Places are in bytes, from the beginning of what has them.
    pub(super) struct Layout {
        version,
        last_slot,
        slot_before,
        slot_state,
        slot_alarms,
        slot_name,
        slot_name_size,
        slot_accounts,
        account_size,
        classes,
        alarm_version,
        alarm_words,
        slot_own,
        slot_supervised,
        ring_cells,
        ring_tail,
        ring_lost,
        ring_records,
        record_words,
    }
}

/// There will be no more versions.
const MOST_VERSIONS: u64 = 1000;

/// A set of classes is one word, in every version.
const MOST_CLASSES: u64 = 64;

impl Layout {
    /// Whether words can be the layout of any version: otherwise the magic is there alone, as a program has it that looks
    /// for one, before a byte or two of something else, and texts. Offsets are small, and the words of a text are not.
    pub(super) fn is_likely(words: &[u64]) -> bool {
        let small = words.iter().filter(|word| **word <= MAX).count();
        words.first().is_some_and(|version| (1..=MOST_VERSIONS).contains(version)) && small > words.len() / 2
    }

    /// `Err` with what is wrong.
    pub(super) fn of(words: &[u64]) -> Result<Self, String> {
        let layout = Self::of_words(words).ok_or("the layout of a contract is cut off")?;
        let Self { version, classes, .. } = layout;
        if classes > MOST_CLASSES {
            return Err(format!(
                "a contract's layout is damaged: it has {classes} classes, and no version has more than {MOST_CLASSES}"
            ));
        }
        if version != VERSION || classes != ViolationClass::COUNT as u64 {
            return Err(format!(
                "a contract has layout {version} with {classes} classes, and this program knows layout {VERSION} with {}; \
                 take the tripoint that the program was built with",
                ViolationClass::COUNT
            ));
        }
        let words_of_record = HEAD as u64..=MAX;
        if layout.ring_records > MAX || !words_of_record.contains(&layout.record_words) {
            return Err("a contract's layout makes no sense".to_owned());
        }
        Ok(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The magic alone is in every program that looks for it.
    #[test]
    fn a_text_behind_a_small_number_is_no_layout() {
        let offsets = [VERSION, 1 << 40, 8, 16, 24, 32];
        assert!(Layout::is_likely(&offsets));
        let text = u64::from_le_bytes(*b"nvisible");
        assert!(!Layout::is_likely(&[VERSION, text, text, 8, text, 16]));
        assert!(!Layout::is_likely(&[0, 8, 16]) && !Layout::is_likely(&[]));
    }
}

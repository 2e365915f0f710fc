//! The laws of sums, with numbers of the fuzzer's choice (design/laws.md `.law`).

use tripoint_laws::LAWS;
use tripoint_laws::law::FAILS;

/// Tries a law, which the first two bytes choose, with the words behind them, and zeros when these end.
///
/// # Panics
/// If the law does not hold of them.
pub fn laws(data: &[u8]) {
    let Some((choice, words)) = data.split_first_chunk::<2>() else { return };
    let laws: Vec<_> = LAWS.iter().copied().flatten().collect();
    let law = laws[usize::from(u16::from_le_bytes(*choice)) % laws.len()];
    let mut words = words.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    });
    assert_ne!((law.run)(&mut || words.next().unwrap_or(0)), FAILS, "{law:?} does not hold");
}

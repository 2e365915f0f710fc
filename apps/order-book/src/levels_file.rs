//! All levels of all books, in a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::failure::Failure;
use crate::hot::BookFound;

/// Writes one line a level: symbol, side, price and quantity, the best of each side first.
///
/// # Errors
/// If the file cannot be written.
pub fn write_levels(books: &[BookFound], path: &Path) -> Result<(), Failure> {
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        for book in books {
            let bids = book.bids.iter().rev().map(|level| ("bid", level));
            for (side, level) in bids.chain(book.asks.iter().map(|level| ("ask", level))) {
                writeln!(file, "{} {side} {} {}", book.symbol, level.price, level.quantity)?;
            }
        }
        file.flush()
    };
    write().map_err(|error: std::io::Error| Failure::new(format_args!("{}: {error}", path.display())))
}

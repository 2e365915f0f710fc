//! Free blocks in lists, through their first words: of every class and every cache.
//!
//! A list takes no memory but that of its blocks. Here is how a link is encoded, read with distrust, and taken
//! away from a block that leaves its list (design/hardening.md `.link`, `.mfs`). What else a class notes in its free
//! blocks, as a tree does, is its own; batches and magazines write it by `write_link`.
//!
//! | file | what it is |
//! |---|---|
//! | `free_block` | the link in the first word of a free block |
//! | `chain` | units of an `Mfs` linked together, of which the last is known |
//! | `list` | a list of units, of its holder |
//! | `sorting` | a list sorted by address |
//! | `own_list` | a list of one thread, in a word that others may look at |

mod chain;
mod free_block;
mod list;
mod own_list;
mod sorting;

pub(crate) use chain::Chain;
pub(crate) use free_block::{FreeBlock, Link, peek_link, read_link, write_link};
pub(crate) use list::List;
pub(crate) use own_list::OwnList;

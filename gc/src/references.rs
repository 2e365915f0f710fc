//! References: what formats and roots pass to a collection, and the segments that they lead to.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `at_stop` | what says that a heap is stopped |
//! | `list` | a list of things that stay where they are |
//! | `queue` | a queue of things that stay where they are |
//! | `card` | what is known of the references in a part of a segment |
//! | `generation` | how many collections objects have survived |
//! | `segment` | the memory of automatic pools |
//! | `marks` | two bits for each place of an object |
//! | `finder` | the objects at places of a segment that come in order |
//! | `recorder` | the places of many objects in a row |
//! | `cards` | who stores in cards, and who looks at them |
//! | `barrier` | what a mutator does after it stored a reference |
//! | `zones` | where objects moved away from, as far as a word can say it |
//! | `writes` | who says which objects were written |
//! | `workspace` | memory that a collection uses for itself |
//! | `keep` | what a scan asks of the heap that is being collected |
//! | `waiting` | weak pairs whose keys were not reached so far |
//! | `peek` | words that need not be initialised, by architecture |
//! | `approach` | what a scan will soon read is loaded ahead of it |
//! | `scan` | the state of a scan: what references are passed to |
//! | `format` | how a pool finds the size of an object and the references in it |
//! | `pairs` | the objects of a transform, and which takes whose place |
//! | `spill` | the registers that a call preserves, by architecture |
//! | `stack` | the part of a thread's stack that is a root |
//! | `root` | where references come from, other than objects |
//! | `object` | an object, as walks show it |
//! | `segment_use` | how the memory of a segment is used, as walks show it |
//! | `member` | what a collection asks of each pool |
//! | `frozen_range`, `frozen_table` | where frozen segments are |
//! | `own` | which pool of the heap a reference leads to |

pub(crate) mod approach;
pub(crate) mod at_stop;
pub(crate) mod barrier;
pub(crate) mod card;
pub(crate) mod cards;
pub(crate) mod finder;
pub(crate) mod format;
pub(crate) mod frozen_range;
pub(crate) mod frozen_table;
pub(crate) mod generation;
pub(crate) mod keep;
pub(crate) mod list;
pub(crate) mod marks;
pub(crate) mod member;
pub(crate) mod object;
pub(crate) mod own;
pub(crate) mod pairs;
pub(crate) mod peek;
pub(crate) mod queue;
pub(crate) mod recorder;
pub(crate) mod root;
pub(crate) mod scan;
pub(crate) mod segment;
pub(crate) mod segment_use;
pub(crate) mod spill;
pub(crate) mod stack;
pub(crate) mod waiting;
pub(crate) mod workspace;
pub(crate) mod writes;
pub(crate) mod zones;

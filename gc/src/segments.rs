//! Segments: the memory of automatic pools, and what is known of the objects in each.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `card` | what is known of the references in a part of a segment |
//! | `generation` | how many collections objects have survived |
//! | `parts` | where the parts of a segment lie |
//! | `segment` | the memory of automatic pools |
//! | `marks` | two bits for each place of an object |
//! | `finder` | the objects at places of a segment that come in order |
//! | `recorder` | the places of many objects in a row |
//! | `cards` | who stores in cards, and who looks at them |
//! | `barrier` | what a mutator does after it stored a reference |
//! | `zones` | where objects moved away from, as far as a word can say it |
//! | `writes` | who says which objects were written |
//! | `segment_use` | how the memory of a segment is used, as walks show it |
//! | `object` | an object, as walks show it |

pub(crate) mod barrier;
pub(crate) mod card;
pub(crate) mod cards;
pub(crate) mod finder;
pub(crate) mod generation;
pub(crate) mod marks;
pub(crate) mod object;
pub(crate) mod parts;
pub(crate) mod recorder;
pub(crate) mod segment;
pub(crate) mod segment_use;
pub(crate) mod writes;
pub(crate) mod zones;

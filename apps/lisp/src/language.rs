//! The language: reading, evaluating, printing. All of it is safe code.
//!
//! | file | |
//! |---|---|
//! | `reader` | text becomes lists |
//! | `printer` | values become text |
//! | `machine` | the evaluator: a loop with a stack, so nesting takes no stack of the processor |
//! | `calls` | functions, macros and their arguments |
//! | `forms` | `if`, `define`, `lambda` and the other special forms |

pub(crate) mod calls;
pub(crate) mod forms;
pub(crate) mod machine;
pub(crate) mod printer;
pub(crate) mod reader;

//! What a recording says, in the forms of programs that draw it (design/cli.md `.exports`).

pub(crate) mod collapsed;
pub(crate) mod perfetto;
pub(crate) mod pprof;
pub(crate) mod speedscope;

#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/cli.md")]
pub mod cli {}

#[doc = include_str!("../design/cli-traces.md")]
pub mod cli_traces {}

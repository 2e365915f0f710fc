//! `tripoint synthesize`.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use clap::Args;

use crate::error::{Error, Outcome};
use crate::output::Output;
use crate::trace::format::{Header, Writer};
use crate::trace::synthesize::{self, Parameters};

/// Make a trace from a seed, with sizes, lifetimes and threads as asked
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripoint synthesize -o small.trace --largest 256
  tripoint synthesize -o queue.trace --threads 4 --turn 1 --foreign 100 --seed 7")]
pub(crate) struct Synthesize {
    /// The trace that is written
    #[arg(short, long, value_name = "FILE", default_value = "tripoint.trace")]
    output: PathBuf,
    /// The same seed makes the same trace; without one, it is drawn, and printed
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    parameters: Parameters,
}

impl Synthesize {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        let refused = |error| Error::system("write", &self.output)(error);
        let header = Header {
            command: vec![format!("tripoint synthesize --seed {seed} {}", self.parameters)],
            pointer_size: 8,
            ..Header::default()
        };
        let file = BufWriter::new(File::create(&self.output).map_err(refused)?);
        let writer = Writer::begin(file, &header).map_err(refused)?;
        let summary = synthesize::synthesize(writer, &self.parameters, seed).map_err(refused)?;
        if out.is_json() {
            out.write_json(&serde_json::json!({ "path": self.output, "seed": seed, "summary": summary }))?;
        } else {
            writeln!(out, "{}: {} steps, --seed {seed}", self.output.display(), summary.steps)?;
        }
        Ok(Outcome::Fine)
    }
}

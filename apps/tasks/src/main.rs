//! Runs the tasks and the lists once.
//!
//! ```sh
//! cargo run --release -p tasks
//! ```

use std::io::{self, Write};

use tasks::{count_all, live_bytes, send_all, sum_of_lists};

#[tokio::main]
async fn main() -> Result<(), Box<dyn core::error::Error + Send + Sync>> {
    let mut out = io::stdout();
    writeln!(out, "{} bytes counted by 10,000 tasks", count_all(10_000).await?)?;
    writeln!(out, "{} received from another task", send_all(100_000).await?)?;
    writeln!(out, "{} is the sum of a million nodes", sum_of_lists(1_000_000)?)?;
    writeln!(out, "{} bytes of the tasks' pool are live", live_bytes()?)?;
    Ok(())
}

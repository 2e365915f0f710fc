//! `tripoint man`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Command};

use crate::error::{Error, Outcome};
use crate::output::Output;

/// Write the manual pages, one for each subcommand
#[derive(Debug, Args)]
#[command(after_help = "Example:
  tripoint man ~/.local/share/man/man1 && man tripoint")]
pub(crate) struct Man {
    /// The folder that they are written to
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, command: Command, out: &mut Output) -> Result<Outcome, Error> {
        std::fs::create_dir_all(&self.folder).map_err(Error::system("create the folder", &self.folder))?;
        let mut written = Vec::new();
        self.write(command, &mut written)?;
        if out.is_json() {
            out.write_json(&written)?;
        } else {
            written.iter().try_for_each(|page| writeln!(out, "{}", page.display()))?;
        }
        Ok(Outcome::Fine)
    }

    /// Writes the page of the command and those of its subcommands.
    fn write(&self, command: Command, written: &mut Vec<PathBuf>) -> Result<(), Error> {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        let mut pages = vec![("tripoint".to_owned(), command.clone())];
        pages.extend(command.get_subcommands().map(|subcommand| {
            let name = format!("tripoint-{}", subcommand.get_name());
            (name.clone(), subcommand.clone().display_name(name))
        }));
        for (name, command) in pages {
            let path = self.folder.join(format!("{name}.1"));
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            std::fs::write(&path, page).map_err(Error::system("write", &path))?;
            written.push(path);
        }
        Ok(())
    }
}

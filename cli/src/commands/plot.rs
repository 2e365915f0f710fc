//! `tripoint plot` (design/cli.md `.plot`).

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum as _};
use serde::Serialize;

use crate::commands::report::{Selection, Summarized};
use crate::error::{Error, Outcome};
use crate::output::Output;
use crate::pictures::{self, Kind, Observed};
use crate::plotting::{self, Form, Page, Picture, Theme};
use crate::trace::format::Course;

/// Draw pictures of a recording, or of a trace
///
/// A capture of `tripoint attach` shows most, because it has events and sizes of the whole time. Telemetry files, core
/// files and running processes show what they still have. A trace has one picture, the footprint. All events are drawn, also
/// those of the warm-up. Only the flame graph is of the steady state, as a report is. A program may also write a picture of its own into its
/// report: JSON, with what is drawn under the key `picture`.
#[derive(Debug, Args)]
#[command(
    mut_arg("target", |argument| argument.help("A capture, a telemetry file, a core file, the number of a running process, a trace, or a report in JSON that has a picture")),
    after_help = "Examples:
  tripoint attach 4711 --duration 10s -o orders.capture && tripoint plot orders.capture -o footprint.svg
  tripoint plot orders.capture --picture map -o map.png --theme dark
  tripoint plot orders.capture --picture flame -o flame.svg --width 1600
  tripoint plot orders.capture -o pictures/
  tripoint plot tripoint.trace -o live.svg
  tripoint plot packets.json -o packets.png

Exit status: 0 if every picture shows something, 2 if one has nothing to show, which it then says in words, or if the recording \
is bad. With a folder, pictures that have nothing to show are left out."
)]
pub(crate) struct Plot {
    #[command(flatten)]
    selection: Selection,

    /// What is drawn; by default the footprint, and into a folder all pictures
    #[arg(long, value_enum)]
    picture: Option<Kind>,

    /// The file to draw to, whose name ends in .svg or .png; or a folder, for a file each
    #[arg(long, short, value_name = "FILE|FOLDER")]
    output: PathBuf,

    /// The form of files, if their names do not say it [default: svg]
    #[arg(long, value_enum)]
    form: Option<Form>,

    #[command(flatten)]
    look: Look,
}

/// How pictures look.
#[derive(Debug, Args)]
pub(crate) struct Look {
    /// What the picture is read on
    #[arg(long, value_enum, default_value_t)]
    pub(crate) theme: Theme,

    /// The width in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 960, value_parser = clap::value_parser!(u32).range(320..=4096))]
    pub(crate) width: u32,

    /// The height in pixels; by default what the picture needs
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(240..=8192))]
    pub(crate) height: Option<u32>,
}

impl Look {
    /// The page for a picture.
    pub(crate) fn page(&self, picture: &Picture) -> Page {
        Page { width: self.width, height: self.height.unwrap_or_else(|| picture.height()), theme: self.theme }
    }
}

/// What was drawn.
#[derive(Debug, Serialize)]
struct Plotted {
    file: PathBuf,
    #[serde(flatten)]
    picture: Picture,
}

impl Plot {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        let target = self.selection.target();
        if let Some(path) = target.as_trace() {
            self.draw_trace(path, out)
        } else if let Some(path) = target.as_report() {
            self.draw_report(path, out)
        } else {
            self.draw_recording(out)
        }
    }

    fn draw_report(&self, path: &Path, out: &mut Output) -> Result<Outcome, Error> {
        if let Some(kind) = self.picture {
            let why = format!("a report has no {}; it has one picture", kind.name());
            return Err(Error::Undrawn { path: self.output.clone(), why });
        }
        let report = std::fs::read(path).map_err(Error::system("read", path))?;
        let unread = |why| Error::Undrawn {
            path: path.into(),
            why: format!("it is not a report with a picture: {why}"),
        };
        self.draw(vec![("picture", pictures::given(&report).map_err(unread)?)], out)?;
        Ok(Outcome::Fine)
    }

    fn draw_trace(&self, path: &Path, out: &mut Output) -> Result<Outcome, Error> {
        let read = |error| Error::Trace { path: path.into(), error };
        if let Some(kind) = self.picture.filter(|kind| *kind != Kind::Footprint) {
            let why = format!("a trace has no {}; it has the picture footprint", kind.name());
            return Err(Error::Undrawn { path: self.output.clone(), why });
        }
        let mut course = Course::open(path, u64::MAX).map_err(read)?;
        let (mut picture, cut) = pictures::live(&mut course);
        picture.notes.extend(cut.iter().map(|error| format!("not all of the trace could be read: {error}")));
        self.draw(vec![(Kind::Footprint.name(), picture)], out)?;
        cut.map_or(Ok(Outcome::Fine), |error| Err(read(error)))
    }

    fn draw_recording(&self, out: &mut Output) -> Result<Outcome, Error> {
        let mut observed = Observed::default();
        let summarized = self.selection.summarize_with(|entry| observed.add(entry))?;
        let Summarized { recording, summary, .. } = summarized;
        let kinds = match self.picture {
            Some(kind) => vec![kind],
            None if self.is_folder() => Kind::value_variants().to_vec(),
            None => vec![Kind::Footprint],
        };
        let pictures = kinds.into_iter().map(|kind| (kind.name(), kind.of(&observed, &summary))).collect();
        self.draw(pictures, out)?;
        recording.check_whole()?;
        Ok(Outcome::Fine)
    }

    /// Whether a folder is to be drawn to.
    fn is_folder(&self) -> bool {
        self.output.is_dir() || self.output.as_os_str().as_encoded_bytes().ends_with(b"/")
    }

    fn draw(&self, mut pictures: Vec<(&str, Picture)>, out: &mut Output) -> Result<(), Error> {
        if self.is_folder() {
            std::fs::create_dir_all(&self.output).map_err(Error::system("make the folder", &self.output))?;
            let all = pictures.len();
            pictures.retain(|(_, picture)| all == 1 || !picture.is_empty());
        }
        let form = self.form()?;
        let mut plotted = Vec::new();
        for (name, mut picture) in pictures {
            let file = self.file(name, form);
            let page = self.look.page(&picture);
            plotting::write(&mut picture, &page, form, &file)?;
            plotted.push(Plotted { file, picture });
        }
        if out.is_json() {
            out.write_json(&plotted)?;
        } else {
            plotted.iter().try_for_each(|plotted| writeln!(out, "{}", plotted.file.display()))?;
        }
        let empty = plotted.iter().find(|plotted| plotted.picture.is_empty());
        let why = |chart: &plotting::Chart| format!("it shows nothing, because {}", chart.if_empty);
        let empty =
            empty.and_then(|plotted| Some((plotted.file.clone(), why(plotted.picture.charts.first()?))));
        match empty {
            Some((path, why)) => Err(Error::Undrawn { path, why }),
            None if plotted.is_empty() => {
                let why = "the recording has nothing that any picture shows".to_owned();
                Err(Error::Undrawn { path: self.output.clone(), why })
            }
            None => Ok(()),
        }
    }

    /// The form of all files.
    fn form(&self) -> Result<Form, Error> {
        let of_folder = self.is_folder().then_some(Form::Svg);
        let form = self.form.or(of_folder).or_else(|| Form::of(&self.output));
        form.ok_or_else(|| Error::Undrawn {
            path: self.output.clone(),
            why:
                "its name ends neither in .svg or .png, nor in / as that of a folder; --form says what it is"
                    .to_owned(),
        })
    }

    /// The file of a picture.
    fn file(&self, name: &str, form: Form) -> PathBuf {
        match self.is_folder() {
            true => self.output.join(format!("{name}.{}", form.ending())),
            false => self.output.clone(),
        }
    }
}

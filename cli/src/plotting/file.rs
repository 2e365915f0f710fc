//! Pictures as files.

use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::page::{self, Page};
use super::picture::Picture;
use crate::error::Error;
use crate::whole_file;

/// The form of a picture's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Lines and texts, of any size
    Svg,
    /// Pixels, two for each of the size in each direction
    Png,
}

/// The pixels of a PNG file for each pixel of the picture, in each direction.
const SCALE: f32 = 2.0;

impl Form {
    /// The form that a file's name asks for.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?;
        Self::from_str(ending, true).ok()
    }

    /// As [`Self::of`].
    ///
    /// # Errors
    /// [`Error::Undrawn`] if the name asks for no form, with those that there are.
    pub(crate) fn named(path: &Path) -> Result<Self, Error> {
        let why = || "its name ends neither in .svg nor in .png".to_owned();
        Self::of(path).ok_or_else(|| Error::Undrawn { path: path.into(), why: why() })
    }

    /// How names of files of this form end.
    pub(crate) const fn ending(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }
}

/// Thins the picture, and draws it as SVG, for this file.
///
/// # Errors
/// [`Error::Undrawn`], with what kept it from being drawn.
pub(crate) fn svg(picture: &mut Picture, page: &Page, path: &Path) -> Result<String, Error> {
    picture.charts.iter_mut().for_each(|chart| chart.content.thin());
    page::svg(picture, page).map_err(|error| Error::Undrawn { path: path.into(), why: error.to_string() })
}

/// Thins the picture, and writes it as it is drawn. A file that was there is replaced.
///
/// # Errors
/// The system's.
pub(crate) fn write(picture: &mut Picture, page: &Page, form: Form, path: &Path) -> Result<(), Error> {
    let svg = svg(picture, page, path)?;
    let bytes = match form {
        Form::Svg => svg.into_bytes(),
        Form::Png => png(&svg).map_err(|why| Error::Undrawn { path: path.into(), why })?,
    };
    whole_file::write(path, &bytes)
}

/// The pixels of an SVG file that this program made.
fn png(svg: &str) -> Result<Vec<u8>, String> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    // For characters that the first font does not have.
    fonts.load_system_fonts();
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or("its size is zero")?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("it is too large")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}

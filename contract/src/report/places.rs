//! Events by the places where they happened: each place once.

use core::fmt;
use std::string::{String, ToString};
use std::vec::Vec;

use tripoint_core::internal::Json;

#[cfg(not(feature = "symbols"))]
use crate::report::resolve::Raw;
use crate::report::resolve::{CallersOf, Resolve};
#[cfg(feature = "symbols")]
use crate::report::symbols::Symbols;
use crate::thread::sites::SiteEvents;
use crate::words::class::ViolationClass;

/// How sites become places if the program does not say how.
#[cfg(feature = "symbols")]
pub(crate) const DEFAULT_SYMBOLS: &dyn Resolve = &Symbols;
/// How sites become places if the program does not say how.
#[cfg(not(feature = "symbols"))]
pub(crate) const DEFAULT_SYMBOLS: &dyn Resolve = &Raw;

/// The events of one class at one place.
struct Place {
    class: ViolationClass,
    count: usize,
    bytes: usize,
    site: String,
    callers: String,
}

/// Events by their places, and how many have no place that is known.
pub(crate) struct Places {
    places: Vec<Place>,
    without: Vec<(ViolationClass, usize)>,
}

impl Places {
    /// The places of `sites`, in the order in which they first occur. `events` are the numbers of all events, by the
    /// index of their class.
    pub(crate) fn new(events: &[usize; ViolationClass::COUNT], sites: &[SiteEvents]) -> Self {
        let mut places = Vec::<Place>::new();
        for &SiteEvents { class, count, bytes, ref site } in sites {
            let mut place = String::new();
            // Writing to a string does not fail.
            let _ = DEFAULT_SYMBOLS.resolve(site, &mut place);
            let callers = CallersOf(DEFAULT_SYMBOLS, site).to_string();
            let same =
                |known: &&mut Place| (known.class, &known.site, &known.callers) == (class, &place, &callers);
            match places.iter_mut().find(same) {
                Some(known) => (known.count, known.bytes) = (known.count + count, known.bytes + bytes),
                None => places.push(Place { class, count, bytes, site: place, callers }),
            }
        }
        let placed = |class| sites.iter().filter(|site| site.class == class).map(|site| site.count).sum();
        let rest = |class: ViolationClass| (class, events[class.index()].saturating_sub(placed(class)));
        let without = ViolationClass::ALL.into_iter().map(rest).filter(|(_, count)| *count > 0).collect();
        Self { places, without }
    }

    /// Writes the members `sites` and `without_site` of a JSON object.
    pub(crate) fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.name("sites")?;
        json.array(&mut self.places.iter(), |json, place| {
            json.object(|json| {
                json.text("class", place.class)?;
                json.number("count", place.count)?;
                json.number("bytes", place.bytes)?;
                json.text("site", &place.site)?;
                json.text("callers", &place.callers)
            })
        })?;
        json.name("without_site")?;
        json.object(|json| {
            self.without.iter().try_for_each(|(class, count)| json.number(class.name(), count))
        })
    }
}

/// One line for each place, each after a new line.
impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Place { class, count, bytes, site, callers } in &self.places {
            let separator = if callers.is_empty() { "" } else { " < " };
            write!(f, "\n  {class} x{count}, {bytes} bytes, {site}{separator}{callers}")?;
        }
        let mut rest = self.without.iter();
        rest.try_for_each(|(class, count)| write!(f, "\n  {class} x{count}, without a site"))
    }
}

//! What happened in a steady scope, as text and as JSON.

use core::fmt;

use tripoint_core::internal::Json;

use crate::phases::scope::SteadyScope;
use crate::report::places::Places;

impl SteadyScope {
    fn places(&self) -> Places {
        // Sites first: what happens meanwhile is counted without one.
        let sites = self.sites();
        Places::new(&self.events(), &sites)
    }

    /// Writes what happened in the scope as a JSON object.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        Json::new(out).object(|json| {
            json.text("scope", self.name())?;
            json.number("steady", self.is_steady())?;
            json.number("was_entered", self.was_entered())?;
            json.number("violations", self.violations())?;
            self.places().write_json(json)
        })
    }
}

/// One line, and one for each place that an event came from.
impl fmt::Display for SteadyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scope {}: ", self.name())?;
        match (self.was_entered(), self.is_steady()) {
            (false, _) => f.write_str("never entered"),
            (true, true) => f.write_str("steady"),
            (true, false) => write!(f, "not steady, violated x{}{}", self.violations(), self.places()),
        }
    }
}

//! What a run may cost while its threads are armed (design/cli.md `.gate.budget`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tripoint_contract::ViolationClass;

use crate::error::Error;

/// How many events each class may have, by the names of classes.
type Classes = BTreeMap<String, u64>;

/// A budget, as its file has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Budget {
    /// The command that repeats the run, in one line.
    pub(crate) command: Option<String>,
    /// How many amnesties may begin; any number if it is not there.
    pub(crate) amnesties: Option<u64>,
    /// For each thread; zero for classes that are not named.
    classes: Classes,
    /// For threads by name; what is not named here is as for each thread.
    threads: BTreeMap<String, Classes>,
}

impl Budget {
    /// Reads a budget.
    ///
    /// # Errors
    /// If the file cannot be read, or names a class that there is not.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::system("read the budget", path))?;
        let bad = |why: String| Error::Budget { path: path.into(), why };
        let budget: Self = toml::from_str(&text).map_err(|error| bad(error.to_string()))?;
        let classes = [&budget.classes].into_iter().chain(budget.threads.values());
        let unknown =
            classes.flat_map(Classes::keys).find(|name| !ViolationClass::NAMES.contains(&name.as_str()));
        match unknown {
            None => Ok(budget),
            Some(name) => {
                let known = ViolationClass::NAMES.join(", ");
                Err(bad(format!("there is no class '{name}'; the classes are {known}")))
            }
        }
    }

    /// The names of the threads that it names.
    pub(crate) fn threads(&self) -> impl Iterator<Item = &str> {
        self.threads.keys().map(String::as_str)
    }

    /// Whether it names a class, for a thread of this name or for all.
    pub(crate) fn names(&self, thread: &str, class: &str) -> bool {
        let of_thread = self.threads.get(thread);
        of_thread.into_iter().chain([&self.classes]).any(|classes| classes.contains_key(class))
    }

    /// How many events of a class a thread may have.
    pub(crate) fn of(&self, thread: Option<&str>, class: &str) -> u64 {
        let of_thread = thread.and_then(|thread| self.threads.get(thread)?.get(class));
        of_thread.or_else(|| self.classes.get(class)).copied().unwrap_or(0)
    }
}

//! The threads of a process, from outside.

use std::collections::BTreeMap;
use std::io;

use std::fs;
use std::path::PathBuf;

fn tasks(process: u32) -> PathBuf {
    format!("/proc/{process}/task").into()
}

/// The name of a thread; empty if it has ended.
pub(super) fn name(process: u32, thread: u32) -> String {
    let name = fs::read(tasks(process).join(thread.to_string()).join("comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end_matches('\n').escape_debug().to_string()
}

/// The threads that there are now, by number, with their names; those with one of the names, if there are any names.
pub(super) fn threads(process: u32, names: &[String]) -> io::Result<BTreeMap<u32, String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(tasks(process))? {
        let Ok(entry) = entry else { continue };
        let Some(thread) = entry.file_name().to_str().and_then(|number| number.parse().ok()) else {
            continue;
        };
        let name = name(process, thread);
        if names.is_empty() || names.contains(&name) {
            found.insert(thread, name);
        }
    }
    Ok(found)
}

/// The processors that are on.
pub(super) fn processors() -> io::Result<Vec<usize>> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online")?;
    parse_list(text.trim())
        .ok_or_else(|| io::Error::other(format!("the list of processors makes no sense: {text}")))
}

/// A list as the system writes it: `0-3,8`.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        found.extend(first..=last);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_single_numbers_and_ranges() {
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(parse_list(""), None);
        assert_eq!(parse_list("0-x"), None);
    }

    #[test]
    fn this_thread_is_among_those_of_this_process_and_names_choose() {
        let all = threads(std::process::id(), &[]).unwrap();
        assert!(all.contains_key(&std::process::id()), "{all:?}");
        assert!(threads(std::process::id(), &["no such name".to_owned()]).unwrap().is_empty());
    }
}

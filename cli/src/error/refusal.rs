//! A refusal of the system's, with what to do about it.

use core::fmt;
use std::io;

/// Shows an error, and what to do about it if that is known: which limit to raise, for example.
pub(crate) struct Refusal<'e>(pub(crate) &'e io::Error);

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        match limit(self.0.raw_os_error()) {
            Some((what, command)) => write!(f, "; raise the limit of {what} ({command})"),
            None if self.0.kind() == io::ErrorKind::AlreadyExists => {
                f.write_str("; remove it, or choose another name")
            }
            None => Ok(()),
        }
    }
}

/// Which limit an error is about, and the command of a shell that shows and raises it.
fn limit(error: Option<i32>) -> Option<(&'static str, &'static str)> {
    match error? {
        libc::EMFILE => Some(("open files", "ulimit -n")),
        libc::ENFILE => Some(("open files of all processes", "sysctl fs.file-max")),
        libc::EFBIG => Some(("the size of files", "ulimit -f")),
        // To start a process or a thread is all that this program does that ends so.
        libc::EAGAIN => Some(("processes and threads", "ulimit -u")),
        libc::ENOMEM => Some(("memory", "ulimit -v, or that of the control group")),
        libc::EDQUOT => Some(("room on that file system", "quota")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_about_limits_name_them_and_others_stay_as_they_are() {
        let shown = |error| Refusal(&io::Error::from_raw_os_error(error)).to_string();
        for (error, words) in [
            (libc::EMFILE, "open files (ulimit -n)"),
            (libc::ENFILE, "open files of all processes (sysctl fs.file-max)"),
            (libc::EFBIG, "the size of files (ulimit -f)"),
            (libc::EAGAIN, "processes and threads (ulimit -u)"),
            (libc::ENOMEM, "memory (ulimit -v, or that of the control group)"),
            (libc::EDQUOT, "room on that file system (quota)"),
        ] {
            let plain = io::Error::from_raw_os_error(error);
            assert_eq!(shown(error), format!("{plain}; raise the limit of {words}"));
        }
        assert_eq!(shown(libc::ENOENT), io::Error::from_raw_os_error(libc::ENOENT).to_string());
        assert_eq!(Refusal(&io::Error::other("why")).to_string(), "why");
    }
}

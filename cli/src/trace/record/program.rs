//! Whether a program can be recorded: whether the dynamic loader will preload a library into it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{FileHeader32, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader as _};

use crate::error::Unrecordable;

/// How many scripts may be interpreters of scripts: the kernel allows four.
const INTERPRETERS: u32 = 4;

/// The file of a command, as `execvp` finds it.
pub(crate) fn find(command: &OsStr) -> Result<PathBuf, Unrecordable> {
    if command.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(command));
    }
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(command));
    places.find(is_program).ok_or(Unrecordable::NotFound)
}

/// Whether this file can be recorded, or the interpreter that it names, if it is a script.
pub(crate) fn examine(path: &Path) -> Result<(), Unrecordable> {
    examine_nested(path, INTERPRETERS)
}

fn examine_nested(path: &Path, interpreters: u32) -> Result<(), Unrecordable> {
    let data = fs::metadata(path).map_err(|_| Unrecordable::NotFound)?;
    // Enough for the heads, which linkers put first. What cannot be read or understood is left to the kernel.
    let mut head = Vec::new();
    if File::open(path).and_then(|file| file.take(64 << 10).read_to_end(&mut head)).is_err() {
        return Ok(());
    }
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
        let interpreter = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        return match interpreters.checked_sub(1) {
            Some(rest) => examine_nested(Path::new(OsStr::from_bytes(interpreter)), rest),
            None => Ok(()),
        };
    }
    // The same user may run it: then the loader is not careful.
    if data.permissions().mode() & 0o6000 != 0 && !rustix::process::getuid().is_root() {
        return Err(Unrecordable::OtherUser);
    }
    if let Ok(head64) = FileHeader64::<Endianness>::parse(&*head) {
        return if has_interpreter(head64, &head) { Ok(()) } else { Err(Unrecordable::Static) };
    }
    match FileHeader32::<Endianness>::parse(&*head) {
        Ok(head32) if has_interpreter(head32, &head) => Err(Unrecordable::OtherWidth),
        Ok(_) => Err(Unrecordable::Static),
        Err(_) => Ok(()),
    }
}

fn has_interpreter<H: FileHeader<Endian = Endianness>>(header: &H, head: &[u8]) -> bool {
    let Ok(endian) = header.endian() else { return true };
    // If the program headers are elsewhere, the loader decides.
    header
        .program_headers(endian, head)
        .map_or(true, |headers| headers.iter().any(|header| header.p_type(endian) == PT_INTERP))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of these bytes, with this mode.
    fn file(bytes: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    /// This test's own program, which is linked dynamically, with its interpreter's header made another.
    fn own_program(without_interpreter: bool) -> Vec<u8> {
        let mut bytes = fs::read(std::env::current_exe().unwrap()).unwrap();
        bytes.truncate(64 << 10);
        if without_interpreter {
            let begin = u64::from_le_bytes(bytes[0x20..0x28].try_into().unwrap()) as usize;
            for at in (begin..begin + 56 * 20).step_by(56) {
                if bytes[at..at + 4] == 3_u32.to_le_bytes() {
                    bytes[at] = 0;
                }
            }
        }
        bytes
    }

    #[test]
    fn dynamic_programs_and_scripts_for_them_can_be_recorded() {
        let (_folder, program) = file(&own_program(false), 0o755);
        assert_eq!(examine(&program), Ok(()));
        let (_other, script) = file(format!("#! {} -x\n", program.display()).as_bytes(), 0o755);
        assert_eq!(examine(&script), Ok(()));
    }

    #[test]
    fn static_programs_and_scripts_for_them_cannot() {
        let (_folder, program) = file(&own_program(true), 0o755);
        assert_eq!(examine(&program), Err(Unrecordable::Static));
        let (_other, script) = file(format!("#!{}\n", program.display()).as_bytes(), 0o755);
        assert_eq!(examine(&script), Err(Unrecordable::Static));
    }

    #[test]
    fn a_script_that_interprets_itself_ends() {
        let (_folder, script) = file(b"", 0o755);
        fs::write(&script, format!("#!{}\n", script.display())).unwrap();
        assert_eq!(examine(&script), Ok(()));
    }

    #[test]
    fn missing_programs_are_named() {
        assert_eq!(examine(Path::new("/no/such/program")), Err(Unrecordable::NotFound));
        assert_eq!(find(OsStr::new("no-such-program-anywhere")), Err(Unrecordable::NotFound));
        assert!(find(OsStr::new("sh")).is_ok());
    }
}

//! Notes where the program and its libraries are loaded
//! ([design/telemetry.md `.objects`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use tripoint_stack::{LoadedObject, visit_objects};

use crate::file::objects::{Object, ObjectTable};
use crate::recorder::telemetry::Telemetry;

impl Telemetry {
    /// Adds the libraries that were loaded since the telemetry was created (`dlopen`), so that readers can tell in which
    /// of them a code address is. It does nothing while addresses are left out. Call it on a thread that may wait: it
    /// asks the loader, whose lock it takes, and allocates.
    #[cfg_attr(docsrs, doc(cfg(all(feature = "linux", target_os = "linux"))))]
    pub fn note_objects(&self) {
        let table = &self.image().objects;
        if table.is_empty() || !self.may_write() || self.switches().without_addresses() || cfg!(miri) {
            return;
        }
        // The loader does not have the path of the program itself.
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::new());
        let mut is_program = true;
        visit_objects(|object| {
            let path = if is_program { program.as_os_str().as_bytes() } else { object.name().to_bytes() };
            is_program = false;
            note_object(table, object, path);
            false
        });
    }
}

fn note_object(table: &ObjectTable<'_>, object: &LoadedObject<'_>, path: &[u8]) {
    let Some(extent) = object.extent() else { return };
    table.note(&Object {
        base: object.base() as u64,
        start: extent.start as u64,
        end: extent.end as u64,
        build_id: object.build_id().unwrap_or_default(),
        path,
    });
}

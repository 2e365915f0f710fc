//! The platform that an arena uses unless it is created on another.

/// The platform of this target: Linux.
#[cfg(all(target_os = "linux", not(miri)))]
pub type Native = super::linux::Linux;

/// The platform of this target: Windows.
#[cfg(all(windows, not(miri)))]
pub type Native = super::windows::Windows;

/// The platform of this target: WebAssembly's memory. In that of Emscripten what grows at the end belongs to its C
/// library.
#[cfg(all(target_arch = "wasm32", not(target_os = "emscripten")))]
pub type Native = super::linear::Linear<super::wasm::WasmMemory>;

/// The platform of this target: the portable one, because we know no other. The same under
/// Miri, which has no addresses without access ([design/arena-vm.md `.miri`](crate::design::arena_vm)).
#[cfg(any(
    not(any(target_os = "linux", windows, all(target_arch = "wasm32", not(target_os = "emscripten")))),
    miri
))]
pub type Native = super::portable::Portable;

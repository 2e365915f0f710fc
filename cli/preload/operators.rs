//! C++'s `operator new` and `operator delete`, which need not call `malloc` (design/cli-traces.md `.operators`).
//!
//! What they do inside is an allocator's own business: only the object is recorded. They throw exceptions, which pass
//! through here.

use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::functions::{aligned_alloc, free, log2, malloc};
use crate::inside::Inside;
use crate::record::record;
use crate::ring::code;
use crate::system;

/// An operator of the next library.
struct Operator {
    name: &'static CStr,
    /// Null before it is looked up, and [`MISSING`] if there is none.
    at: AtomicPtr<c_void>,
}

const MISSING: *mut c_void = ptr::without_provenance_mut(1);

/// Libraries with operators that a program may have loaded by itself, so that they come after no other.
const LOADED: [&CStr; 3] = [c"libstdc++.so.6", c"libc++abi.so.1", c"libc++.so.1"];

impl Operator {
    const fn new(name: &'static CStr) -> Self {
        Self { name, at: AtomicPtr::new(ptr::null_mut()) }
    }

    #[inline]
    fn real(&self) -> Option<*mut c_void> {
        let mut at = self.at.load(Ordering::Relaxed);
        if at.is_null() {
            at = self.look_up();
            self.at.store(at, Ordering::Relaxed);
        }
        (at != MISSING).then_some(at)
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self) -> *mut c_void {
        let name: *const c_char = self.name.as_ptr();
        // SAFETY: the handle that means the next library, and a text that ends with a zero.
        let next = unsafe { system::dlsym(ptr::without_provenance_mut(usize::MAX), name) };
        if !next.is_null() {
            return next;
        }
        for library in LOADED {
            if let Some(handle) = system::loaded(library) {
                // SAFETY: a handle that stays, and a text that ends with a zero.
                let at = unsafe { system::dlsym(handle, name) };
                if !at.is_null() {
                    return at;
                }
            }
        }
        MISSING
    }
}

/// Calls a real operator that allocates, or what stands in for it, and records the object.
#[inline]
unsafe fn allocate(
    operator: &Operator,
    size: usize,
    align: usize,
    throws: bool,
    call: impl FnOnce(*mut c_void) -> *mut c_void,
) -> *mut c_void {
    let (inside, is_outermost) = Inside::enter();
    let object = match operator.real() {
        Some(at) => call(at),
        None => {
            // SAFETY: they have no conditions.
            let object = unsafe {
                if align == 0 { malloc(size.max(1)) } else { aligned_alloc(align, size.max(1)) }
            };
            if throws && object.is_null() {
                // Without a real operator nothing can throw.
                system::abort();
            }
            object
        }
    };
    drop(inside);
    if is_outermost && !object.is_null() {
        let code = if align == 0 { code::PLAIN } else { code::ALIGNED };
        record(code, object, size, log2(align));
    }
    object
}

/// Records that an object is freed, and calls a real operator, or what stands in for it.
#[inline]
unsafe fn release(operator: &Operator, object: *mut c_void, call: impl FnOnce(*mut c_void)) {
    let (_inside, is_outermost) = Inside::enter();
    if is_outermost && !object.is_null() {
        record(code::FREE, object, 0, 0);
    }
    match operator.real() {
        Some(at) => call(at),
        // SAFETY: if there is no operator to free it, there was none to allocate it: it came from `malloc`.
        None => unsafe { free(object) },
    }
}

/// Operators that allocate: their symbols, and what they take after the size.
macro_rules! news {
    ($($symbol:ident($($argument:ident: $type:ty),*), $align:expr, $throws:expr;)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C-unwind" fn $symbol(size: usize $(, $argument: $type)*) -> *mut c_void {
            static REAL: Operator = Operator::new(
                // SAFETY: the text ends with its only zero.
                unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($symbol), "\0").as_bytes()) });
            let call = |at: *mut c_void| {
                // SAFETY: the operator with this symbol has this type.
                let real: unsafe extern "C-unwind" fn(usize $(, $type)*) -> *mut c_void = unsafe { transmute(at) };
                // SAFETY: the caller's duties are those of the real operator.
                unsafe { real(size $(, $argument)*) }
            };
            // SAFETY: the arguments are the caller's, which are those of an operator with this symbol.
            unsafe { allocate(&REAL, size, $align, $throws, call) }
        }
    )*};
}

news! {
    _Znwm(), 0, true;
    _Znam(), 0, true;
    _ZnwmRKSt9nothrow_t(tag: *const c_void), 0, false;
    _ZnamRKSt9nothrow_t(tag: *const c_void), 0, false;
    _ZnwmSt11align_val_t(align: usize), align, true;
    _ZnamSt11align_val_t(align: usize), align, true;
    _ZnwmSt11align_val_tRKSt9nothrow_t(align: usize, tag: *const c_void), align, false;
    _ZnamSt11align_val_tRKSt9nothrow_t(align: usize, tag: *const c_void), align, false;
}

/// Operators that free: their symbols, and what they take after the object.
macro_rules! deletes {
    ($($symbol:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C-unwind" fn $symbol(object: *mut c_void $(, $argument: $type)*) {
            static REAL: Operator = Operator::new(
                // SAFETY: the text ends with its only zero.
                unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($symbol), "\0").as_bytes()) });
            let call = |at: *mut c_void| {
                // SAFETY: the operator with this symbol has this type.
                let real: unsafe extern "C-unwind" fn(*mut c_void $(, $type)*) = unsafe { transmute(at) };
                // SAFETY: the caller's duties are those of the real operator.
                unsafe { real(object $(, $argument)*) };
            };
            // SAFETY: the object is the caller's, which gives it up as an operator with this symbol requires.
            unsafe { release(&REAL, object, call) };
        }
    )*};
}

deletes! {
    _ZdlPv();
    _ZdaPv();
    _ZdlPvm(size: usize);
    _ZdaPvm(size: usize);
    _ZdlPvRKSt9nothrow_t(tag: *const c_void);
    _ZdaPvRKSt9nothrow_t(tag: *const c_void);
    _ZdlPvSt11align_val_t(align: usize);
    _ZdaPvSt11align_val_t(align: usize);
    _ZdlPvmSt11align_val_t(size: usize, align: usize);
    _ZdaPvmSt11align_val_t(size: usize, align: usize);
    _ZdlPvSt11align_val_tRKSt9nothrow_t(align: usize, tag: *const c_void);
    _ZdaPvSt11align_val_tRKSt9nothrow_t(align: usize, tag: *const c_void);
}

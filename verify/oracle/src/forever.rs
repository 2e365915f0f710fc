//! Values for as long as the process runs.

use core::any::Any;
use std::sync::{Mutex, PoisonError};

/// Keeps a value until the process ends. A static refers to it, so Miri does not report it
/// as leaked.
pub fn forever<T: Send + Sync + 'static>(value: T) -> &'static T {
    static KEPT: Mutex<Vec<&'static (dyn Any + Send + Sync)>> = Mutex::new(Vec::new());
    let value: &'static T = Box::leak(Box::new(value));
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    value
}

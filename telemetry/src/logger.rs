//! Reporting of every object, at allocation points and in stores.

pub(crate) mod logged_store;
pub(crate) mod point_logger;

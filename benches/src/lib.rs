//! Measurements of tripoint against its peers.

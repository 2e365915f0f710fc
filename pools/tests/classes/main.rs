//! What is special to each class, to its caches, and to what they have in common.

#[path = "../common/mod.rs"]
mod common;

mod bins;
mod cache;
mod mfs;
mod mfs_cache;
mod mfs_points;
mod mfs_trim;
mod mvff;
mod mvt;
mod null;
mod snc;
mod space;
mod spare;
mod tlsf;

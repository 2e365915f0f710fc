//! Frames: the stack form of allocation points.

mod frame;
mod frame_box;
mod scope;

pub use frame::Frame;
pub use frame_box::FrameBox;
pub use scope::Scope;

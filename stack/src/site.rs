//! A call stack as a value of fixed size.

#![forbid(unsafe_code)]

/// Where something happened: return addresses, the innermost first. (An interrupted instruction
/// has no return address; its frame is its own address plus one.)
///
/// Turn the addresses into names and lines later, on another thread or in another process, because that
/// takes time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    frames: [usize; Site::FRAMES],
}

impl Site {
    /// The most code addresses of a site. The innermost are kept.
    pub const FRAMES: usize = if cfg!(tripoint_loom) { 1 } else { 20 };

    /// An unknown site.
    pub const UNKNOWN: Self = Self { frames: [0; Self::FRAMES] };

    /// The site that consists of the first [`Site::FRAMES`] of these frames. A zero ends them.
    pub fn new(frames: impl IntoIterator<Item = usize>) -> Self {
        let mut site = Self::UNKNOWN;
        for (to, frame) in site.frames.iter_mut().zip(frames).take_while(|(_, frame)| *frame != 0) {
            *to = frame;
        }
        site
    }

    /// The code addresses, the innermost first.
    #[must_use]
    pub fn frames(&self) -> &[usize] {
        let known = self.frames.iter().position(|&frame| frame == 0).unwrap_or(Self::FRAMES);
        &self.frames[..known]
    }

    /// The code addresses, and a zero for each that is missing.
    #[must_use]
    pub const fn words(&self) -> &[usize; Self::FRAMES] {
        &self.frames
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn as_many_frames_are_kept_as_fit() {
        for count in 0..Site::FRAMES + 3 {
            let site = Site::new(1..=count);
            assert!(site.frames().iter().copied().eq(1..=count.min(Site::FRAMES)), "{count}: {site:?}");
            assert_eq!(Site::new(*site.words()), site);
        }
    }

    #[test]
    fn a_zero_ends_a_site() {
        assert_eq!(Site::new([7, 0, 8]), Site::new([7]));
        assert_eq!(Site::new([0, 8]), Site::UNKNOWN);
    }
}

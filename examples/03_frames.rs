//! For an audio callback, a packet loop, a video frame: everything that one round allocates
//! dies at its end, in one step, and no destructor runs.
//!
//! ```sh
//! cargo run --example 03_frames
//! ```

use tripoint::{
    AllocationPoint, Arena, ArenaVm, ArenaVmOptions, Error, Prefault, Result, Scope, Snc, SncOptions,
};

type Stack<'arena> = Snc<&'arena ArenaVm>;

/// Samples in one callback.
const BLOCK: usize = 256;

/// A voice of the synthesiser.
struct Voice {
    /// Samples in a period.
    period: usize,
    loudness: f32,
}

impl Voice {
    /// A saw tooth, in memory of the frame: it cannot leave the frame, and the compiler
    /// checks that.
    fn render<'frame>(&self, frame: &mut Scope<'frame, '_, '_, Stack<'_>>) -> Result<&'frame mut [f32]> {
        frame.slice(BLOCK, |index| self.loudness * (index % self.period) as f32 / self.period as f32)
    }
}

/// What an audio driver calls for each block. Neither `malloc` nor a lock is in it.
fn callback(point: &mut AllocationPoint<'_, Stack<'_>>, voices: &[Voice], output: &mut [f32]) -> Result<()> {
    point.scope(|frame| {
        let mix = frame.slice(BLOCK, |_| 0.0)?;
        for voice in voices {
            // A frame within the frame: the memory of one voice serves the next.
            frame.scope(|inner| {
                let rendered = voice.render(inner)?;
                for (sum, sample) in mix.iter_mut().zip(rendered) {
                    *sum += *sample;
                }
                Ok::<_, Error>(())
            })?;
        }
        let peak = mix.iter().fold(1.0_f32, |peak, sample| peak.max(sample.abs()));
        for (out, sample) in output.iter_mut().zip(mix) {
            *out = *sample / peak;
        }
        Ok(())
    })
}

fn main() -> Result<(), Error> {
    // Prefaulted: pages are there before they are used, so that the first use costs no page
    // fault in the callback.
    let arena = ArenaVm::create(ArenaVmOptions {
        commit_limit: 1 << 20,
        prefault: Prefault::Everything,
        ..ArenaVmOptions::default()
    })?;
    let stack = Snc::create(&arena, SncOptions::default())?;
    let mut point = AllocationPoint::create(&stack)?;
    let voices: Vec<_> = (1..=16).map(|n| Voice { period: 16 * n, loudness: 0.5 }).collect();
    let mut output = [0.0; BLOCK];

    callback(&mut point, &voices, &mut output)?; // warm: the point has its block now
    arena.freeze(); // the arena cannot grow from here on
    let (sizes, fills) = (arena.sizes(), arena.counts().fills.get());

    for _ in 0..10_000 {
        callback(&mut point, &voices, &mut output)?;
    }

    println!("10000 callbacks; the last sample is {}", output[BLOCK - 1]);
    assert!(output.iter().all(|sample| (0.0..=1.0).contains(sample)));
    assert_eq!(arena.sizes(), sizes, "ten thousand rounds took no memory");
    assert_eq!(arena.counts().fills.get(), fills, "nor did the point go to its pool");
    assert_eq!(arena.counts().growth_refused.get(), 0, "nor did any round try to grow");

    // A round that needs more than there is gets an error, loses nothing, and the next works.
    let refused = point.scope(|frame| frame.slice(1 << 20, |_| 0_u64).map(|_| ()));
    println!("a round that is too large: {}", refused.unwrap_err());
    callback(&mut point, &voices, &mut output)?;
    Ok(())
}

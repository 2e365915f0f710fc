//! The chapters of the guide, so that their code is compiled and run with the other
//! documentation examples. They are read in `guide/`, not here.

#[doc = include_str!("../guide/src/which-class.md")]
struct WhichClass;

#[doc = include_str!("../guide/src/points.md")]
struct Points;

#[doc = include_str!("../guide/src/caches.md")]
struct Caches;

#[cfg(all(feature = "vm", target_os = "linux"))]
#[doc = include_str!("../guide/src/whole-program.md")]
struct WholeProgram;

#[cfg(feature = "adaptors")]
#[doc = include_str!("../guide/src/in-a-library.md")]
struct InALibrary;

#[cfg(feature = "vm")]
#[doc = include_str!("../guide/src/many-small-pools.md")]
struct ManySmallPools;

#[doc = include_str!("../guide/src/which-features.md")]
struct WhichFeatures;

#[doc = include_str!("../guide/src/frames.md")]
struct Frames;

#[cfg(feature = "vm")]
#[doc = include_str!("../guide/src/async.md")]
struct Async;

#[cfg(all(feature = "vm", feature = "packets"))]
#[doc = include_str!("../guide/src/packets.md")]
struct Packets;

#[cfg(all(feature = "vm", feature = "xdp", target_os = "linux"))]
#[doc = include_str!("../guide/src/af-xdp.md")]
struct AfXdp;

#[doc = include_str!("../guide/src/errors.md")]
struct Errors;

#[doc = include_str!("../guide/src/contract.md")]
struct Contract;

#[cfg(feature = "telemetry")]
#[doc = include_str!("../guide/src/sampling.md")]
struct Sampling;

#[cfg(feature = "telemetry")]
#[doc = include_str!("../guide/src/telemetry.md")]
struct Telemetry;

#[cfg(all(feature = "vm", feature = "contract", feature = "telemetry", target_os = "linux"))]
#[doc = include_str!("../guide/src/watched.md")]
struct Watched;

#[cfg(feature = "gc")]
#[doc = include_str!("../guide/src/automatic-pools.md")]
struct AutomaticPools;

#[cfg(all(feature = "packets", target_os = "linux"))]
#[doc = include_str!("../guide/src/device-memory.md")]
struct DeviceMemory;

#[doc = include_str!("../guide/src/bare-metal.md")]
struct BareMetal;

#[cfg(feature = "adaptors")]
#[doc = include_str!("../guide/src/from-typed-arena.md")]
struct FromTypedArena;

#[cfg(feature = "adaptors")]
#[doc = include_str!("../guide/src/from-bumpalo.md")]
struct FromBumpalo;

#[doc = include_str!("../guide/src/from-a-slab.md")]
struct FromASlab;

#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/verification.md")]
pub mod verification {}

#[doc = include_str!("../design/figures.md")]
pub mod figures {}

#[doc = include_str!("../design/laws.md")]
pub mod laws {}

#[doc = include_str!("../design/proofs.md")]
pub mod proofs {}

#[doc = include_str!("../design/mutants.md")]
pub mod mutants {}

#[doc = include_str!("../design/bare-metal.md")]
pub mod bare_metal {}

#[doc = include_str!("../design/order-book.md")]
pub mod order_book {}

#[doc = include_str!("../design/exchange.md")]
pub mod exchange {}

#[doc = include_str!("../design/packet-path.md")]
pub mod packet_path {}

#[doc = include_str!("../design/publishing.md")]
pub mod publishing {}

#[doc = include_str!("../design/walks.md")]
pub mod walks {}

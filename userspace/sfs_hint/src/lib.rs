//! Hints: what a serverless platform tells scx_sfs about its invocations.
//!
//! A platform knows more than the kernel: when a request arrived, its function,
//! and the process that will serve it. It sends this in a datagram, as text or
//! in a compact binary form, to a Unix socket or to a UDP port of this machine
//! (`scx_sfs --hint-listen`). The interface is that of the SFS paper's
//! OpenLambda port (process id and time of arrival), with the function name,
//! the service time and the start time of the process added.
//!
//! | module | content |
//! |---|---|
//! | [`hint`] | the content of a hint, and its limits |
//! | [`text`] | `pid=1234 arrival_us=... function=resize service_us=12000` |
//! | [`binary`] | the same in a few bytes |
//! | [`datagram`] | several hints in a datagram: reading and writing |
//! | [`address`] | where hints are sent |
//! | [`client`] | a client that never blocks |
//! | [`process`] | start times of processes |
//!
//! # Example
//!
//! ```no_run
//! use sfs_hint::{Address, Client, Form, Hint};
//!
//! let to: Address = "/run/scx_sfs/hint.sock".parse()?;
//! let mut client = Client::connect(&to, Form::Binary)?;
//! let hint = Hint {
//!     function: Some("resize".to_owned()),
//!     ..Hint::of(1234)
//! };
//! client.send(&hint)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod address;
pub mod binary;
pub mod client;
pub mod datagram;
pub mod error;
pub mod hint;
pub mod process;
pub mod text;

pub use address::{Address, AddressError};
pub use client::{Client, Delivery};
pub use datagram::{decode, encode, hints, Datagram, Form, Hints};
pub use error::{DecodeError, EncodeError, Place, Problem, SendError};
pub use hint::{
    Hint, HintRef, MAX_DATAGRAM_BYTES, MAX_FUNCTION_BYTES, MAX_HINTS, WALL_CLOCK_FROM_NS,
};

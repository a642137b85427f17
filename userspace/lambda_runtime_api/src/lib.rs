//! A small local Lambda.
//!
//! [`sandbox`] starts processes that run AWS's unmodified runtime interface
//! client and keeps them running. They pull their requests from the Runtime API
//! ([`runtime`]), each at its own address. Requests arrive at [`invoke`] and
//! wait for a sandbox in [`function`]. [`hint`] tells a scheduler which process
//! is about to serve which request.
//!
//! Source of the protocol: AWS Lambda developer guide, "Using the Lambda runtime
//! API for custom runtimes" (version 2018-06-01).

#![forbid(unsafe_code)]

pub mod function;
pub mod hint;
pub mod http;
pub mod invoke;
pub mod runtime;
pub mod sandbox;

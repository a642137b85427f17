//! A small local Lambda.
//!
//! [`sandbox`] starts processes that run AWS's unmodified runtime interface
//! client and keeps them running. They pull their requests from the Runtime API
//! ([`runtime`]), each at an address of its own. [`invoke`] is where requests
//! come in; [`function`] is where they wait for a sandbox. [`hint`] tells a
//! scheduler which process is about to serve what.
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

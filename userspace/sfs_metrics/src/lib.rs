//! Metrics of a running scheduler for Prometheus and node_exporter. The control loop supplies the
//! values, once a second at most and only if somebody asks (`Request::Export` of `sfs_statistics`).
//!
//! | module | purpose |
//! |---|---|
//! | [`catalogue`] | the metrics: names, units, help, values |
//! | [`form`] | the three formats, and which one a client wants |
//! | `protobuf` | the format with native histograms |
//! | `http` | requests and answers of one connection |
//! | `listener` | sockets |
//! | `exporter` | the thread that answers, and writes the textfile |
//! | `options` | options |

#![forbid(unsafe_code)]

pub mod catalogue;
mod exporter;
pub mod form;
mod http;
mod listener;
mod options;
mod protobuf;

pub use exporter::Exporter;
pub use options::{Address, MetricsOptions};

//! Tries the service under a live systemd: `make test-service`. The host's half
//! (`sfs_service test`) makes a Debian root file system, boots it with `vm/run`, and runs the
//! guest's half there (`sfs_service guest`): that installs the unit with `packaging/install.sh`
//! and does what an operator does to it. This crate owns the checks, how they are printed, and
//! the content of that guest.

#![forbid(unsafe_code)]

pub mod cli;
pub mod guest;
pub mod host;
pub mod part;

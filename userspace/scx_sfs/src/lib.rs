//! The loader: options, configuration, the control loop, learning, the service
//! manager, logging. It calls the crates for the kernel half, hints, cgroups and statistics. It is
//! a library beside its small `main()`, so that tests and fuzz targets can use its parts.

pub mod config;
pub mod control;
pub mod generate;
pub mod hint_command;
pub mod learn;
pub mod options;
pub mod predecessor;
pub mod program;
pub mod service;
pub mod settings;
pub mod signals;
pub mod terminal;

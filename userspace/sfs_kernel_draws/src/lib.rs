//! What a seed draws of the model's machine: what its CPUs share ([`topology`]), its control groups
//! ([`group_load`]), real-time tasks ([`real_time`]), what only some machines have ([`oddities`]); the
//! numbers ([`numbers`]); and what goes wrong ([`faults`]).

#![forbid(unsafe_code)]

pub mod faults;
pub mod group_load;
pub mod numbers;
pub mod oddities;
pub mod real_time;
pub mod topology;

//! What a seed draws of the model's machine: what its CPUs share ([`topology`]), its control groups
//! ([`group_load`]), what only some machines have ([`oddities`]); and the numbers ([`numbers`]).

#![forbid(unsafe_code)]

pub mod group_load;
pub mod numbers;
pub mod oddities;
pub mod topology;

//! Behaviour cases about functions: where an invocation begins and ends, its credit, FILTER's
//! queues and shards, overload, hints and learned ranks, placement, and what tenants and
//! cgroups with weights and quotas get.

pub mod boundaries;
pub mod credit;
pub mod groups;
pub mod hints;
pub mod learned;
pub mod overload;
pub mod placement;
pub mod policies;
pub mod queues;
pub mod sandboxes;
pub mod shards;
pub mod slice;
pub mod tenants;

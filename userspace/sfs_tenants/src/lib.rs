//! Tenants that try to get more of the machine than their due: their plans,
//! matches of a plan against an honest tenant of equal weight, and a search
//! that breeds plans and keeps the best (`sfs_suite search`). A program that plays
//! matches must pass its arguments to [`tenant::play_words`] if the first is
//! [`tenant::PLAY`], because tenants start it again.

mod breed;
pub mod matches;
pub mod search;
pub mod tenant;

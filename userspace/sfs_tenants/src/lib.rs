//! Tenants that try to get more of the machine than their due: plans of what they do, matches
//! of a plan against an honest tenant of equal weight, and a search that breeds plans and
//! keeps the best (`tests/search`). A program that plays matches must pass its arguments to
//! [`tenant::play_words`] if the first is [`tenant::PLAY`]: tenants start it anew.

mod breed;
pub mod matches;
pub mod search;
pub mod tenant;

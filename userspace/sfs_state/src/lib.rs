//! What a loader leaves for the next one, as files: the history of loaded schedulers, and the
//! learned state.
//!
//! | module | purpose |
//! |---|---|
//! | [`history`] | when schedulers were loaded, and how the last one ended |
//! | [`save`] | files that are written whole, or stay as they were |

pub mod history;
pub mod save;

//! What the numbers say, in plain words.

use crate::scheduler::Status;

/// A status in a few words.
pub fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::NotLoaded => "did not load, nothing was measured",
        Status::Ejected => "gone during the replay, the rest ran under EEVDF",
        Status::Reloaded => "loaded anew during the replay",
        Status::BadExit => "did not exit well",
    }
}

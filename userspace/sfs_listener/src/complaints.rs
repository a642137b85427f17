//! At most one log line a second for each kind of problem, so that a sender of invalid data
//! cannot flood the log.

/// Time between two lines of one kind, in ns.
const INTERVAL_NS: u64 = 1_000_000_000;

/// One kind of problem.
#[derive(Debug, Default)]
pub struct Complaint {
    said_at_ns: Option<u64>,
    unsaid: u64,
}

impl Complaint {
    /// Adds `count` at `now_ns`. Returns the total since the last line, if the next line is
    /// due.
    pub fn due(&mut self, count: u64, now_ns: u64) -> Option<u64> {
        self.unsaid += count;
        let early = |at| now_ns.saturating_sub(at) < INTERVAL_NS;
        if count == 0 || self.said_at_ns.is_some_and(early) {
            return None;
        }
        self.said_at_ns = Some(now_ns);
        Some(std::mem::take(&mut self.unsaid))
    }
}

/// The kinds of problems.
#[derive(Debug, Default)]
pub struct Complaints {
    /// Malformed input.
    pub malformed: Complaint,
    /// Times of arrival out of range.
    pub stale: Complaint,
    /// Processes that are not functions.
    pub foreign: Complaint,
    /// Processes that do not exist.
    pub dead: Complaint,
    /// Failures of the kernel half.
    pub failed: Complaint,
    /// Datagrams that did not fit into the socket.
    pub dropped: Complaint,
    /// Datagrams of senders who are not admitted.
    pub denied: Complaint,
    /// Hints beyond the rate of their sender.
    pub limited: Complaint,
    /// Whether it was logged that service times are ignored.
    pub said_of_service_times: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_counts_all() {
        let mut complaint = Complaint::default();
        assert_eq!(complaint.due(0, 5), None);
        assert_eq!(complaint.due(1, 5), Some(1));
        assert_eq!(complaint.due(3, 6), None);
        assert_eq!(complaint.due(2, INTERVAL_NS + 4), None);
        assert_eq!(complaint.due(0, INTERVAL_NS + 5), None);
        assert_eq!(complaint.due(1, INTERVAL_NS + 5), Some(6));
        assert_eq!(complaint.due(1, 9 * INTERVAL_NS), Some(1));
    }
}

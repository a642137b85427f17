//! Reports of what was learned about functions.

use std::cmp::Reverse;

use sfs_bpf::bpf_intf::{SFS_FUNCTION_COMM, SFS_FUNCTION_NAMED};
use sfs_policy::learn::Known;
use sfs_statistics::FunctionReport;

use super::Learning;

fn identity_name(key: u64) -> String {
    if key & NAMED != 0 {
        format!("name:{:x}", key & !NAMED)
    } else {
        format!("comm:{:x}", key & !SFS_FUNCTION_COMM)
    }
}

// bindgen reads the top bit as a sign.
const NAMED: u64 = SFS_FUNCTION_NAMED as u64;

impl Learning {
    /// Returns reports of the `most` functions with the most work, in this order. `name`
    /// returns the name of a function, if it has one.
    ///
    /// For the other functions only the work is read. With 100,000 functions this takes
    /// milliseconds, in which the control loop does nothing else.
    pub fn functions(
        &self,
        most: usize,
        name: impl Fn(u64) -> Option<String>,
    ) -> Vec<FunctionReport> {
        let mut known: Vec<Known<'_>> = self.learner.functions().collect();
        let all: u128 = known.iter().map(|one| u128::from(one.work_ns())).sum();
        if known.len() > most {
            known.select_nth_unstable_by_key(most, |one| Reverse(one.work_ns()));
            known.truncate(most);
        }
        let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
        let mut reports: Vec<FunctionReport> = known
            .iter()
            .map(|one| FunctionReport {
                key: one.key(),
                function: name(one.key()).unwrap_or_else(|| identity_name(one.key())),
                completions: one.completions(),
                p50_ms: ms(one.quantile_ns(0.5)),
                p90_ms: ms(one.quantile_ns(0.9)),
                p99_ms: ms(one.quantile_ns(0.99)),
                rank: one.rank().filter(|_| !self.given_up),
                work_share: one.work_ns() as f64 / all.max(1) as f64,
            })
            .collect();
        reports.sort_by(|a, b| {
            b.work_share
                .total_cmp(&a.work_share)
                .then_with(|| a.function.cmp(&b.function))
        });
        reports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_sorted_by_work() {
        let mut learning = Learning::new(None);
        for _ in 0..3 {
            learning.learner.on_completion(1, 1_000_000);
        }
        learning.learner.on_completion(2, 9_000_000);
        let name = |key| (key == 1).then(|| "one".to_string());
        let reports = learning.functions(10, name);
        assert_eq!(reports[0].function, "comm:2");
        assert_eq!(
            (reports[1].function.as_str(), reports[1].completions),
            ("one", 3)
        );
        assert!((reports[0].work_share - 0.75).abs() < 1e-9);
        // The share is relative to all functions, however few are requested.
        assert_eq!(learning.functions(1, name), reports[..1]);
        assert!(learning.functions(0, name).is_empty());
    }
}

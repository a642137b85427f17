//! The table, the worst first.

use crate::compare::Comparison;
use std::fmt::Write;

/// A ratio above this counts as worse than EEVDF.
const WORSE: f64 = 1.05;

/// A figure's name, and how to get it.
type Figure = (&'static str, fn(&Comparison) -> f64);

const FIGURES: [Figure; 4] = [
    ("mean slowdown", |one| one.slowdown),
    ("its 99th percentile", |one| one.tail_slowdown),
    ("mean turnaround", |one| one.mean),
    ("its 99.9th percentile", |one| one.tail),
];

/// The table in Markdown, and below it, for each figure, the geometric mean of its ratios and how
/// many are worse than EEVDF's.
pub fn text(mut all: Vec<Comparison>) -> String {
    all.sort_by(|a, b| b.slowdown.total_cmp(&a.slowdown));
    let mut text = String::from(
        "| seed | mean slowdown | simulated | p99 slowdown | mean | p99.9 | late, ms | workload |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for one in &all {
        let [base, own] = one.late_ms;
        let remark = match one.remark.as_str() {
            "" => String::new(),
            remark => format!(" ({remark})"),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {} | {} | {} | {base:.1}, {own:.1} | {}{remark} |",
            one.seed,
            marked(one.slowdown),
            one.simulated,
            marked(one.tail_slowdown),
            marked(one.mean),
            marked(one.tail),
            one.about,
        );
    }
    text.push('\n');
    for (name, figure) in FIGURES {
        let ratios: Vec<f64> = all
            .iter()
            .map(figure)
            .filter(|ratio| ratio.is_finite())
            .collect();
        let worse = ratios.iter().filter(|&&ratio| ratio > WORSE).count();
        let _ = writeln!(
            text,
            "{name}: {:.2} of EEVDF's in the geometric mean; worse than {WORSE} in {worse} of {}",
            geometric_mean(&ratios),
            ratios.len(),
        );
    }
    text
}

/// A ratio, bold if it is worse than EEVDF.
fn marked(ratio: f64) -> String {
    match ratio > WORSE {
        true => format!("**{ratio:.2}**"),
        false => format!("{ratio:.2}"),
    }
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    let logs: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (logs / ratios.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(seed: u64, slowdown: f64) -> Comparison {
        Comparison {
            seed,
            about: "a few".into(),
            slowdown,
            simulated: 0.5,
            tail_slowdown: 1.0,
            mean: 1.0,
            tail: 1.0,
            late_ms: [0.0, 0.1],
            remark: String::new(),
        }
    }

    #[test]
    fn the_worst_comes_first_and_is_marked() {
        let text = text(vec![one(1, 0.5), one(2, 2.0)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[2].starts_with("| 2 | **2.00** | 0.50 | 1.00 |"),
            "{text}"
        );
        assert!(lines[3].starts_with("| 1 | 0.50 |"), "{text}");
        let summary =
            "mean slowdown: 1.00 of EEVDF's in the geometric mean; worse than 1.05 in 1 of 2";
        assert_eq!(lines[5], summary);
    }
}

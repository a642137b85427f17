//! What is written down about the metrics agrees with them.

mod common;

use std::collections::BTreeSet;
use std::fs;

use common::{export, root};
use sfs_metrics::catalogue::{families, Kind};

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Returns all names under which Prometheus has values.
fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for one in families(&export(1)) {
        let name = one.exposed_name();
        if one.kind == Kind::Histogram {
            names.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")));
        }
        names.insert(name);
    }
    names
}

/// Returns the names of metrics in a text.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c));
    let is_name = |word: &&str| word.starts_with("scx_sfs_");
    words.filter(is_name).map(str::to_owned).collect()
}

#[test]
fn dashboard_and_alerts_name_metrics_that_exist() {
    let names = names();
    for file in ["alerts.yml", "alerts-test.yml", "dashboard.json"] {
        let text = read(&format!("packaging/monitoring/{file}"));
        let used = named(&text);
        assert!(used.len() > 8, "{file}: {used:?}");
        let unknown: Vec<_> = used.difference(&names).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
}

/// The table has a line for each metric, with its kind and its help.
#[test]
fn the_page_lists_each_metric() {
    let page = read("docs/monitoring.md");
    let mut wanted = Vec::new();
    for one in families(&export(1)) {
        let kind = match one.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        };
        let mut labels: Vec<_> = one
            .samples
            .iter()
            .flat_map(|sample| &sample.labels)
            .map(|(name, _)| *name)
            .collect();
        labels.sort_unstable();
        labels.dedup();
        let labels: Vec<_> = labels.iter().map(|name| format!("`{name}`")).collect();
        let help = one.help.trim_end_matches('.');
        wanted.push(format!(
            "| `{}` | {kind} | {} | {help} |",
            one.exposed_name(),
            labels.join(", ")
        ));
    }
    let missing: Vec<_> = wanted
        .iter()
        .filter(|line| !page.contains(line.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "the table should be:\n{}",
        wanted.join("\n")
    );
    let listed = page
        .lines()
        .filter(|line| line.starts_with("| `scx_sfs_"))
        .count();
    assert_eq!(listed, wanted.len());
}

/// The page explains each alert.
#[test]
fn the_page_lists_each_alert() {
    let (page, rules) = (
        read("docs/monitoring.md"),
        read("packaging/monitoring/alerts.yml"),
    );
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let alerts: Vec<_> = alerts.collect();
    assert!(alerts.len() > 10);
    for alert in alerts {
        assert!(page.contains(&format!("| `{alert}` | ")), "{alert}");
    }
}

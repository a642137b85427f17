//! What clients may ask for, and what they get.

use std::collections::BTreeMap;

use anyhow::{bail, Context, Result};
use scx_stats::prelude::*;

use super::server::{self};
use super::Metrics;
use crate::learn::FunctionReport;

/// What answers the requests of one client with what the control loop, by way of `ask`, has
/// to say.
pub(super) fn reader(ask: impl Fn(Request) -> Result<Answer> + Send + 'static) -> server::Reader {
    let mut earlier = Metrics::default();
    Box::new(move |request| match request.req.as_str() {
        "stats_meta" => {
            let meta = Metrics::meta();
            Ok(serde_json::to_value(BTreeMap::from([(
                meta.name.clone(),
                meta,
            )]))?)
        }
        "stats" => match request.args.get("target").map_or("top", String::as_str) {
            "top" => {
                let Answer::Metrics(now) = ask(Request::Metrics)? else {
                    bail!(ANSWERED_ELSE);
                };
                let answer = now.since(&earlier);
                earlier = *now;
                answer.to_json()
            }
            "functions" => {
                let most = most_functions(request.args.get("count"))?;
                let Answer::Functions(reports) = ask(Request::Functions { most })? else {
                    bail!(ANSWERED_ELSE);
                };
                Ok(serde_json::to_value(reports)?)
            }
            other => bail!("there are no statistics {other:?}; want top or functions"),
        },
        other => bail!("there is no request {other:?}; want stats or stats_meta"),
    })
}

/// Returns what a client that sends `bytes`, and no more, gets from a control loop that
/// answers as `ask` does.
pub fn answers_to(
    bytes: &[u8],
    ask: impl Fn(Request) -> Result<Answer> + Send + 'static,
) -> Vec<u8> {
    let mut said = Vec::new();
    // A vector takes all.
    let _ = server::converse(bytes, &mut said, &mut reader(ask), || {});
    said
}

const ANSWERED_ELSE: &str = "the control loop has answered something else";

/// Most functions that are listed at once, so that the control loop, which picks them, does
/// nothing else for no more than milliseconds.
pub const MAX_FUNCTIONS: usize = 1000;

/// How many functions a client wants to know of.
fn most_functions(count: Option<&String>) -> Result<usize> {
    let Some(count) = count else {
        return Ok(MAX_FUNCTIONS);
    };
    let count: usize = count.parse().context("count is no whole number")?;
    Ok(count.min(MAX_FUNCTIONS))
}

/// What a reader may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// The counters.
    Metrics,
    /// What is known of the functions with most work.
    Functions {
        /// Most that are wanted.
        most: usize,
    },
}

/// What it gets.
#[derive(Debug)]
pub enum Answer {
    /// The counters.
    Metrics(Box<Metrics>),
    /// What is known of the functions with most work, these first.
    Functions(Vec<FunctionReport>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(req: &str, args: &[(&str, &str)]) -> StatsRequest {
        let own = |(key, value): &(&str, &str)| (key.to_string(), value.to_string());
        StatsRequest::new(req, args.iter().map(own).collect())
    }

    #[test]
    fn requests_that_there_are_not_are_refused() {
        let mut reader = reader(|what| unreachable!("{what:?} was asked for"));
        for (wrong, word) in [
            (
                request("stats", &[("target", "bottom")]),
                "top or functions",
            ),
            (request("bye\n", &[]), "\"bye\\n\""),
            (
                request("stats", &[("target", "functions"), ("count", "all")]),
                "count",
            ),
        ] {
            let said = format!("{:#}", reader(&wrong).unwrap_err());
            assert!(said.contains(word), "{said}");
        }
        let meta = reader(&request("stats_meta", &[])).unwrap();
        assert!(meta["Metrics"]["fields"]["arrivals"].is_object(), "{meta}");
    }

    #[test]
    fn a_list_of_functions_has_a_bound() {
        let most = |count: &str| most_functions(Some(&count.to_owned())).unwrap();
        assert_eq!((most("0"), most("7")), (0, 7));
        assert_eq!(most("1000000"), MAX_FUNCTIONS);
        assert_eq!(most_functions(None).unwrap(), MAX_FUNCTIONS);
    }
}

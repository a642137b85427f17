//! Requests of clients and their answers.

use std::collections::BTreeMap;

use anyhow::{bail, Context, Result};
use scx_stats::prelude::*;

use super::peer::Peer;
use super::server::{self};
use super::{Export, FunctionReport, Metrics};

/// Returns a reader that answers the requests of one client, `peer`. It gets the answers from the
/// control loop through `ask`.
pub(super) fn reader(
    peer: Peer,
    ask: impl Fn(Request) -> Result<Answer> + Send + 'static,
) -> server::Reader {
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
            other => bail!("unknown statistics {other:?}; want top or functions"),
        },
        "config" => configuration(ask(Request::Configuration)?),
        "set" => {
            peer.check_may_change()?;
            let key = request.args.get("key").context("set needs a key")?;
            configuration(ask(Request::Set {
                key: key.clone(),
                value: request.args.get("value").cloned(),
            })?)
        }
        "reload" => {
            peer.check_may_change()?;
            configuration(ask(Request::Reload)?)
        }
        other => bail!("unknown request {other:?}; want stats, stats_meta, config, set or reload"),
    })
}

fn configuration(answer: Answer) -> Result<serde_json::Value> {
    match answer {
        Answer::Configuration(Ok(report)) => Ok(report),
        Answer::Configuration(Err(sentence)) => bail!("{sentence}"),
        _ => bail!(ANSWERED_ELSE),
    }
}

/// Returns the output to a client that sends just `bytes`, with `ask` as the control loop.
pub fn answers_to(
    bytes: &[u8],
    ask: impl Fn(Request) -> Result<Answer> + Send + 'static,
) -> Vec<u8> {
    let mut said = Vec::new();
    // Writing to a vector cannot fail.
    let _ = server::converse(bytes, &mut said, &mut reader(Peer::own(), ask), || {});
    said
}

const ANSWERED_ELSE: &str = "the control loop gave an unexpected answer";

/// Maximum number of functions in one answer. The control loop selects them, and this limit
/// keeps it busy for milliseconds at most.
pub const MAX_FUNCTIONS: usize = 1000;

/// Parses the number of functions that a client requests.
fn most_functions(count: Option<&String>) -> Result<usize> {
    let Some(count) = count else {
        return Ok(MAX_FUNCTIONS);
    };
    let count: usize = count.parse().context("count is not a whole number")?;
    Ok(count.min(MAX_FUNCTIONS))
}

/// Requests of readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The counters.
    Metrics,
    /// The learned state of the functions with the most work.
    Functions {
        /// Maximum number of functions.
        most: usize,
    },
    /// Everything that is exported as metrics.
    Export,
    /// The configuration in force.
    Configuration,
    /// To change a key of the configuration.
    Set {
        /// The key.
        key: String,
        /// Its new value; None: the one that it had at the start.
        value: Option<String>,
    },
    /// To read the files of the configuration again.
    Reload,
}

/// Answers to readers.
#[derive(Debug)]
pub enum Answer {
    /// The counters.
    Metrics(Box<Metrics>),
    /// The learned state of the functions with the most work, in this order.
    Functions(Vec<FunctionReport>),
    /// Everything that is exported as metrics.
    Export(Box<Export>),
    /// The configuration in force, after the change if one was requested, or what a reload has
    /// changed; or the sentence that refuses the change.
    Configuration(Result<serde_json::Value, String>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(req: &str, args: &[(&str, &str)]) -> StatsRequest {
        let own = |(key, value): &(&str, &str)| (key.to_string(), value.to_string());
        StatsRequest::new(req, args.iter().map(own).collect())
    }

    #[test]
    fn unknown_requests_are_refused() {
        let mut reader = reader(Peer::own(), |what| unreachable!("{what:?} was asked for"));
        for (wrong, word) in [
            (
                request("stats", &[("target", "bottom")]),
                "top or functions",
            ),
            (request("bye\n", &[]), "\"bye\\n\""),
            (request("set", &[("value", "5")]), "set needs a key"),
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
    fn changes_reach_the_control_loop_and_refusals_the_client() {
        let mut reader = reader(Peer::own(), |what| {
            Ok(Answer::Configuration(match what {
                Request::Configuration => Ok("all".into()),
                Request::Set { key, value } if key == "one" => Ok(value.into()),
                Request::Reload => Ok("again".into()),
                _ => Err("there is no such key".into()),
            }))
        });
        assert_eq!(reader(&request("config", &[])).unwrap(), "all");
        assert_eq!(reader(&request("reload", &[])).unwrap(), "again");
        let set = |args| request("set", args);
        assert_eq!(
            reader(&set(&[("key", "one"), ("value", "5")])).unwrap(),
            "5"
        );
        assert!(reader(&set(&[("key", "one")])).unwrap().is_null());
        let said = reader(&set(&[("key", "two")])).unwrap_err();
        assert_eq!(said.to_string(), "there is no such key");
    }

    #[test]
    fn a_list_of_functions_is_bounded() {
        let most = |count: &str| most_functions(Some(&count.to_owned())).unwrap();
        assert_eq!((most("0"), most("7")), (0, 7));
        assert_eq!(most("1000000"), MAX_FUNCTIONS);
        assert_eq!(most_functions(None).unwrap(), MAX_FUNCTIONS);
    }
}

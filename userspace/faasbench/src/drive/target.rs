//! The targets of requests.

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// Placeholder for the function's name in a URL for all functions.
const PLACEHOLDER: &str = "{function}";

/// One `--target`: a URL, for one function or for all functions without their
/// own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    function: Option<String>,
    /// `host:port` as the user wrote it.
    authority: String,
    address: SocketAddr,
    path: String,
}

impl FromStr for Target {
    type Err = String;

    /// Reads `[FUNCTION=]http://HOST:PORT[/PATH]`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (function, url) = match text.split_once("=http://") {
            Some((function, url)) => (Some(function.to_string()), url),
            None => {
                let url = text.strip_prefix("http://");
                (None, url.ok_or("want [FUNCTION=]http://HOST:PORT/PATH")?)
            }
        };
        let (authority, path) = match url.find('/') {
            Some(slash) => (&url[..slash], &url[slash..]),
            None => (url, "/"),
        };
        let unusual = |c: char| c.is_whitespace() || c.is_control();
        if path.contains(unusual) {
            return Err("the path must have no spaces or control characters".to_string());
        }
        let mut addresses = authority
            .to_socket_addrs()
            .map_err(|error| format!("cannot find {authority}, want HOST:PORT: {error}"))?;
        Ok(Self {
            function,
            authority: authority.to_string(),
            address: addresses.next().ok_or("the host has no address")?,
            path: path.to_string(),
        })
    }
}

/// A destination of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The address to connect to.
    pub address: SocketAddr,
    /// The request up to and including the `Host` header.
    head: String,
}

impl Place {
    /// The request with this JSON body, on its own connection.
    pub fn request(&self, body: &str) -> Vec<u8> {
        let length = body.len();
        format!(
            "{}Connection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}",
            self.head
        )
        .into_bytes()
    }
}

/// The place of each function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places(HashMap<String, Place>);

impl Places {
    /// Finds the place of each of `functions`: its own target, otherwise the
    /// one for all, with `{function}` in the path replaced by its name.
    ///
    /// # Errors
    /// If a function has no target, or two.
    pub fn find<'a>(
        targets: &[Target],
        functions: impl Iterator<Item = &'a str>,
    ) -> Result<Self, String> {
        for (at, target) in targets.iter().enumerate() {
            let twice = |other: &&Target| other.function == target.function;
            if targets[..at].iter().any(|other| twice(&other)) {
                let whose = target.function.as_deref().unwrap_or("all functions");
                return Err(format!("there are two targets for {whose}"));
            }
        }
        let of = |function: Option<&str>| {
            let found = targets
                .iter()
                .find(|one| one.function.as_deref() == function);
            found.cloned()
        };
        let mut places = HashMap::new();
        for function in functions {
            if places.contains_key(function) {
                continue;
            }
            let target = of(Some(function))
                .or_else(|| of(None))
                .ok_or_else(|| format!("no --target for the function {function} of the trace"))?;
            let path = target.path.replace(PLACEHOLDER, function);
            let head = format!("POST {path} HTTP/1.1\r\nHost: {}\r\n", target.authority);
            let address = target.address;
            places.insert(function.to_string(), Place { address, head });
        }
        Ok(Self(places))
    }

    /// The place of `function`, one of those passed to [`find`](Self::find).
    pub fn of(&self, function: &str) -> &Place {
        &self.0[function]
    }

    /// Every place once, by the name of a function that it serves.
    pub fn all(&self) -> Vec<(&str, &Place)> {
        let mut all: Vec<_> = self
            .0
            .iter()
            .map(|(name, place)| (name.as_str(), place))
            .collect();
        all.sort_by_key(|(name, _)| *name);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(targets: &[&str], functions: &[&str]) -> Result<Places, String> {
        let targets: Result<Vec<Target>, _> = targets.iter().map(|text| text.parse()).collect();
        Places::find(&targets?, functions.iter().copied())
    }

    #[test]
    fn a_function_has_its_own_target_or_that_of_all() {
        let found = places(
            &["f=http://127.0.0.1:1", "http://127.0.0.2:2/of/{function}/x"],
            &["f", "g", "f"],
        )
        .unwrap();
        let text = String::from_utf8(found.of("g").request("{}")).unwrap();
        assert_eq!(
            text,
            "POST /of/g/x HTTP/1.1\r\nHost: 127.0.0.2:2\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        );
        assert_eq!(found.of("f").address, "127.0.0.1:1".parse().unwrap());
        assert!(found.of("f").head.starts_with("POST / HTTP/1.1\r\n"));
        let names: Vec<_> = found.all().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["f", "g"]);
    }

    #[test]
    fn invalid_targets_are_explained() {
        let cases = [
            ("ftp://x", "want [FUNCTION=]http://HOST:PORT/PATH"),
            ("http://127.0.0.1", "want HOST:PORT"),
            ("http://127.0.0.1:1/a b", "no spaces"),
            ("http://127.0.0.1:99999", "cannot find"),
        ];
        for (text, message) in cases {
            let said = text.parse::<Target>().unwrap_err();
            assert!(said.contains(message), "{text}: {said}");
        }
        let missing = places(&["f=http://127.0.0.1:1"], &["g"]).unwrap_err();
        assert_eq!(missing, "no --target for the function g of the trace");
        let twice = places(&["http://127.0.0.1:1", "http://127.0.0.1:2"], &["g"]).unwrap_err();
        assert_eq!(twice, "there are two targets for all functions");
    }
}

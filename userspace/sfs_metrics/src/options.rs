//! Options: where metrics are served and written.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use nix::sys::stat::Mode;

/// Where metrics are served and written, and for how many functions.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Metrics (docs/monitoring.md)")]
pub struct MetricsOptions {
    /// Serve metrics for Prometheus at http://ADDR/metrics: a loopback address
    /// with a port, such as 127.0.0.1:9900, or the path of a Unix socket.
    #[arg(long, value_name = "ADDR")]
    pub metrics_listen: Option<Address>,

    /// Mode of the Unix socket, octal; only users with write permission can
    /// read the metrics.
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = parse_mode,
          requires = "metrics_listen")]
    pub metrics_mode: u32,

    /// Write the metrics to FILE every 15 seconds, for the textfile collector of
    /// node_exporter, which wants a name that ends with .prom. The file is
    /// removed at the end.
    #[arg(long, value_name = "FILE")]
    pub metrics_textfile: Option<PathBuf>,

    /// Number of functions with metrics of their own, those with the most work;
    /// the others are summed up as "other" [0..=200].
    #[arg(long, value_name = "N", default_value = "20",
          value_parser = clap::value_parser!(u16).range(0..=200))]
    pub metrics_functions: u16,
}

impl MetricsOptions {
    /// Returns whether metrics are wanted at all.
    pub fn are_wanted(&self) -> bool {
        self.metrics_listen.is_some() || self.metrics_textfile.is_some()
    }

    /// Returns whether they are served at a Unix socket.
    pub fn has_unix_socket(&self) -> bool {
        matches!(self.metrics_listen, Some(Address::Unix(_)))
    }
}

/// An address that only this machine can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A loopback address with a port.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str = "want 127.0.0.1:PORT, [::1]:PORT or the path of a Unix socket";
        let path = text.strip_prefix("unix:").unwrap_or(text);
        if path.starts_with('/') {
            return Ok(Self::Unix(path.into()));
        }
        let address: SocketAddr = text.parse().map_err(|_| FORMS.to_owned())?;
        if address.ip().is_loopback() {
            return Ok(Self::Tcp(address));
        }
        Err(format!(
            "{address} is no loopback address, and metrics name functions and have no password; \
             {FORMS}, and let a proxy with TLS and passwords serve other machines"
        ))
    }
}

fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok();
    mode.filter(|mode| Mode::from_bits(*mode).is_some() && *mode <= 0o777)
        .ok_or_else(|| "want an octal mode of at most 0777, such as 0660".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_can_be_served() {
        for text in [
            "127.0.0.1:9900",
            "[::1]:9900",
            "127.8.0.1:1",
            "unix:/run/m.sock",
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
        let path = "/run/m.sock".parse();
        assert_eq!(path, Ok(Address::Unix("/run/m.sock".into())));
        for text in ["0.0.0.0:9900", "[::]:9900", "10.0.0.1:1", "[fe80::1]:1"] {
            let said = text.parse::<Address>().unwrap_err();
            assert!(
                said.starts_with(text) && said.contains("no loopback"),
                "{said}"
            );
        }
        for text in [
            "",
            "9900",
            "localhost:9900",
            "unix:run",
            "127.0.0.1",
            "http://[::1]:1",
        ] {
            let said = text.parse::<Address>().unwrap_err();
            assert!(said.starts_with("want 127.0.0.1:PORT"), "{said}");
        }
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!(parse_mode("0660"), Ok(0o660));
        for text in ["", "8", "1000", "-1", "0o660"] {
            assert!(parse_mode(text).is_err(), "{text}");
        }
    }
}

//! What an operator looks at: `top`, the metrics that the dashboard asks for, and the account of a
//! slow request.

use std::fs;

use anyhow::{ensure, Context, Result};

use super::package::CONFIGURATION;
use super::service::expect_active;
use super::session::types;
use super::wait::{pause, within};
use crate::part::{METRICS, OUT};

/// Where the metrics are served, and what the service needs for that: both as in
/// docs/monitoring.md.
const ADDRESS: &str = "127.0.0.1:9900";
const DROP_IN: &str =
    "[Service]\\nRestrictAddressFamilies=AF_INET AF_INET6\\nIPAddressAllow=localhost\\n";
const DROP_INS: &str = "/etc/systemd/system/scx_sfs.service.d";

/// Two invocations of a program that needs the CPU for long, side by side on one CPU, and some of a
/// short one.
const CONTENTION: &str = "head -c 6000000 /usr/bin/faasbench >data; \
    for i in 1 2; do gzip -9 -c data >/dev/null & done; \
    for i in $(seq 10); do sha256sum data >/dev/null; done; wait";

/// `top` shows a machine with a load: S, the queues, and a function.
///
/// # Errors
///
/// It does not.
pub fn tops() -> Result<()> {
    let said = types(&format!(
        "({CONTENTION}) & sleep 1; scx_sfs top --once; wait"
    ))?;
    said.well(&["scx_sfs", "S "])?;
    let wide = said.text().lines().find(|line| line.chars().count() > 100);
    ensure!(wide.is_none(), "wider than COLUMNS: {wide:?}");
    types("scx_sfs top --once --json")?.well(&["\"arrivals\""])
}

/// The metrics are served once the configuration says so. Two looks at them, with work in between,
/// are brought to the host, where the dashboard's queries are tried on them (`make test-package`).
///
/// # Errors
///
/// There are no such metrics.
pub fn exports() -> Result<()> {
    types(&format!(
        "cp {CONFIGURATION} saved.toml; echo 'metrics-listen = \"{ADDRESS}\"' >>{CONFIGURATION}; \
         systemctl restart scx_sfs"
    ))?
    .in_vain(&[])?;
    types("journalctl --no-pager -o cat -u scx_sfs | grep -m 1 'cannot serve metrics'")?
        .well(&["the service has no network", "systemctl edit scx_sfs"])?;
    types(&format!(
        "mkdir {DROP_INS}; printf '{DROP_IN}' >{DROP_INS}/metrics.conf; systemctl daemon-reload; \
         systemctl reset-failed scx_sfs; systemctl restart scx_sfs"
    ))?
    .well(&[])?;
    let asks = format!(
        "exec 3<>/dev/tcp/{}; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; sed '1,/^\\r*$/d' <&3",
        ADDRESS.replace(':', "/")
    );
    within(30, "the metrics are served", || {
        types(&format!("{asks} | head -n 3")).is_ok_and(|said| said.well(&["# "]).is_ok())
    })?;
    for look in METRICS {
        types(CONTENTION)?.well(&[])?;
        pause(2);
        types(&format!(
            "({asks}) >{OUT}/{look}; grep -c ^scx_sfs_ {OUT}/{look}"
        ))?
        .well(&[])?;
        let text = fs::read_to_string(format!("{OUT}/{look}"));
        let text = text.with_context(|| format!("cannot read {look}"))?;
        for name in [
            "scx_sfs_completions_total ",
            "scx_sfs_function_cpu_seconds_total{",
        ] {
            ensure!(text.contains(name), "there is no {name}in {look}");
        }
    }
    types(&format!(
        "mv saved.toml {CONFIGURATION}; rm -r {DROP_INS}; systemctl daemon-reload; \
         systemctl restart scx_sfs"
    ))?
    .well(&[])?;
    expect_active()
}

/// `explain` tells of the slowest invocation what it waited for, and who ran instead.
///
/// # Errors
///
/// It does not.
pub fn explains() -> Result<()> {
    let said = types(&format!(
        "scx_sfs explain --slower-than 100ms --seconds 8 --top 2 & sleep 1; ({CONTENTION}); wait $!"
    ))?;
    said.well(&["took 100 ms or longer", "gzip", "ran for ", "waited "])?;
    said.well(&["while it waited, its one CPU had: "])
}

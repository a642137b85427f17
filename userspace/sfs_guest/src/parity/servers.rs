//! Rows of servers and their clients. A server starts before its first row and stays. A
//! client runs once without a load and once with one; several rows read its output.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};

use super::figures::{field, microseconds, p99, rate, rounded};
use super::root::{self, ROOT};
use super::{enter, measured, Guest};
use crate::programs::{self, await_success, Ended};

const PAGE: &str = "http://127.0.0.1:8080/";

/// The folder of PostgreSQL's files, which are its user's.
const POSTGRES: &str = "/tmp/pg";
const POSTGRES_USER: u32 = 100;

/// Programs of PostgreSQL take their time; beyond this the guest is given up anyway.
const POSTGRES_LIMIT: Duration = Duration::from_secs(1800);

impl Guest {
    /// The `throughput` or `p99` that wrk reports of 16 connections for 2 s.
    pub fn nginx(&mut self, what: &str, load: &str) -> Result<String> {
        start_nginx(self.cpus)?;
        let client = "/usr/bin/wrk --threads 1 --connections 16 --duration 2s --latency";
        let mut arguments: Vec<&str> = client.split(' ').collect();
        arguments.push(PAGE);
        let said = self.output(format!("wrk{load}"), || Ok(enter(&arguments)?.output))?;
        measured(match what {
            "throughput" => rate(said, "Requests/sec:", 1),
            "p99" => field(said, "99%", 1).and_then(microseconds),
            _ => bail!("there is no such row"),
        })
    }

    /// The `throughput` or `p99` of `get` or `set` from 20 clients.
    pub fn redis(&mut self, command: &str, what: &str, load: &str) -> Result<String> {
        start_redis()?;
        let arguments = ["/usr/bin/redis-benchmark", "-t", command];
        let options = ["-n", "10000", "-c", "20", "--csv"];
        let arguments = [&arguments[..], &options[..]].concat();
        let name = format!("redis {command}{load}");
        let said = self.output(name, || Ok(enter(&arguments)?.output))?;
        // "test","rps","avg_latency_ms","min_...","p50_...","p95_...","p99_latency_ms",...
        let last = said.lines().last().unwrap_or_default().replace('"', "");
        let fields: Vec<&str> = last.split(',').collect();
        measured(match what {
            "throughput" => fields.get(1).map(|rate| format!("{rate} ops/s")),
            "p99" => {
                let ms = fields.get(6).and_then(|ms| ms.parse::<f64>().ok());
                ms.map(|ms| format!("{} us", rounded(ms * 1000.0)))
            }
            _ => bail!("there is no such row"),
        })
    }

    /// The `throughput` or `p99` of pgbench's `select`s or `write`s for 2 s.
    pub fn postgres(&mut self, kind: &str, what: &str, load: &str) -> Result<String> {
        start_postgres()?;
        let folder = format!("{POSTGRES}/{kind}{load}");
        let clients = (self.cpus * 2).to_string();
        let said = self.output(format!("pgbench {kind}{load}"), || {
            make_folder(&folder)?;
            let mut arguments = vec!["-h", "/tmp", "-n"];
            if kind == "select" {
                arguments.push("-S");
            }
            let log = format!("{folder}/log");
            arguments.extend(["-c", &clients, "-T", "2", "-l", "--log-prefix", &log]);
            arguments.push("postgres");
            Ok(as_postgres("pgbench", &arguments)?.output)
        })?;
        measured(match what {
            "throughput" => rate(said, "tps", 2),
            "p99" => p99(transactions(Path::new(&folder))?).map(|us| format!("{us} us")),
            _ => bail!("there is no such row"),
        })
    }
}

fn start_nginx(workers: usize) -> Result<()> {
    let folder = Path::new("/tmp/nginx");
    if !folder.join("pid").exists() {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("index.html"), "a page\n")?;
        fs::write("/tmp/nginx.conf", nginx_configuration(workers))?;
        enter(&["/usr/sbin/nginx", "-c", "/tmp/nginx.conf"])?;
    }
    let page = || {
        let mut wget = Command::new("wget");
        wget.args(["-q", "-O", "-", PAGE]);
        wget
    };
    ensure!(await_success(page), "nginx does not start");
    Ok(())
}

fn nginx_configuration(workers: usize) -> String {
    format!(
        "worker_processes {workers};
error_log /tmp/nginx/error.log;
pid /tmp/nginx/pid;
user root;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path /tmp/nginx/1; proxy_temp_path /tmp/nginx/2; fastcgi_temp_path /tmp/nginx/3;
    uwsgi_temp_path /tmp/nginx/4; scgi_temp_path /tmp/nginx/5;
    server {{ listen 127.0.0.1:8080; root /tmp/nginx; }}
}}
"
    )
}

fn start_redis() -> Result<()> {
    if !programs::processes("redis-server").is_empty() {
        return Ok(());
    }
    let server = ["/usr/bin/redis-server", "--port", "6379", "--save", ""];
    let options = ["--daemonize", "yes", "--dir", "/tmp"];
    enter(&[&server[..], &options[..]].concat())?;
    let ping = || root::command(&["/usr/bin/redis-cli", "ping"]);
    ensure!(await_success(ping), "redis does not start");
    Ok(())
}

fn start_postgres() -> Result<()> {
    let ready = Path::new(POSTGRES).join("ready");
    if ready.exists() {
        return Ok(());
    }
    make_folder(POSTGRES)?;
    let server = "-k /tmp -F -c jit=off -c listen_addresses=";
    let steps: [(&str, &[&str]); 3] = [
        (
            "initdb",
            &["-D", "/tmp/pg/data", "--no-sync", "--locale", "C"],
        ),
        (
            "pg_ctl",
            &[
                "-D",
                "/tmp/pg/data",
                "-w",
                "-l",
                "/tmp/pg/log",
                "-o",
                server,
                "start",
            ],
        ),
        ("pgbench", &["-h", "/tmp", "-i", "-q", "postgres"]),
    ];
    for (program, arguments) in steps {
        let ended = as_postgres(program, arguments)?;
        let last = ended.last_line();
        ensure!(ended.status == 0, "it does not start: {last}");
    }
    fs::write(ready, "").context("cannot write to /tmp")
}

/// Runs a program of PostgreSQL, which refuses to run as root.
fn as_postgres(program: &str, arguments: &[&str]) -> Result<Ended> {
    let user = POSTGRES_USER.to_string();
    let setpriv = ["/usr/bin/setpriv", "--reuid", &user, "--regid", &user];
    let mut command = root::command(&setpriv);
    let program = postgres_programs()?.join(program);
    command.arg("--clear-groups").arg(program).args(arguments);
    programs::run(&mut command, POSTGRES_LIMIT)
}

/// The folder of its programs, as seen in [`ROOT`].
fn postgres_programs() -> Result<PathBuf> {
    let above = Path::new("usr/lib/postgresql");
    let mut versions = fs::read_dir(Path::new(ROOT).join(above)).context("no PostgreSQL")?;
    let version = versions.next().context("no PostgreSQL")??.file_name();
    Ok(Path::new("/").join(above).join(version).join("bin"))
}

/// Makes a folder of PostgreSQL's user.
fn make_folder(path: &str) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot make {path}"))?;
    let user = Some(POSTGRES_USER);
    chown(path, user, user).with_context(|| format!("cannot give {path} away"))
}

/// The latencies of transactions in us, in the logs of pgbench.
fn transactions(folder: &Path) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let text = fs::read_to_string(entry?.path())?;
        let latency = |line: &str| line.split_whitespace().nth(2)?.parse::<u64>().ok();
        all.extend(text.lines().filter_map(latency));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_those_of_all_logs() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("log.1"), "0 0 150 0 1 2\n1 0 70 0 1 3\n").unwrap();
        fs::write(folder.path().join("log.1.1"), "0 0 9 0 1 2\n").unwrap();
        let mut all = transactions(folder.path()).unwrap();
        all.sort_unstable();
        assert_eq!(all, [9, 70, 150]);
    }
}

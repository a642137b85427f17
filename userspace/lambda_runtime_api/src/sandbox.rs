//! Sandboxes: processes that are started, and restarted when they end.

use crate::function::Function;
use anyhow::{bail, Context, Result};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// How to start the processes of a sandbox.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// Its number.
    pub number: usize,
    /// The address of its Runtime API.
    pub api: SocketAddr,
    /// The program and its arguments.
    pub command: Vec<String>,
}

impl Sandbox {
    /// Keeps a process of `function` running.
    ///
    /// # Errors
    /// If it cannot be started, or ends without having asked for an event,
    /// since a restart would not help.
    pub fn keep(&self, function: &Function) -> Result<()> {
        let name = &function.name;
        let [program, arguments @ ..] = self.command.as_slice() else {
            bail!("no command for the sandboxes");
        };
        loop {
            // As Lambda sets them for a runtime.
            let mut child = Command::new(program)
                .args(arguments)
                .env("AWS_LAMBDA_RUNTIME_API", self.api.to_string())
                .env("AWS_LAMBDA_FUNCTION_NAME", name)
                .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
                .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
                .stdin(Stdio::null())
                .spawn()
                .with_context(|| format!("cannot start {program} for {name}"))?;
            function.started(self.number, child.id());
            let status = child.wait().context("cannot wait for a sandbox")?;
            if !function.ended(self.number) {
                bail!("a sandbox of {name} ended before it asked for an event: {status}");
            }
            eprintln!(
                "lambda_runtime_api: a sandbox of {name} has ended and is restarted: {status}"
            );
        }
    }
}

//! A small local Lambda: sandboxes that run AWS's unmodified runtime interface
//! client, their Runtime API, and an address to invoke them at.

use anyhow::{ensure, Context, Result};
use clap::Parser;
use lambda_runtime_api::function::Function;
use lambda_runtime_api::hint::Hints;
use lambda_runtime_api::invoke::Front;
use lambda_runtime_api::runtime::Runtime;
use lambda_runtime_api::sandbox::Sandbox;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread;

/// A small local Lambda
///
/// Starts sandboxes, passes requests to them over the Lambda Runtime API, and
/// accepts requests at
/// http://127.0.0.1:PORT/2015-03-31/functions/NAME/invocations. Each sandbox
/// gets its own loopback address in AWS_LAMBDA_RUNTIME_API, which identifies
/// it, and its function in AWS_LAMBDA_FUNCTION_NAME. Runs until it is killed;
/// the sandboxes then end, too.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Options {
    /// A function; may be repeated
    #[arg(long = "function", required = true, value_name = "NAME", value_parser = function_name)]
    functions: Vec<String>,
    /// Number of sandboxes per function
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=254))]
    sandboxes: u8,
    /// Port at 127.0.0.1 for requests
    #[arg(long, default_value_t = 9000, value_name = "PORT")]
    invoke_port: u16,
    /// Port of the Runtime API, at 127.0.F.S for sandbox S of function F
    #[arg(long, default_value_t = 9001, value_name = "PORT")]
    runtime_port: u16,
    /// Unix datagram socket to send a hint to before a sandbox gets an event
    #[arg(long, value_name = "PATH")]
    hint_to: Option<PathBuf>,
    /// The program of a sandbox and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Parses a name that is valid in a path and in a hint.
fn function_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.is_empty() || text.len() > 64 || !text.chars().all(allowed) {
        return Err("want 1 to 64 letters, digits, - and _, as Lambda does".to_string());
    }
    Ok(text.to_string())
}

fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address)
        .with_context(|| format!("cannot listen at {address}; is another one running there?"))
}

/// Starts the API of a sandbox and its process; errors that end it are sent to
/// `ends`.
fn start(runtime: Runtime, sandbox: Sandbox, ends: &Sender<anyhow::Error>) -> Result<()> {
    let listener = listen(sandbox.api)?;
    let function = Arc::clone(&runtime.function);
    let runtime = Arc::new(runtime);
    thread::spawn(move || runtime.listen(&listener));
    let ends = ends.clone();
    thread::spawn(move || {
        if let Err(error) = sandbox.keep(&function) {
            let _ = ends.send(error);
        }
    });
    Ok(())
}

fn run(options: Options) -> Result<()> {
    ensure!(options.functions.len() < 255, "more than 254 functions");
    let hints = options.hint_to.map(Hints::to).transpose()?.map(Arc::new);
    let front = listen((Ipv4Addr::LOCALHOST, options.invoke_port).into())?;
    let (ends, end) = channel();
    let mut functions = Vec::new();
    for (name, f) in options.functions.into_iter().zip(1u8..) {
        let function = Arc::new(Function::new(name, options.sandboxes.into()));
        functions.push(Arc::clone(&function));
        for s in 1..=options.sandboxes {
            let number = usize::from(s) - 1;
            let runtime = Runtime {
                function: Arc::clone(&function),
                sandbox: number,
                hints: hints.clone(),
            };
            let sandbox = Sandbox {
                number,
                api: (Ipv4Addr::new(127, 0, f, s), options.runtime_port).into(),
                command: options.command.clone(),
            };
            start(runtime, sandbox, &ends)?;
        }
    }
    thread::spawn(move || Arc::new(Front::new(functions)).listen(&front));
    // Sandboxes are kept running forever; only an error ends this.
    Err(end.recv()?)
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lambda_runtime_api: {error:#}");
            ExitCode::FAILURE
        }
    }
}

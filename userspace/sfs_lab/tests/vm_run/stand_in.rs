//! Stands in for `vm/run` in the tests of `bench` and `overhead`: boots nothing, and leaves
//! what a guest would. The tests' trees have a link to it (`tests/common/stand_in.rs`). It works
//! in the tree's folder.

mod bench;
mod overhead;

use std::fs::File;
use std::io::Write;
use std::process::exit;

/// What `vm/run` was called with.
struct Call {
    /// Its options and their values.
    options: Vec<String>,
    /// The command for the guest.
    command: Vec<String>,
}

impl Call {
    fn from_args() -> Self {
        let mut options: Vec<String> = std::env::args().skip(1).collect();
        let end = options.iter().position(|word| word == "--");
        let command = options.split_off(end.expect("a command after --"));
        Self {
            options,
            command: command[1..].to_vec(),
        }
    }

    /// The values of an option, in their order.
    fn values<'a>(&'a self, option: &'a str) -> impl Iterator<Item = &'a str> {
        let pairs = self.options.windows(2);
        let own = pairs.filter(move |pair| pair[0] == option);
        own.map(|pair| pair[1].as_str())
    }

    /// The host's folder for results.
    fn out(&self) -> &str {
        let (_, host) = self
            .values("--out")
            .last()
            .unwrap()
            .split_once(':')
            .unwrap();
        host
    }
}

/// Adds a line to a file.
fn note(file: &str, line: &str) {
    let file = File::options().append(true).create(true).open(file);
    writeln!(file.unwrap(), "{line}").unwrap();
}

fn main() {
    let call = Call::from_args();
    exit(match call.command.iter().any(|word| word == "overhead") {
        true => overhead::run(&call),
        false => bench::run(&call),
    })
}

//! A repository in which stand-ins take the place of the VM, of faasbench and of Python.

// Each file of tests uses some of it.
#![allow(dead_code)]

use sfs_scripts::{run, Place, Said};
use std::process::Command;

/// The folder of the programs.
const RELEASE: &str = "userspace/target/release";

/// Notes its calls, and makes a trace with two functions.
const FAASBENCH: &str = r#"
echo "faasbench $*" >>"${0%/userspace/*}/calls"
case $* in
gen*' --load x '*) echo 'no load' >&2 && exit 2 ;;
gen*) printf 'arrival_us,function,service_us\n0,fib31,7\n5,fib24,8\n9,fib30,7\n' ;;
report*) echo 'the table' ;;
esac"#;

/// Notes its calls. By scheduler: scx_lost leaves no results, scx_sick fails, scx_slow runs until
/// there is a file `patience`, and eevdf waits for it to begin, as many times 10 ms as that
/// file says; in time, it writes the file `together`.
const VM_RUN: &str = r#"
top=${0%/vm/run}
echo "vm/run $*" >>"$top/calls"
while [[ $1 != -- ]]; do
    [[ $1 != --out ]] || out=${2#/out:}
    shift
done
row=${out##*/}
mkdir -p "$out"
case $row in
scx_lost) exit 124 ;;
scx_slow)
    trap 'touch "$top/ended"; exit 143' TERM
    touch "$top/begun"
    while [[ ! -e $top/patience ]]; do sleep 0.01; done
    ;;
eevdf)
    [[ ! -e $top/patience ]] || patience=$(<"$top/patience")
    for ((i = 0; i < ${patience:-0}; i++)); do
        [[ ! -e $top/begun ]] || { touch "$top/together" && break; }
        sleep 0.01
    done
    ;;
esac
echo "csv of $row" >"$out/$row.csv"
echo "json of $row" >"$out/$row.json"
echo "$row has run"
[[ $row != scx_sick ]]"#;

/// A Python with one module and one package.
const PYTHON: &str = r#"
top=${0%/bin/python}
case $* in
*sys.version,*) echo 3.99 /usr ;;
*sys.version_info*) echo 3.99 ;;
*stdlib*) echo "$top/stdlib" ;;
*sys.executable*) realpath /bin/sh ;;
*'pip --version') [[ ! -e $top/no-pip ]] ;;
*'pip install'*)
    echo "pip $*" >>"$top/calls"
    [[ ! -e $top/no-network ]] || { echo 'no network' >&2 && exit 1; }
    while [[ $1 != --target ]]; do shift; done
    mkdir -p "$2" && echo code >"$2/package.py"
    ;;
*compileall*) echo "compileall $*" >>"$top/calls" ;;
esac"#;

pub struct Tree {
    pub place: Place,
}

impl Tree {
    pub fn new() -> Self {
        let place = Place::new();
        for name in ["sfs_waste", "lambda_runtime_api", "scx_sfs", "scx_lost"] {
            place.script(&format!("{RELEASE}/{name}"), "");
        }
        for name in ["scx_sick", "scx_slow"] {
            place.script(&format!("{RELEASE}/{name}"), "");
        }
        place.script(&format!("{RELEASE}/faasbench"), FAASBENCH);
        place.script("vm/run", VM_RUN);
        place.script(
            "vm/fetch",
            r#"echo fetched; echo fetch >>"${0%/vm/*}/calls""#,
        );
        place.script("bin/python", PYTHON);
        place.write("vm/platforms/requirements.txt", "package==1\n");
        place.write("stdlib/module.py", "code\n");
        place.write("stdlib/test/unneeded.py", "code\n");
        Self { place }
    }

    /// `sfs_platforms` with these words, in the repository, and no variables but these and
    /// PATH.
    pub fn command(&self, words: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_platforms"));
        command
            .args(words)
            .current_dir(self.place.path(""))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("PYTHON", self.place.path("bin/python"))
            .envs(variables.iter().copied());
        command
    }

    pub fn run(&self, words: &[&str], variables: &[(&str, &str)]) -> Said {
        run(&mut self.command(words, variables))
    }

    /// The calls of the stand-ins since this was last asked, with the tree as `TOP`, and the
    /// archive with Python as `PYTHON`.
    pub fn calls(&self) -> Vec<String> {
        let calls = self.place.read("calls").replace(&self.top(), "TOP");
        self.place.write("calls", "");
        let plain = |line: &str| match line.split_once("TOP/.cache/platforms/") {
            Some((before, after)) => {
                let after = after.split_once(".tar").map_or(after, |(_, rest)| rest);
                format!("{before}PYTHON{after}")
            }
            None => line.to_owned(),
        };
        calls.lines().map(plain).collect()
    }

    /// The names of the rows for which a VM was booted since [`calls`](Self::calls) was last
    /// asked.
    pub fn booted(&self) -> Vec<String> {
        let calls = self.calls().into_iter();
        let rows = calls.filter_map(|call| {
            let (_, rest) = call.split_once("--env SCHEDULER=")?;
            Some(rest.split(' ').next()?.to_owned())
        });
        rows.collect()
    }

    /// The path of the tree, without links.
    pub fn top(&self) -> String {
        let path = self.place.path("").canonicalize().unwrap();
        path.display().to_string()
    }
}

use std::fs;

use clap::CommandFactory;
use tempfile::TempDir;

use super::layers::Source;
use super::report::KeyReport;
use super::*;

/// A folder with the usual file and one for `--config`.
struct Machine(TempDir);

impl Machine {
    fn new(usual: &str, named: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("usual", usual), ("named", named)] {
            if !text.is_empty() {
                fs::write(folder.path().join(name), text).unwrap();
            }
        }
        Self(folder)
    }

    /// Reads the configuration of a start; `NAMED` in the options is the other file.
    fn read(&self, options: &str) -> Result<Configuration, Refusal> {
        let folder = self.0.path();
        let named = folder.join("named").display().to_string();
        let options = options.replace("NAMED", &named);
        let arguments = ["scx_sfs"].into_iter().chain(options.split_whitespace());
        match Request::read(arguments, &folder.join("usual"))? {
            Request::Schedule(configuration) => Ok(*configuration),
            Request::Other(options) => panic!("not about scheduling: {options:?}"),
        }
    }

    /// Returns what is said about a wrong file.
    fn refused(&self, options: &str) -> String {
        match self.read(options) {
            Err(Refusal::File(sentence)) => {
                let folder = format!("{}/", self.0.path().display());
                sentence.replace(&folder, "")
            }
            Err(Refusal::Options(error)) => panic!("the options were blamed: {error}"),
            Ok(configuration) => panic!("accepted: {:?}", configuration.in_force.kept),
        }
    }
}

fn key(configuration: &Configuration, name: &str) -> KeyReport {
    let report = configuration.report(None);
    let found = report.keys.into_iter().find(|one| one.key == name);
    found.unwrap_or_else(|| panic!("no key {name}"))
}

/// The value of a key, and where it comes from: `default`, `usual:2`, `named:1`, `option`, `set`.
fn shown(configuration: &Configuration, name: &str) -> (String, String) {
    let key = key(configuration, name);
    let from = match &key.from {
        Source::File { path, line } => {
            format!("{}:{line}", path.file_name().unwrap().to_str().unwrap())
        }
        other => other.to_string(),
    };
    (key.text(), from)
}

fn expect(configuration: &Configuration, name: &str, value: &str, from: &str) {
    let is = shown(configuration, name);
    assert_eq!(is, (value.to_owned(), from.to_owned()), "{name}");
}

#[test]
fn the_definition_is_consistent() {
    keys::command().debug_assert();
}

#[test]
fn each_option_is_a_key_or_is_listed_as_none() {
    let command = Options::command();
    let all = command.get_arguments().map(|arg| arg.get_id().as_str());
    let mut none = Vec::new();
    let built = keys::command();
    for id in all {
        let name = keys::key_of(id);
        match keys::option_of(&built, &name) {
            Some(arg) => assert_eq!(arg.get_id(), id),
            None => none.push(id),
        }
    }
    let listed = keys::NO_KEYS.iter().filter(|id| **id != "help");
    let mut listed: Vec<&str> = listed.copied().collect();
    none.sort_unstable();
    listed.sort_unstable();
    assert_eq!(none, listed);
    for id in keys::AT_RUN_TIME {
        assert!(keys::option_of(&built, &keys::key_of(id)).is_some(), "{id}");
    }
    assert!(keys::keys(&built).count() > 35);
}

/// Each key of the delivered file is a key, has its default, and none is missing.
#[test]
fn the_delivered_file_has_all_keys_with_their_defaults() {
    let delivered = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/config.toml");
    let delivered = fs::read_to_string(delivered).unwrap();
    assert_eq!(
        delivered,
        template::text(),
        "scx_sfs config --example makes it"
    );
    let command = keys::command();
    let defaults = Machine::new("", "").read("").unwrap();
    let mut found = Vec::new();
    for line in delivered.lines().filter_map(|line| line.strip_prefix('#')) {
        let Some((name, value)) = line.split_once(" =") else {
            continue;
        };
        if name.starts_with(' ') {
            continue;
        }
        found.push(name.to_owned());
        if value.is_empty() {
            assert!(
                ["-", ""].contains(&key(&defaults, name).text().as_str()),
                "{name}"
            );
            continue;
        }
        let machine = Machine::new(&format!("{name} ={value}\n"), "");
        let usual = machine.0.path().join("usual");
        let given = file::read(&command, &usual, false, false).unwrap();
        assert_eq!(given[0].text(), key(&defaults, name).text(), "{name}");
    }
    let all: Vec<String> = keys::keys(&command)
        .map(|arg| keys::key_of(&keys::id(arg)))
        .collect();
    assert_eq!(found, all);
}

#[test]
fn later_sources_win() {
    let usual = "slice-min-us = 1000\nfair-slice-us = 5_000\npolicy = \"learned\"\n";
    let named = "fair-slice-us = 6000\n\npolicy = \"fair\"\n";
    let machine = Machine::new(usual, named);
    let both = machine.read("--config NAMED --policy sfs").unwrap();
    expect(&both, "slice-min-us", "1000", "usual:1");
    expect(&both, "fair-slice-us", "6000", "named:1");
    expect(&both, "policy", "sfs", "option");
    expect(&both, "fair-max-wait-ms", "100", "default");
    assert_eq!(both.settings().tunables.fair_slice_ns, 6_000_000);
    assert_eq!(both.settings().slice.min_ns(), 1_000_000);
    let replaced = key(&both, "policy").replaced;
    let values: Vec<&str> = replaced.iter().map(|one| one.value.as_str()).collect();
    assert_eq!(values, ["fair", "learned"]);
    let from_files = both.from_files();
    assert_eq!(from_files.len(), 2, "{from_files:?}");
    assert!(
        from_files.iter().all(|one| one.contains(" = ")),
        "{from_files:?}"
    );
    let usual = machine.read("").unwrap();
    expect(&usual, "fair-slice-us", "5000", "usual:2");
    expect(&usual, "policy", "learned", "usual:3");
}

#[test]
fn no_file_is_needed_but_the_named_one() {
    let machine = Machine::new("", "");
    expect(&machine.read("").unwrap(), "policy", "learned", "default");
    let said = machine.refused("--config NAMED");
    assert!(
        said.starts_with("cannot read the configuration named: No such file"),
        "{said}"
    );
    let folder = machine.0.path().join("usual");
    fs::create_dir(folder).unwrap();
    let said = machine.refused("");
    assert!(
        said.starts_with("cannot read the configuration usual: Is a directory"),
        "{said}"
    );
}

#[test]
fn lists_and_flags_are_those_of_the_options() {
    let text = "cgroup = [\"a/*\", \"b/*\"]\nboundary = [\"fork\", \"exec\"]\npartial = true\n\
        hint-listen = \"/run/x\"\nhint-mode = \"0660\"\nageing = 2.5\npolicy = \"learned\"\n";
    let machine = Machine::new(text, "");
    let read = machine.read("").unwrap();
    let options = read.options();
    assert_eq!((options.cgroup.len(), options.boundary.len()), (2, 2));
    assert!(options.partial && options.hints.hint_mode == 0o660);
    assert!((options.ageing - 2.5).abs() < 1e-9);
    expect(&read, "cgroup", "a/*,b/*", "usual:1");
    // A list replaces a list, and a flag can be taken back.
    let read = machine.read("--cgroup c/* --partial=false").unwrap();
    assert_eq!(read.options().cgroup.len(), 1);
    assert!(!read.options().partial);
    expect(&read, "partial", "false", "option");
}

#[test]
fn an_option_wins_over_a_key_that_contradicts_it() {
    let machine = Machine::new("slice-us = 5000\nno-overload = true\n", "");
    let read = machine
        .read("--slice-min-us 10 --overload-factor 2")
        .unwrap();
    expect(&read, "slice-us", "-", "default");
    expect(&read, "no-overload", "false", "default");
    assert!(!read.settings().slice.is_fixed() && read.settings().overload.is_some());
    let replaced = &key(&read, "slice-us").replaced[0];
    assert_eq!(
        (replaced.value.as_str(), replaced.by.as_str()),
        ("5000", "slice-min-us")
    );
    // An option may need a key of a file, and take away the effect of another.
    let machine = Machine::new("cgroup = [\"a\"]\nageing = 2\npolicy = \"learned\"\n", "");
    let read = machine.read("--max-sandboxes 5 --policy sfs").unwrap();
    assert_eq!(read.options().max_sandboxes, 5);
}

#[test]
fn what_is_wrong_in_a_file_is_named_with_its_line() {
    for (text, said) in [
        (
            "\nslice-uss = 5\n",
            "usual:2: there is no key slice-uss; is slice-us meant?",
        ),
        (
            "slice_us = 5\n",
            "usual:1: there is no key slice_us; is slice-us meant?",
        ),
        ("[hints]\nlisten = 5\n", "usual:1: there is no key hints;"),
        ("monitor = 1\n", "usual:1: there is no key monitor;"),
        ("\"a\\nb\" = 1\n", "usual:1: there is no key a\\nb;"),
        (
            "slice-us = 0\n",
            "usual:1: slice-us: 0 is not in 1..=60000000",
        ),
        (
            "slice-us = \"many\"\n",
            "usual:1: slice-us: invalid digit found in string",
        ),
        (
            "slice-us = [5]\n",
            "usual:1: slice-us: want one value, not a list",
        ),
        (
            "slice-us = true\n",
            "usual:1: slice-us: want a value other than true or false",
        ),
        (
            "slice-us = 0x10\n",
            "usual:1: slice-us: want a decimal number",
        ),
        (
            "partial = \"yes\"\n",
            "usual:1: partial: want true or false",
        ),
        ("partial = 1\n", "usual:1: partial: want true or false"),
        (
            "policy = \"best\"\n",
            "usual:1: policy: want one of sfs, learned, fair",
        ),
        (
            "boundary = [\"fork\", \"birth\"]\n",
            "usual:1: boundary: want one of fork,",
        ),
        (
            "ageing = 1979-05-27\n",
            "usual:1: ageing: want a number, a string or a list",
        ),
        ("a = 1\na = 2\n", "usual:2 is no TOML: duplicate key"),
        ("partial = true\n= 5\n", "usual:2 is no TOML: "),
        ("slice-us = 5\nslice-min-us = 4\n", "cannot be used with"),
        (
            "slice-us = 5\nslice-min-us = 4\n",
            "slice-min-us is in usual:2",
        ),
        (
            "policy = \"sfs\"\nageing = 2\n",
            "--ageing has no effect without --policy learned (policy is in usual:1, ageing is in usual:2)",
        ),
        ("unit = \"cgroup\"\n", "--cgroup <PATH>"),
        (
            "slice-min-us = 5\nslice-max-us = 4\n",
            "(slice-min-us is in usual:1, slice-max-us is in usual:2)",
        ),
    ] {
        let refused = Machine::new(text, "").refused("");
        assert!(refused.contains(said), "{text:?}: {refused}");
        assert!(!refused.contains('\n'), "{refused:?}");
    }
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let machine = Machine::new("x", "");
    let usual = machine.0.path().join("usual");
    fs::write(&usual, b"policy = \"\xff\"\n").unwrap();
    assert!(machine.refused("").contains("valid UTF-8"));
    fs::write(&usual, vec![b'#'; 2 << 20]).unwrap();
    assert!(machine.refused("").contains("more than 1 MiB"));
}

#[test]
fn keys_of_other_versions_can_be_left_out() {
    let machine = Machine::new("of-the-next-version = 1\nslice-us = 7\n", "");
    let said = machine.refused("");
    assert!(
        said.contains("usual:1") && said.contains("--ignore-unknown"),
        "{said}"
    );
    let read = machine.read("--ignore-unknown").unwrap();
    expect(&read, "slice-us", "7", "usual:2");
    // A wrong value stays an error.
    let machine = Machine::new("slice-us = 0\n", "");
    machine.refused("--ignore-unknown");
}

#[test]
fn wrong_options_are_not_blamed_on_a_file() {
    let machine = Machine::new("slice-us = 5000\n", "");
    for options in [
        "--slice-us 0",
        "--unit cgroup",
        "--policy fair --ageing 2",
        "--no-such-option",
        "stray",
    ] {
        match machine.read(options) {
            Err(Refusal::Options(error)) => assert_eq!(error.exit_code(), 2, "{error}"),
            other => panic!("{options}: {other:?}"),
        }
    }
    // Both together: the place of the key is named.
    let machine = Machine::new("slice-max-us = 5000\n", "");
    match machine.read("--slice-min-us 6000") {
        Err(Refusal::Options(error)) => {
            let said = error.to_string();
            assert!(
                said.contains("slice-max-us is in ") && said.contains("usual:1"),
                "{said}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_commands_read_no_file() {
    let machine = Machine::new("broken", "");
    let usual = machine.0.path().join("usual");
    for options in [
        "--version",
        "--help-stats",
        "--monitor 1",
        "--completions bash",
        "functions",
    ] {
        let arguments = ["scx_sfs"].into_iter().chain(options.split(' '));
        let request = Request::read(arguments, &usual).unwrap();
        assert!(matches!(request, Request::Other(_)), "{options}");
    }
    assert!(machine.refused("").contains("is no TOML"));
}

#[test]
fn changes_at_run_time_win_and_can_be_undone() {
    let machine = Machine::new("slice-min-us = 2000\n", "");
    let mut read = machine.read("--overload-factor 2").unwrap();
    read.set("slice-us", Some("7000")).unwrap();
    assert!(read.settings().slice.is_fixed());
    expect(&read, "slice-us", "7000", "set");
    expect(&read, "slice-min-us", "1000", "default");
    read.set("overload-factor", Some("4")).unwrap();
    expect(&read, "overload-factor", "4", "set");
    // The last one wins over what was set before and contradicts it.
    read.set("slice-max-us", Some("50000")).unwrap();
    expect(&read, "slice-us", "-", "default");
    expect(&read, "slice-min-us", "2000", "usual:1");
    assert_eq!(read.settings().slice.max_ns(), 50_000_000);
    read.set("slice-max-us", None).unwrap();
    read.set("overload-factor", None).unwrap();
    expect(&read, "overload-factor", "2", "option");
    assert_eq!(read.settings().slice.min_ns(), 2_000_000);
}

#[test]
fn changes_that_cannot_be_are_refused_and_change_nothing() {
    let machine = Machine::new("iat-window = 50\nno-overload = true\n", "");
    let mut read = machine.read("--slice-max-us 100000").unwrap();
    for (key, value, said) in [
        ("slice-uss", "5", "is slice-us meant?"),
        (
            "slice-min-us",
            "0",
            "slice-min-us: 0 is not in 1..=60000000",
        ),
        (
            "policy",
            "fair",
            "policy cannot change while scx_sfs is loaded: write it to /etc/",
        ),
        (
            "slice-us",
            "5",
            "slice-us contradicts iat-window; iat-window cannot change",
        ),
        (
            "overload-factor",
            "2",
            "overload-factor contradicts no-overload;",
        ),
        ("slice-min-us", "200000", "contradict each other"),
        ("hint-rate", "5", "--hint-listen"),
        ("hint-allow-uid", "no such user", "unknown user"),
        ("log-slice", "perhaps", "want true or false"),
    ] {
        let before = read.report(None);
        let refused = read.set(key, Some(value)).unwrap_err();
        assert!(refused.contains(said), "{key}: {refused}");
        assert!(!refused.contains('\n'), "{refused:?}");
        assert_eq!(read.report(None), before, "{key}");
    }
}

#[test]
fn reports_survive_json() {
    let machine = Machine::new("slice-us = 7\nlog-slice = true\n", "");
    let report = machine.read("--cgroup a/*").unwrap().report(Some(7));
    let value = serde_json::to_value(&report).unwrap();
    assert_eq!(
        serde_json::from_value::<report::Report>(value.clone()).unwrap(),
        report
    );
    let keys = value["keys"].as_array().unwrap();
    let of = |name: &str| keys.iter().find(|one| one["key"] == name).unwrap();
    assert_eq!(
        (&of("slice-us")["value"], &of("log-slice")["value"]),
        (&7.into(), &true.into())
    );
    assert_eq!(of("cgroup")["value"], serde_json::json!(["a/*"]));
    assert_eq!(of("slice-us")["from"]["line"], 1);
    assert_eq!(of("hint-mode")["value"], "0600");
    let mut text = Vec::new();
    report.print(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.starts_with("# in force in process 7, scx_sfs "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 2 + keys.len());
    assert!(
        text.lines().all(|line| line.chars().count() <= 160),
        "{text}"
    );
}

#[test]
fn a_service_keeps_what_it_learns_unless_it_is_told_where() {
    let state = |folders: &str, options: &str| {
        let arguments = ["scx_sfs"].into_iter().chain(options.split_whitespace());
        let matches = keys::command_with_state(folders).get_matches_from(arguments);
        layers::raw(&matches, "learn_state").pop()
    };
    let both = "/var/lib/a:/var/lib/b";
    assert_eq!(state(both, "--ageing 2"), Some("/var/lib/a/learned".into()));
    assert_eq!(state(both, "--learn-state /x"), Some("/x".into()));
    assert_eq!(state("", "--ageing 2"), None);
}

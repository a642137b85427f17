use super::effects::{EFFECTS, WITH_MONITOR};
use super::*;
use clap::CommandFactory;

fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
    Options::from_arguments([&["scx_sfs"], arguments].concat())
}

#[test]
fn defaults_are_consistent() {
    let settings = parse(&[]).unwrap().settings().unwrap();
    let overload = settings.overload.unwrap();
    assert_eq!(overload.enter_ns(1_000_000), 3_000_000);
    assert_eq!(overload.exit_ns(1_000_000), 1_000_000);
    assert_eq!(settings.window.get(), 100);
    assert!(!settings.slice.is_fixed());
}

#[test]
fn a_fixed_slice_is_fixed() {
    let settings = parse(&["--slice-us", "5000"]).unwrap().settings().unwrap();
    assert!(settings.slice.is_fixed());
    assert_eq!(settings.slice.slice_ns(1, 1), 5_000_000);
}

#[test]
fn contradictory_and_invalid_options_are_refused() {
    for arguments in [
        &["--slice-us", "0"][..],
        &["--slice-us", "1000", "--slice-min-us", "10"],
        &["--slice-us", "1000", "--iat-window", "10"],
        &["--no-overload", "--overload-factor", "2"],
        &["--overload-factor", "NaN"],
        &["--overload-factor", "-1"],
        &["--stats", "1", "--monitor", "1"],
        &["--stats", "0"],
        &["--iat-window", "1"],
        &["--fair-max-wait-ms", "30000"],
        &["--no-such-option"],
        &["stray"],
        &["--hint-listen", "udp:0.0.0.0:4040"],
        &["--hint-listen", "nowhere"],
        &["--hint-mode", "0660"],
        &["--hint-listen", "/run/x", "--hint-mode", "rw"],
        &["--hint-listen", "/run/x", "--hint-owner", "no such user"],
        &["--hint-listen", "/run/x", "--hint-allow-uid", "65534"],
        &["--hint-listen", "/run/x", "--hint-allow-cgroup", "/"],
        &["--hint-listen", "/run/x", "--hint-rate", "0"],
        &["hint"],
        &["hint", "0"],
        &["hint", "12", "--stdin"],
        &["hint", "12", "--rate", "5"],
        &["hint", "12", "--function", ""],
        &["hint", "--to", "udp:192.0.2.1:1", "12"],
        &["--partial", "hint", "12"],
    ] {
        assert!(parse(arguments).is_err(), "{arguments:?} was accepted");
    }
}

#[test]
fn boundaries_are_a_list() {
    let options = parse(&["--boundary", "accept,exec"]).unwrap();
    assert_eq!(options.boundary, [Boundary::Accept, Boundary::Exec]);
    assert!(parse(&["--boundary", "accept,never"]).is_err());
    assert_eq!(parse(&[]).unwrap().identity(), Identity::Comm);
    let options = parse(&["--cgroup", "f/*"]).unwrap();
    assert_eq!(options.identity(), Identity::Cgroup);
}

#[test]
fn ageing_has_a_range() {
    assert!((parse(&[]).unwrap().ageing - 3.0).abs() < 1e-9);
    let with = |ageing| parse(&["--policy", "learned", "--ageing", ageing]);
    assert!((with("1.5").unwrap().ageing - 1.5).abs() < 1e-9);
    for wrong in ["0", "0.9", "101", "nan", "much"] {
        assert!(with(wrong).is_err(), "{wrong} was accepted");
    }
}

/// The first line of the error for refused options.
fn refused(arguments: &str) -> String {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let error = parse(&arguments).expect_err("they were accepted");
    let said = error.to_string();
    let mut lines = said.lines().take_while(|line| !line.is_empty());
    lines.by_ref().collect::<Vec<_>>().join(" ")
}

#[test]
fn no_option_is_ignored() {
    for (arguments, option, other) in [
        ("--policy sfs --ageing 2", "--ageing", "--policy learned"),
        (
            "--policy sfs --learn-state x",
            "--learn-state",
            "--policy learned",
        ),
        (
            "--policy fair --learn-state x",
            "--learn-state",
            "--policy learned",
        ),
        (
            "--policy fair --no-overload",
            "--no-overload",
            "--policy fair",
        ),
        (
            "--policy fair --overload-factor 2",
            "--overload-factor",
            "--policy fair",
        ),
        (
            "--policy fair --filter-shards 2",
            "--filter-shards",
            "--policy fair",
        ),
        (
            "--idle-boundary-ms 5",
            "--idle-boundary-ms",
            "--boundary idle",
        ),
        (
            "--boundary fork --receive-port 80",
            "--receive-port",
            "--boundary receive",
        ),
        (
            "--hint-listen udp:[::1]:9 --hint-mode 0660",
            "--hint-mode",
            "--hint-listen",
        ),
        (
            "--hint-listen udp:[::1]:9 --hint-owner root",
            "--hint-owner",
            "--hint-listen",
        ),
        (
            "--hint-listen udp:[::1]:9 --hint-allow-uid root",
            "--hint-allow-uid",
            "--hint-listen",
        ),
        (
            "--hint-listen udp:[::1]:9 --hint-allow-cgroup x",
            "--hint-allow-cgroup",
            "--hint-listen",
        ),
        (
            "--hint-listen /run/x --hint-allow-udp",
            "--hint-allow-udp",
            "udp:",
        ),
        ("--monitor 1 --partial", "--partial", "--monitor"),
        ("--monitor 1 --policy learned", "--policy", "--monitor"),
        (
            "--monitor 1 --hint-listen /run/x",
            "--hint-listen",
            "--monitor",
        ),
    ] {
        let said = refused(arguments);
        let names = said.contains(&format!("{option} has no effect")) && said.contains(other);
        assert!(names, "{arguments}: {said}");
    }
    // Conflicts that clap finds by itself.
    for (arguments, other) in [
        ("--unit cgroup", "--cgroup"),
        ("--identity cgroup", "--cgroup"),
        ("--identity parent", "--cgroup"),
        ("--max-sandboxes 5", "--cgroup"),
        ("--boundary fork,hint", "--hint-listen"),
        ("--hint-mode 0660", "--hint-listen"),
        ("--hint-owner root", "--hint-listen"),
        ("--hint-allow-uid 5", "--hint-listen"),
        ("--hint-allow-cgroup x", "--hint-listen"),
        ("--hint-allow-udp", "--hint-listen"),
        ("--hint-rate 5", "--hint-listen"),
        ("--hint-service-time", "--hint-listen"),
    ] {
        let said = refused(arguments);
        assert!(said.contains(other), "{arguments}: {said}");
    }
}

#[test]
fn options_that_belong_together_are_accepted() {
    for arguments in [
        "--policy learned --ageing 2 --learn-state x --no-overload --filter-shards 2",
        "--ageing 2 --learn-state x",
        "--policy fair --slice-us 1000",
        "--boundary fork,idle,receive --idle-boundary-ms 5 --receive-port 80",
        "--boundary hint --hint-listen /run/x --hint-mode 0660 --hint-owner root",
        "--hint-listen /run/x --hint-allow-uid 5,root --hint-allow-cgroup a/b --hint-allow-cgroup c",
        "--hint-listen udp:127.0.0.1:9 --hint-allow-udp --hint-rate 5 --hint-service-time",
        "--unit cgroup --identity parent --cgroup f/* --max-sandboxes 5",
        "--unit thread --identity comm",
        "--monitor 1 --verbose",
        "--monitor 1 --version",
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let taken = parse(&arguments);
        assert!(taken.is_ok(), "{arguments:?}: {}", taken.unwrap_err());
    }
}

#[test]
fn rules_name_existing_options() {
    let command = Options::command();
    let is_there = |id: &str| command.get_arguments().any(|one| one.get_id() == id);
    let ruled = EFFECTS.iter().flat_map(|rule| rule.options);
    for id in ruled.chain(&WITH_MONITOR) {
        assert!(is_there(id), "{id} does not exist");
    }
}

#[test]
fn hints_are_private_by_default() {
    let hints = parse(&["--hint-listen", "/run/x"]).unwrap().hints;
    assert_eq!(hints.hint_mode, 0o600);
    assert_eq!(hints.hint_listen, "unix:/run/x".parse().ok());
    assert!(parse(&[]).unwrap().hints.hint_listen.is_none());
}

#[test]
fn bounds_of_s_must_be_in_order() {
    let options = parse(&["--slice-min-us", "2000", "--slice-max-us", "1000"]).unwrap();
    assert!(options.settings().is_err());
}

/// Each help, short and long, has lines of 80 columns at most, examples and exit statuses.
#[test]
fn each_help_fits_80_columns_and_has_examples() {
    let command = crate::config::keys::command();
    let mut all = vec![command.clone()];
    all.extend(
        command
            .get_subcommands()
            .filter(|one| one.get_name() != "help")
            .cloned(),
    );
    assert!(all.len() >= 6, "{} commands", all.len());
    for mut one in all {
        for text in [one.render_help(), one.render_long_help()] {
            let text = text.to_string();
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", one.get_name());
            }
            assert!(text.contains("Example"), "{text}");
            assert!(text.contains("Exit status"), "{text}");
        }
    }
    let text = command.clone().render_help().to_string();
    for (status, meaning) in sfs_bpf::exit::STATUSES {
        assert!(
            text.contains(&format!("  {status}  {meaning}\n")) || status == 9,
            "{text}"
        );
    }
}

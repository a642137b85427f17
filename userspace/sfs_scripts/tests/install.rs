//! `packaging/install.sh` and the service, below a temporary DESTDIR. The programs are
//! stand-ins that say their names.

use sfs_scripts::{find, run, top, Place, Said};
use sfs_skip::skip;
use std::fs;
use std::path::Path;
use std::process::Command;

/// With a blank.
const DEST: &str = "dest dir";
const UNIT: &str = "usr/local/lib/systemd/system/scx_sfs.service";
const OPTIONS: &str = "etc/default/scx_sfs";
const CONFIGURATION: &str = "etc/scx_sfs/config.toml";
const PROGRAMS: [&str; 4] = ["scx_sfs", "sfs_advise", "faasbench", "sfs_waste"];

/// What the program has written for packages.
const SHARE: [&str; 7] = [
    "man/man8/scx_sfs.8",
    "man/man8/scx_sfs-check.8",
    "bash-completion/completions/scx_sfs",
    "zsh/site-functions/_scx_sfs",
    "fish/vendor_completions.d/scx_sfs.fish",
    "doc/scx_sfs/examples/config.toml",
    "doc/scx_sfs/options.md",
];

/// A place with a build.
fn built() -> Place {
    let place = Place::new();
    for program in PROGRAMS {
        place.script(
            &format!("built/{program}"),
            &format!("echo \"{program}: $*\""),
        );
        place.write(&format!("built/{program}.cdx.json"), "{}\n");
    }
    place.write("built/licences.txt", "adler2 2.0.1: MIT\n");
    for file in SHARE {
        place.write(&format!("built/share/{file}"), file);
    }
    place
}

fn installer(place: &Place, settings: &[(&str, &str)], action: &str) -> Said {
    let mut command = Command::new(top().join("packaging/install.sh"));
    for name in ["PREFIX", "SYSCONFDIR", "SYSTEMD_DIR", "CARGO_TARGET_DIR"] {
        command.env_remove(name);
    }
    command
        .env("BUILD_DIR", place.path("built"))
        .env("DESTDIR", place.path(DEST))
        .envs(settings.iter().copied());
    run(command.arg(action))
}

fn installed(settings: &[(&str, &str)]) -> Place {
    let place = built();
    installer(&place, settings, "install").succeeded();
    place
}

/// The path of an installed file in its place.
fn dest(path: &str) -> String {
    format!("{DEST}/{path}")
}

/// All installed files: path, mode and content.
fn files(place: &Place) -> Vec<(String, Option<u32>, Vec<u8>)> {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path.display().to_string());
            }
        }
    }
    let mut found = Vec::new();
    walk(&place.path(DEST), &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| (path.clone(), place.mode(&path), fs::read(&path).unwrap()))
        .collect()
}

/// The command fails with one sentence.
#[track_caller]
fn fails(said: &Said, text: &str) {
    said.ended(1, text);
    let whole = format!("{}{}", said.out, said.err);
    assert!(
        whole.lines().count() == 1 && whole.ends_with(".\n"),
        "{whole}"
    );
}

#[test]
fn every_file_is_installed_with_its_mode() {
    let place = installed(&[]);
    let programs = PROGRAMS.map(|name| (format!("usr/local/bin/{name}"), 0o755));
    let documents = [
        "LICENSE",
        "licences.txt",
        "scx_sfs.cdx.json",
        "sfs_advise.cdx.json",
        "faasbench.cdx.json",
        "sfs_waste.cdx.json",
        "service.md",
        "runbook.md",
        "monitoring.md",
        "monitoring/dashboard.json",
        "monitoring/alerts.yml",
        "scx_sfs.default",
    ]
    .map(|name| (format!("usr/local/share/doc/scx_sfs/{name}"), 0o644));
    let share = SHARE.map(|name| (format!("usr/local/share/{name}"), 0o644));
    let others = [OPTIONS, CONFIGURATION, UNIT].map(|name| (name.to_owned(), 0o644));
    let all: Vec<_> = programs
        .into_iter()
        .chain(documents)
        .chain(share)
        .chain(others)
        .collect();
    for (path, mode) in &all {
        assert_eq!(place.mode(&dest(path)), Some(*mode), "{path}");
    }
    assert_eq!(files(&place).len(), all.len());
}

#[test]
fn the_unit_has_the_paths() {
    let place = installed(&[]);
    let unit = place.read(&dest(UNIT));
    let has = |line| unit.lines().any(|one| one == line);
    assert!(
        has("ExecStart=/usr/local/bin/scx_sfs $SCX_SFS_FLAGS"),
        "{unit}"
    );
    assert!(has("EnvironmentFile=-/etc/default/scx_sfs"), "{unit}");
    assert!(!unit.contains(DEST), "{unit}");
    for name in ["@BINDIR@", "@DOCDIR@", "@SYSCONFDIR@"] {
        let template = top().join("packaging/scx_sfs.service.in");
        assert!(fs::read_to_string(template).unwrap().contains(name));
        assert!(!unit.contains(name), "{unit}");
    }
}

#[test]
fn installing_twice_changes_nothing() {
    let place = installed(&[]);
    let before = files(&place);
    installer(&place, &[], "install").succeeded();
    assert_eq!(files(&place), before);
}

#[test]
fn edited_options_are_kept() {
    const EDITED: &str = "SCX_SFS_FLAGS=\"--stats 5\"\n";
    let place = installed(&[]);
    place.write(&dest(OPTIONS), EDITED);
    for action in ["install", "uninstall"] {
        let said = installer(&place, &[], action);
        let kept = |line: &str| line.starts_with("kept ") && line.contains(OPTIONS);
        assert!(said.succeeded().lines().any(kept), "{said:?}");
        assert_eq!(place.read(&dest(OPTIONS)), EDITED);
    }
}

#[test]
fn every_file_is_uninstalled_and_once() {
    let place = installed(&[]);
    installer(&place, &[], "uninstall").succeeded();
    assert!(files(&place).is_empty());
    assert!(!place.path(&dest("usr/local/share/doc/scx_sfs")).exists());
    assert_eq!(installer(&place, &[], "uninstall").succeeded(), "");
}

/// An unfinished build installs nothing, not even what is built. The licences of what the
/// programs are linked with have to go with them, and the bills.
#[test]
fn an_unfinished_build_is_not_installed() {
    for (file, sentence) in [
        ("faasbench", "run make first"),
        ("licences.txt", "licences.txt is not there: run make first"),
        ("sfs_waste.cdx.json", "sfs_waste.cdx.json is not there"),
    ] {
        let place = built();
        place.remove(&format!("built/{file}"));
        fails(&installer(&place, &[], "install"), sentence);
        assert!(!place.path(DEST).exists());
    }
}

#[test]
fn other_folders_are_honoured() {
    let place = installed(&[("PREFIX", "/usr")]);
    assert_eq!(place.mode(&dest("usr/bin/scx_sfs")), Some(0o755));
    let unit = "usr/lib/systemd/system/scx_sfs.service";
    assert_eq!(place.mode(&dest(unit)), Some(0o644));

    // systemd does not search this one.
    let place = installed(&[("PREFIX", "/opt/sfs")]);
    let unit = place.read(&dest("etc/systemd/system/scx_sfs.service"));
    assert!(unit.contains("\nExecStart=/opt/sfs/bin/scx_sfs "), "{unit}");

    let place = installed(&[("SYSTEMD_DIR", "/units"), ("SYSCONFDIR", "/conf")]);
    let unit = place.read(&dest("units/scx_sfs.service"));
    assert!(
        unit.contains("\nEnvironmentFile=-/conf/default/scx_sfs\n"),
        "{unit}"
    );
    assert_eq!(place.mode(&dest("conf/default/scx_sfs")), Some(0o644));
}

#[test]
fn paths_that_the_unit_cannot_have_are_refused() {
    let place = built();
    for (name, value, sentence) in [
        ("PREFIX", "usr", "absolute path"),
        ("PREFIX", "/a b", "letters, digits"),
        ("SYSCONFDIR", "/a|b", "letters, digits"),
        ("PREFIX", "/home/someone", "cannot see"),
    ] {
        fails(&installer(&place, &[(name, value)], "install"), sentence);
    }
    fails(&installer(&place, &[], "frobnicate"), "neither");
    assert!(!place.path(DEST).exists());
}

/// Root may write anywhere, hence a folder that nobody can make.
#[test]
fn it_says_when_it_may_not_write() {
    let place = built();
    place.write(DEST, "");
    fails(&installer(&place, &[], "install"), "not writable");
}

/// The generic scx.service starts what /etc/default/scx names.
#[test]
fn the_generic_service_starts_it() {
    let place = installed(&[]);
    let path = format!("{}:/usr/bin:/bin", place.text(&dest("usr/local/bin")));
    let mut command = Command::new("bash");
    command
        .args(["-c", "exec $SCX_SCHEDULER $SCX_FLAGS"])
        .env("PATH", path)
        .envs([("SCX_SCHEDULER", "scx_sfs"), ("SCX_FLAGS", "--stats 1 -v")]);
    assert_eq!(run(&mut command).succeeded(), "scx_sfs: --stats 1 -v\n");
}

/// The options file is valid for systemd and for a shell.
#[test]
fn the_options_are_shell() {
    let mut command = Command::new("sh");
    command.args(["-euc", ". \"$1\" && [ -z \"$SCX_SFS_FLAGS\" ]", "sh"]);
    run(command.arg(top().join("packaging/scx_sfs.default"))).succeeded();
}

/// The unit, with a program that exists: systemd checks that.
fn unit_that_starts_true(place: &Place) -> String {
    let real = find("true").expect("true in PATH").display().to_string();
    let unit = place
        .read(&dest(UNIT))
        .replace("=/usr/local/bin/scx_sfs", &format!("={real}"));
    place.write("scx_sfs.service", &unit);
    place.text("scx_sfs.service")
}

#[test]
fn the_unit_passes_systemd_analyze_verify() {
    if find("systemd-analyze").is_none() {
        skip!("no systemd-analyze here");
    }
    let place = installed(&[]);
    let unit = unit_that_starts_true(&place);
    let said = run(Command::new("systemd-analyze").args(["--man=no", "verify", &unit]));
    said.succeeded();
    let complaint = |line: &str| line.contains("scx_sfs.service");
    assert!(
        !said.err.lines().chain(said.out.lines()).any(complaint),
        "{said:#?}"
    );
}

/// In tenths; 100 is the worst. BPF and root cost most of it.
#[test]
fn the_unit_is_at_most_2_5_exposed() {
    if find("systemd-analyze").is_none() {
        skip!("no systemd-analyze here");
    }
    let place = installed(&[]);
    let unit = unit_that_starts_true(&place);
    let options = ["--no-pager", "--offline=yes", "--threshold=25", "security"];
    run(Command::new("systemd-analyze").args(options).arg(unit)).succeeded();
}

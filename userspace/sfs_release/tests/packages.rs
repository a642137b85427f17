//! `sfs_release deb` with stand-ins for the programs: any program with libraries will do.

use std::fs;
use std::process::Command;

use sfs_scripts::{find, run, Place, Said};
use sfs_skip::skip;

const RELEASE: &str = env!("CARGO_BIN_EXE_sfs_release");
const BUILT: &str = "target/release";
const CANNOT: &str = "no dpkg-shlibdeps here";
const FILE: &str = "out/scx-sfs_0.0.7-1_";

/// A repository with a commit, and programs that are built; or None without Debian's tools.
fn repository() -> Option<Place> {
    for tool in ["dpkg-shlibdeps", "dpkg-deb", "strip", "git"] {
        find(tool)?;
    }
    let place = Place::with(&[
        "packaging/install.sh",
        "packaging/config.toml",
        "packaging/scx_sfs.default",
        "packaging/scx_sfs.service.in",
        "packaging/debian/postinst",
        "packaging/debian/prerm",
        "packaging/debian/postrm",
        "packaging/README.md",
        "packaging/monitoring/dashboard.json",
        "packaging/monitoring/alerts.yml",
        "docs/monitoring.md",
        "docs/runbook.md",
        "LICENSE",
    ]);
    fs::create_dir_all(place.path(BUILT)).unwrap();
    let program = find("ls").unwrap();
    for name in ["scx_sfs", "sfs_advise", "faasbench", "sfs_waste"] {
        fs::copy(&program, place.path(&format!("{BUILT}/{name}"))).unwrap();
        place.write(&format!("{BUILT}/{name}.cdx.json"), "{}\n");
    }
    place.write(&format!("{BUILT}/licences.txt"), "licences\n");
    place.write(
        &format!("{BUILT}/share/man/man8/scx_sfs.8"),
        ".TH scx_sfs 8\n",
    );
    for line in [
        "init --quiet",
        "add packaging docs LICENSE",
        "-c user.name=N -c user.email=n@example.org commit --quiet --message first",
    ] {
        git(&place, line);
    }
    Some(place)
}

fn git(place: &Place, line: &str) {
    let mut git = Command::new("git");
    git.current_dir(place.path(".")).args(line.split(' '));
    run(&mut git).succeeded();
}

fn deb(place: &Place, arguments: &str) -> Said {
    let mut command = Command::new(RELEASE);
    command
        .current_dir(place.path("."))
        .env("CARGO_TARGET_DIR", place.path("target"))
        .arg("deb")
        .args(arguments.split_whitespace());
    run(&mut command)
}

fn told(place: &Place, option: &str, package: &str) -> String {
    let mut tool = Command::new("dpkg-deb");
    tool.current_dir(place.path(".")).args([option, package]);
    run(&mut tool).succeeded().to_owned()
}

#[test]
fn a_package_has_what_is_installed_and_what_dpkg_wants() {
    let Some(place) = repository() else {
        skip!(CANNOT);
    };
    let said = deb(&place, "--version 0.0.7-1");
    let package = said.succeeded().trim_end().to_owned();
    assert!(
        package.starts_with(FILE) && package.ends_with(".deb"),
        "{package}"
    );
    let control = told(&place, "--field", &package);
    for line in [
        "Package: scx-sfs\n",
        "Version: 0.0.7-1\n",
        "Maintainer: N <n@example.org>\n",
        "Description: CPU scheduler",
    ] {
        assert!(control.contains(line), "{control}");
    }
    assert!(control.contains("Depends: libc6"), "{control}");
    let files = told(&place, "--contents", &package);
    for (mode, path) in [
        ("-rwxr-xr-x root/root", "./usr/bin/scx_sfs\n"),
        ("-rw-r--r-- root/root", "./etc/scx_sfs/config.toml\n"),
        (
            "-rw-r--r-- root/root",
            "./usr/lib/systemd/system/scx_sfs.service\n",
        ),
        (
            "-rw-r--r-- root/root",
            "./usr/share/man/man8/scx_sfs.8.gz\n",
        ),
        (
            "-rw-r--r-- root/root",
            "./usr/share/doc/scx-sfs/copyright\n",
        ),
    ] {
        let is_it = |line: &&str| line.starts_with(mode) && line.ends_with(path.trim_end());
        assert!(files.lines().any(|line| is_it(&line)), "{path}: {files}");
    }
    assert!(!files.contains("usr/local"), "{files}");
    let control = unpacked(&place, "--control", &package);
    let read = |name: &str| place.read(&format!("{control}/{name}"));
    for name in ["postinst", "prerm", "postrm"] {
        assert_eq!(read(name), place.read(&format!("packaging/debian/{name}")));
    }
    assert_eq!(
        read("conffiles"),
        "/etc/default/scx_sfs\n/etc/scx_sfs/config.toml\n"
    );
    let root = unpacked(&place, "--extract", &package);
    let mut sums = Command::new("md5sum");
    sums.current_dir(place.path(&root));
    sums.args(["--check", "--strict", "--quiet"])
        .arg(place.path(&format!("{control}/md5sums")));
    run(&mut sums).succeeded();
    let sums = read("md5sums");
    assert!(sums.contains("  usr/bin/scx_sfs\n"), "{sums}");
    assert!(!sums.contains("  etc/"), "{sums}");
}

/// Unpacks a part of the package, and returns the folder.
fn unpacked(place: &Place, option: &str, package: &str) -> String {
    let folder = format!("unpacked{option}");
    let mut tool = Command::new("dpkg-deb");
    tool.current_dir(place.path("."))
        .args([option, package, &folder]);
    run(&mut tool).succeeded();
    folder
}

#[test]
fn the_same_commit_gives_the_same_package() {
    let Some(place) = repository() else {
        skip!(CANNOT);
    };
    let read = |to: &str| {
        let said = deb(&place, &format!("--version 0.0.7-1 --to {to}"));
        fs::read(place.path(said.succeeded().trim_end())).unwrap()
    };
    let first = read("one");
    // Times of files differ by more than a second, which is what an archive keeps.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(first == read("two"), "they differ");
}

#[test]
fn versions_follow_the_tag_and_wrong_ones_are_refused() {
    let Some(place) = repository() else {
        skip!(CANNOT);
    };
    let version = env!("CARGO_PKG_VERSION");
    let before = deb(&place, "").succeeded().to_owned();
    assert!(
        before.contains(&format!("scx-sfs_{version}~git")),
        "{before}"
    );
    git(&place, &format!("tag v{version}"));
    let after = deb(&place, "").succeeded().to_owned();
    assert!(after.contains(&format!("scx-sfs_{version}-1_")), "{after}");
    deb(&place, "--version v1").ended(2, "want a digit");
    place.remove(&format!("{BUILT}/scx_sfs"));
    deb(&place, "").ended(2, "run make first");
}

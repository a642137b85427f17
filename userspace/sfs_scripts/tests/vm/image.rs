//! The image that a guest starts from.

use crate::script;
use sfs_scripts::{run, Place};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

#[test]
fn it_holds_what_was_put_in_whatever_the_times() {
    let busybox = run(&mut Command::new(script("fetch-busybox")));
    let busybox = busybox.succeeded().trim_end();
    let place = Place::new();
    place.write("tree/sub/a file", "plain\n");
    symlink("sub/a file", place.path("tree/link")).unwrap();
    let build = |name: &str| {
        let image = fs::File::create(place.path(name)).unwrap();
        let tree = format!("{}:/data/tree", place.text("tree"));
        let status = Command::new(script("build-initrd"))
            .args(["--busybox", busybox, "--in", &tree, "--in", "/bin/bash"])
            .stdout(image)
            .status();
        assert!(status.unwrap().success());
        fs::read(place.path(name)).unwrap()
    };
    let first = build("first");
    let file = fs::File::options()
        .append(true)
        .open(place.path("tree/sub/a file"));
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(981_158_400);
    file.unwrap().set_modified(old).unwrap();
    assert!(
        build("second") == first,
        "the image depends on the files' times"
    );

    fs::create_dir(place.path("unpacked")).unwrap();
    let status = Command::new(busybox)
        .args(["cpio", "-id"])
        .current_dir(place.path("unpacked"))
        .stdin(fs::File::open(place.path("first")).unwrap())
        .stderr(Stdio::null())
        .status();
    status.unwrap();
    assert_eq!(place.read("unpacked/data/tree/sub/a file"), "plain\n");
    let link = fs::read_link(place.path("unpacked/data/tree/link")).unwrap();
    assert_eq!(link.to_str(), Some("sub/a file"));
    let bash = fs::read(place.path("unpacked/bin/bash")).unwrap();
    assert!(bash == fs::read("/bin/bash").unwrap());
}

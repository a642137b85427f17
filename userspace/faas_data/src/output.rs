//! Output files that are either complete or absent.

use anyhow::{bail, Context, Result};
use nix::errno::Errno;
use nix::fcntl::{fallocate, FallocateFlags};
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Mode of a new file before the umask: read and write for all, as usual.
const MODE: u32 = 0o666;

/// A file that is written next to its place and moved there when complete.
///
/// It is opened on creation, so that an unwritable place is found before the
/// work for its content. Dropped without [`Output::commit`], it leaves nothing
/// behind. A device or a pipe is written directly, since moving a file there
/// would replace it.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    place: Place,
}

/// Where the bytes are until they are complete.
#[derive(Debug)]
enum Place {
    /// A hidden file in the same folder.
    Beside(NamedTempFile),
    /// The device or pipe itself.
    Itself(File),
}

impl Output {
    /// Opens a temporary file `.<name>.<random>.tmp` in the folder of `path`.
    ///
    /// # Errors
    /// If `path` is a folder or its folder cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        let cannot = || format!("cannot write {}", path.display());
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => bail!("{}: it is a folder", cannot()),
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(path);
                Ok(Self {
                    path: path.to_path_buf(),
                    place: Place::Itself(file.with_context(cannot)?),
                })
            }
            _ => Self::beside(path).with_context(cannot),
        }
    }

    fn beside(path: &Path) -> Result<Self> {
        // The target of a link is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let mut hidden = OsString::from(".");
        hidden.push(path.file_name().context("it has no name")?);
        hidden.push(".");
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let temporary = tempfile::Builder::new()
            .prefix(&hidden)
            .suffix(".tmp")
            .permissions(Permissions::from_mode(MODE))
            .tempfile_in(folder)?;
        Ok(Self {
            path,
            place: Place::Beside(temporary),
        })
    }

    /// Reserves `bytes` of the disk now, so that a full disk is found before
    /// the work for the content. Does nothing where the file system does not
    /// support it, and for devices and pipes.
    ///
    /// # Errors
    /// If there is not enough space.
    pub fn reserve(&self, bytes: u64) -> Result<()> {
        let Place::Beside(temporary) = &self.place else {
            return Ok(());
        };
        let length = i64::try_from(bytes).unwrap_or(i64::MAX);
        match fallocate(temporary.as_file(), FallocateFlags::empty(), 0, length) {
            Err(errno @ (Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG)) => {
                Err(errno).with_context(|| {
                    format!("{} needs {} KiB of space", self.path.display(), bytes >> 10)
                })
            }
            _ => Ok(()),
        }
    }

    /// Writes `content` and moves the file to its place.
    ///
    /// # Errors
    /// If the disk is full or the place was taken away meanwhile.
    pub fn commit(self, content: &[u8]) -> Result<()> {
        let path = &self.path;
        let written = match self.place {
            Place::Beside(temporary) => move_there(temporary, content, path),
            Place::Itself(mut file) => file.write_all(content).and_then(|()| file.flush()),
        };
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Writes `content` to `temporary` and moves it to `path`.
fn move_there(mut temporary: NamedTempFile, content: &[u8], path: &Path) -> std::io::Result<()> {
    let file = temporary.as_file_mut();
    file.write_all(content)?;
    file.flush()?;
    file.set_len(content.len() as u64)?; // what was reserved may be more
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The output of a command: a file, or standard output for `-`.
#[derive(Debug)]
pub enum Sink {
    /// Standard output.
    Stdout,
    /// A file, complete or absent.
    File(Output),
}

impl Sink {
    /// Opens `path`; `-` is standard output.
    ///
    /// # Errors
    /// As [`Output::create`].
    pub fn open(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout);
        }
        Ok(Self::File(Output::create(path)?))
    }

    /// Writes all of `content`.
    ///
    /// # Errors
    /// As [`Output::commit`] and [`print()`].
    pub fn commit(self, content: &[u8]) -> Result<()> {
        match self {
            Self::Stdout => print(content),
            Self::File(output) => output.commit(content),
        }
    }
}

/// Writes `content` to standard output. A closed reader (`| head`) is not an
/// error.
///
/// # Errors
/// If standard output cannot be written for another reason.
pub fn print(content: &[u8]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(content).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Writes one line to standard error, whatever it contains. Errors are ignored.
pub fn note(line: &str) {
    let line = sfs_text::line(line, sfs_text::LINE_CHARS);
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_complete_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        drop(Output::create(&path).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        Output::create(&path).unwrap().commit(b"text").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_file_has_the_usual_mode() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, other) = (dir.path().join("a.csv"), dir.path().join("b.csv"));
        Output::create(&ours).unwrap().commit(b"text").unwrap();
        std::fs::write(&other, "text").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&other));
    }

    #[test]
    fn concurrent_writers_do_not_mix() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        let (first, second) = (
            Output::create(&path).unwrap(),
            Output::create(&path).unwrap(),
        );
        second.commit(b"second").unwrap();
        first.commit(b"first").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn unneeded_reservations_are_released() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        let output = Output::create(&path).unwrap();
        output.reserve(1 << 20).unwrap();
        output.commit(b"text").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
    }

    #[test]
    fn more_space_than_available_cannot_be_reserved() {
        let dir = tempfile::tempdir().unwrap();
        let output = Output::create(&dir.path().join("a.csv")).unwrap();
        match output.reserve(1 << 62) {
            Ok(()) => sfs_skip::skip!("this file system reserves nothing"),
            Err(error) => assert!(format!("{error:#}").contains("a.csv needs"), "{error:#}"),
        }
    }

    #[test]
    fn an_old_file_survives_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        std::fs::write(&path, "old").unwrap();
        drop(Output::create(&path).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        // A folder in its place stands in for a full disk.
        let output = Output::create(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let said = output.commit(b"new").unwrap_err().to_string();
        assert!(
            said.contains("cannot write") && said.contains("a.csv"),
            "{said}"
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_pipe_stays_a_pipe_and_a_link_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, link) = (dir.path().join("pipe"), dir.path().join("link"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        Output::create(&pipe).unwrap().commit(b"text").unwrap();
        assert_eq!(reader.join().unwrap(), b"text");
        assert!(!std::fs::metadata(&pipe).unwrap().is_file());

        std::fs::write(dir.path().join("file"), "old").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        Output::create(&link).unwrap().commit(b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), b"new");
    }

    #[test]
    fn places_that_cannot_be_written_are_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Output::create(dir.path()).is_err());
        let error = Output::create(&dir.path().join("no/such.csv")).unwrap_err();
        assert!(format!("{error:#}").contains("no/such.csv"));
    }
}

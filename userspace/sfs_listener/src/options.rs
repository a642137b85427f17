//! The options about hints.

use anyhow::Result;
use clap::Args;
use nix::unistd::{Gid, Group, Uid, User};
use sfs_hint::Address;

use super::sender::{overflow_uid, SenderGroup};
use super::HintListener;

/// Where hints are received, and who may send them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Hints (docs/hints.md)")]
pub struct HintOptions {
    /// Accept hints from the platform at ADDR: the path of a Unix socket, or
    /// udp:127.0.0.1:PORT or udp:[::1]:PORT.
    #[arg(long, value_name = "ADDR")]
    pub hint_listen: Option<Address>,

    /// Mode of the Unix socket, octal; only users with write permission can
    /// send hints. Hints are accepted from root, from the user that scx_sfs
    /// runs as, and from those named by --hint-allow-uid and
    /// --hint-allow-cgroup.
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = parse_mode,
          requires = "hint_listen")]
    pub hint_mode: u32,

    /// Owner of the Unix socket, as names or ids.
    #[arg(long, value_name = "USER[:GROUP]", value_parser = parse_owner,
          requires = "hint_listen")]
    pub hint_owner: Option<Owner>,

    /// Also accept hints from these users: names or ids, separated by commas.
    #[arg(long, value_name = "UID", value_delimiter = ',', value_parser = parse_sender,
          requires = "hint_listen")]
    pub hint_allow_uid: Vec<Uid>,

    /// Also accept hints from processes in this cgroup and below, whatever
    /// their user: a path below /sys/fs/cgroup, such as
    /// system.slice/platform.service; may be repeated. The process must live
    /// until its hint is read.
    #[arg(long, value_name = "PATH", value_parser = SenderGroup::parse,
          requires = "hint_listen")]
    pub hint_allow_cgroup: Vec<SenderGroup>,

    /// Accept hints over UDP, where senders are not identified: any process of
    /// this machine can send them.
    #[arg(long, requires = "hint_listen")]
    pub hint_allow_udp: bool,

    /// Maximum number of hints per second from each sender (a process or a UDP
    /// port), with bursts of one second's worth. Further hints are dropped
    /// [1..=10000000].
    #[arg(long, value_name = "N", default_value_t = DEFAULT_RATE, requires = "hint_listen",
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub hint_rate: u32,

    /// Use the service times in hints, for experiments with a scheduler that
    /// knows them. A claim of 1 us goes before everyone else. Without this
    /// option they are ignored.
    #[arg(long, requires = "hint_listen")]
    pub hint_service_time: bool,
}

/// Ten times the rate at which 64 CPUs begin invocations of 6 ms. Receiving this many costs the
/// loader less than one CPU (docs/hints.md).
const DEFAULT_RATE: u32 = 100_000;

impl Default for HintOptions {
    fn default() -> Self {
        Self {
            hint_listen: None,
            hint_mode: 0o600,
            hint_owner: None,
            hint_allow_uid: Vec::new(),
            hint_allow_cgroup: Vec::new(),
            hint_allow_udp: false,
            hint_rate: DEFAULT_RATE,
            hint_service_time: false,
        }
    }
}

impl HintOptions {
    /// Starts to listen, if requested.
    ///
    /// # Errors
    ///
    /// As for [`HintListener::listen`].
    pub fn listen(&self) -> Result<Option<HintListener>> {
        let listen = |address| HintListener::listen(address, self);
        self.hint_listen.as_ref().map(listen).transpose()
    }
}

/// New owner of a file; `None`: unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User.
    pub user: Option<Uid>,
    /// Group.
    pub group: Option<Gid>,
}

fn parse_mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && !text.starts_with('+') => Ok(mode),
        _ => Err("want an octal mode from 0 to 0777".to_owned()),
    }
}

fn parse_owner(text: &str) -> Result<Owner, String> {
    let (user, group) = text
        .split_once(':')
        .map_or((text, None), |(user, group)| (user, Some(group)));
    let user = match user {
        "" => None,
        user => Some(parse_user(user)?),
    };
    let group = group.map(parse_group).transpose()?;
    if user.is_none() && group.is_none() {
        return Err("want USER, USER:GROUP or :GROUP".to_owned());
    }
    Ok(Owner { user, group })
}

fn parse_user(text: &str) -> Result<Uid, String> {
    if let Some(id) = parse_id(text) {
        return Ok(Uid::from_raw(id));
    }
    match User::from_name(text) {
        Ok(Some(user)) => Ok(user.uid),
        Ok(None) => Err(format!("unknown user {text:?}")),
        Err(error) => Err(format!("cannot look up user {text:?}: {error}")),
    }
}

/// Parses a user whose hints are accepted. The overflow uid is rejected: it
/// stands for all users of other user namespaces.
fn parse_sender(text: &str) -> Result<Uid, String> {
    let user = parse_user(text)?;
    if user.as_raw() == overflow_uid() {
        return Err(format!(
            "user {user} stands for all users without an id here; name another one"
        ));
    }
    Ok(user)
}

fn parse_group(text: &str) -> Result<Gid, String> {
    if let Some(id) = parse_id(text) {
        return Ok(Gid::from_raw(id));
    }
    match Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid),
        Ok(None) => Err(format!("unknown group {text:?}")),
        Err(error) => Err(format!("cannot look up group {text:?}: {error}")),
    }
}

/// Parses a numeric id, except the greatest one, which means "no change" to the kernel.
fn parse_id(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&id| id != u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal() {
        assert_eq!(parse_mode("0600"), Ok(0o600));
        assert_eq!(parse_mode("660"), Ok(0o660));
        for text in ["", "1000", "8", "rw", "-1", "+6", "0x6"] {
            assert!(parse_mode(text).is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn senders_are_names_or_ids_but_nobody() {
        assert_eq!(parse_sender("root"), Ok(Uid::from_raw(0)));
        assert_eq!(parse_sender("12"), Ok(Uid::from_raw(12)));
        let nobody = overflow_uid().to_string();
        for text in ["", "no such user", "-1", "4294967295", nobody.as_str()] {
            assert!(parse_sender(text).is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn owners_are_names_or_ids() {
        let owner = |user: Option<u32>, group: Option<u32>| {
            Ok(Owner {
                user: user.map(Uid::from_raw),
                group: group.map(Gid::from_raw),
            })
        };
        assert_eq!(parse_owner("root"), owner(Some(0), None));
        assert_eq!(parse_owner("root:root"), owner(Some(0), Some(0)));
        assert_eq!(parse_owner(":root"), owner(None, Some(0)));
        assert_eq!(parse_owner("12:34"), owner(Some(12), Some(34)));
        for text in ["", ":", "root:", "no such user", "0:no such group", "a\0b"] {
            assert!(parse_owner(text).is_err(), "{text:?} was taken");
        }
    }
}

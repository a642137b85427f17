//! The schedulers of the league.

use sfs_lab::bench::Row;

/// scx_sfs without an option.
pub const OURS: &str = "scx_sfs";
/// What all are compared with.
pub const BASE: &str = "eevdf";

/// What a column is to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The kernel's own scheduler.
    Base,
    /// scx_sfs without an option.
    Ours,
    /// Another policy of scx_sfs, which is no competitor.
    Variant,
    /// Another sched_ext scheduler.
    Peer,
    /// A simulated optimum that knows service times: what nobody can reach.
    Bound,
}

/// A scheduler, with its options.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name in `make bench`.
    pub name: &'static str,
    /// Its options.
    pub args: Option<&'static str>,
    /// What it is to the others.
    pub kind: Kind,
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        args: None,
        kind,
    }
}

/// All that a league may have, in the order of the page.
pub const ALL: [Column; 11] = [
    column(BASE, Kind::Base),
    column(OURS, Kind::Ours),
    Column {
        name: "scx_sfs+sfs",
        args: Some("--policy sfs"),
        kind: Kind::Variant,
    },
    column("scx_bpfland", Kind::Peer),
    column("scx_cosmos", Kind::Peer),
    column("scx_flash", Kind::Peer),
    column("scx_lavd", Kind::Peer),
    column("scx_rusty", Kind::Peer),
    column("scx_p2dq", Kind::Peer),
    column("scx_flow", Kind::Peer),
    column("srtf", Kind::Bound),
];

impl Column {
    /// The row of `make bench`.
    pub fn row(&self) -> Row {
        Row {
            name: self.name.into(),
            args: self.args.map(String::from),
            ..Row::default()
        }
    }

    /// The name of the program that serves it, if it is one of ours or of a peer.
    pub fn program(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Base => None,
            Kind::Bound => Some("sfs_sim"),
            Kind::Ours | Kind::Variant | Kind::Peer => self.name.split('+').next(),
        }
    }
}

/// The column with this name.
pub fn find(name: &str) -> Option<&'static Column> {
    ALL.iter().find(|column| column.name == name)
}

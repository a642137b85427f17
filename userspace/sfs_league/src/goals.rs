//! What it takes to be the best.

use crate::columns::Kind;
use crate::figures::Figure;

/// What scx_sfs without an option is measured by in one figure.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// The figure.
    pub figure: Figure,
    /// With which columns it is compared.
    pub rivals: Rivals,
    /// The most that it may be, as a multiple of the best of these.
    pub most: f64,
}

/// The columns that a goal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rivals {
    /// EEVDF and all peers.
    All,
    /// EEVDF.
    Base,
    /// All peers.
    Peers,
}

impl Rivals {
    /// Whether a column of this kind is one of them.
    pub fn include(self, kind: Kind) -> bool {
        match kind {
            Kind::Base => self != Self::Peers,
            Kind::Peer => self != Self::Base,
            Kind::Ours | Kind::Variant | Kind::Bound => false,
        }
    }
}

const fn goal(figure: Figure, rivals: Rivals, most: f64) -> Goal {
    Goal {
        figure,
        rivals,
        most,
    }
}

/// The lowest means of all, the short served like the best, the long no later than under EEVDF,
/// and tails that are no price for it.
pub const GOALS: [Goal; 8] = [
    goal(Figure::MeanSlowdown, Rivals::All, 1.02),
    goal(Figure::Mean, Rivals::All, 1.02),
    goal(Figure::Short, Rivals::All, 1.05),
    goal(Figure::Long, Rivals::Base, 1.0),
    goal(Figure::TailSlowdown, Rivals::Base, 1.05),
    goal(Figure::TailSlowdown, Rivals::Peers, 1.10),
    goal(Figure::Tail, Rivals::Base, 1.05),
    goal(Figure::Tail, Rivals::Peers, 1.10),
];

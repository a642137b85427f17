//! `intf.h` and `sfs_policy`, which does not know that file, have the same
//! constants.

use sfs_bpf::bpf_intf::{
    SFS_BUCKETS, SFS_DEFAULT_AGEING_TENTHS, SFS_DEFAULT_IAT_WINDOW, SFS_DEFAULT_SLICE_NS,
    SFS_OVERTAKE_LEAST_NS, SFS_OVERTAKE_MOST_NS, SFS_OVERTAKE_NS, SFS_OVERTAKE_PART,
    SFS_RANK_TABLES,
};
use sfs_policy::defaults;
use sfs_policy::learn::buckets::BUCKETS;
use sfs_policy::learn::LearnConfig;

#[test]
fn defaults_agree_with_the_policy() {
    assert_eq!(
        u64::from(SFS_DEFAULT_SLICE_NS),
        defaults::INITIAL_SLICE_NS,
        "S before the first window"
    );
    assert_eq!(SFS_DEFAULT_IAT_WINDOW as usize, defaults::WINDOW.get(), "N");
    let tenths = f64::from(SFS_DEFAULT_AGEING_TENTHS);
    assert!((tenths / 10.0 - defaults::AGEING).abs() < 1e-9, "ageing");
    assert_eq!(u64::from(SFS_OVERTAKE_PART), defaults::OVERTAKE_PART);
    assert_eq!(u64::from(SFS_OVERTAKE_NS), defaults::OVERTAKE_NS);
    let turns = (SFS_OVERTAKE_LEAST_NS.into(), SFS_OVERTAKE_MOST_NS.into());
    assert_eq!(turns, defaults::OVERTAKE_TURN_NS);
}

#[test]
fn rank_tables_agree_with_the_policy() {
    assert_eq!(SFS_BUCKETS as usize, BUCKETS);
    assert_eq!(SFS_RANK_TABLES, u32::from(defaults::TABLES));
    assert_eq!(LearnConfig::default().tables, defaults::TABLES);
}

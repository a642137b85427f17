//! Checks that hold for any bytes in place of learned state; the fuzz target
//! runs them, too.

use sfs_policy::learn::{Change, LearnConfig, Learner};
use std::collections::HashSet;

/// Length of the checksum at the end.
const SUM: usize = 8;

/// Decodes `bytes` as they are, and with the right checksum. If that succeeds,
/// learning continues with the state.
pub fn check_any(bytes: &[u8]) {
    let small = LearnConfig {
        functions: 20,
        tables: 6,
        ..LearnConfig::default()
    };
    let mended = mend(bytes);
    for config in [LearnConfig::default(), small] {
        for bytes in [bytes, &mended] {
            match Learner::decode(config, bytes) {
                Ok(learner) => check_use(config, learner, bytes),
                Err(error) => assert!(error.to_string().len() < 100, "{error}"),
            }
        }
    }
}

/// Returns `bytes` with the right checksum (FNV-1a) at the end.
fn mend(bytes: &[u8]) -> Vec<u8> {
    let mut mended = bytes[..bytes.len().saturating_sub(SUM)].to_vec();
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let sum = mended.iter().fold(0xcbf2_9ce4_8422_2325, mix);
    mended.extend(sum.to_le_bytes());
    mended
}

/// Learns, forgets, publishes and saves as `noise` decides.
fn check_use(config: LearnConfig, mut learner: Learner, noise: &[u8]) {
    let saved = learner.encode();
    let back = Learner::decode(config, &saved).map(|one| one.encode());
    assert_eq!(
        back,
        Ok(saved),
        "the restored state is saved and restored again"
    );

    let mut published = HashSet::new();
    let known: Vec<u64> = learner.functions().map(|one| one.key()).take(64).collect();
    for (count, word) in noise.chunks(SUM).take(200).enumerate() {
        let word = word.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let any = known.get(word as usize % 97).copied();
        let service_ns = word >> (word % 64);
        if count % 5 == 0 {
            learner.on_kill(any.unwrap_or(word), service_ns);
        } else {
            learner.on_completion(any.unwrap_or(word), service_ns);
        }
        if count % 50 == 0 {
            publish(&mut learner, &mut published, config);
        }
    }
    publish(&mut learner, &mut published, config);
    assert!(learner.len() <= config.functions);
    let saved = learner.encode();
    assert!(Learner::decode(config, &saved).is_ok());
}

/// Applies the changes: functions have tables that exist.
fn publish(learner: &mut Learner, tables: &mut HashSet<u16>, config: LearnConfig) {
    for change in learner.refresh() {
        match change {
            Change::Table(id, table) => {
                assert!(id < config.tables);
                assert!(table
                    .rank
                    .iter()
                    .all(|rank| usize::from(*rank) < table.rank.len()));
                tables.insert(id);
            }
            Change::DefaultTable(id) | Change::Function(_, id) => assert!(tables.contains(&id)),
            Change::Forgotten(_) => {}
        }
    }
    for one in learner.functions() {
        for share in [0.5, 0.9, 0.99] {
            assert_ne!(one.quantile_ns(share), Some(0));
        }
    }
}

//! Options of `learned` and the other ranked policies.

use crate::policy::ranked::Mechanics;
use crate::policy::Settings;
use anyhow::{bail, Result};
use clap::{Args, ValueEnum};
use faas_data::trace::{Invocation, Trace};
use sfs_policy::learn::{self, LearnConfig};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(next_help_heading = "Ranks: learned, known, mean, mlfq")]
pub struct LearnArgs {
    /// learned: trace of an earlier period, all of it completed; default: no
    /// history
    #[arg(long, value_name = "FILE")]
    learn_from: Option<PathBuf>,
    /// learned, known: what to minimize
    #[arg(long, default_value = "both")]
    aim: Aim,
    /// An invocation waits for later ones at most this many times its expected
    /// cost, in time of processor sharing; 0: no limit
    #[arg(long, value_name = "X", default_value_t = Mechanics::DEFAULT.ageing)]
    ageing: f64,
    /// Ranks per level; ranks of one level are equal
    #[arg(long, value_name = "RANKS", default_value_t = Mechanics::DEFAULT.level, value_parser = clap::value_parser!(u8).range(1..=90))]
    level: u8,
    /// Number of ranks by which an arrival must be better to preempt
    #[arg(long, value_name = "RANKS", default_value_t = Mechanics::DEFAULT.margin, value_parser = clap::value_parser!(u8).range(1..=90))]
    margin: u8,
    /// Slices end at multiples of this, in microseconds; 0: at once
    #[arg(long, value_name = "US", default_value_t = Mechanics::DEFAULT.tick_us, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    tick_us: u64,
    /// learned: completions between two refreshes of the tables; default: a
    /// fiftieth of those known, 1 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    refresh: Option<u32>,
    /// learned: completions after which a function's statistics are halved
    #[arg(long, value_name = "N", default_value_t = LearnConfig::DEFAULT.window, value_parser = clap::value_parser!(u16).range(2..=i64::from(learn::histogram::MAX_WINDOW)))]
    window: u16,
    /// learned: number of its own completions at which a function's statistics
    /// outweigh those of all functions
    #[arg(long, value_name = "N", default_value_t = LearnConfig::DEFAULT.prior)]
    prior: f64,
    /// learned: maximum number of functions remembered
    #[arg(long, value_name = "N", default_value_t = LearnConfig::DEFAULT.functions as u32, value_parser = clap::value_parser!(u32).range(8..))]
    functions: u32,
    /// learned: maximum number of different tables
    #[arg(long, value_name = "N", default_value_t = LearnConfig::DEFAULT.tables, value_parser = clap::value_parser!(u16).range(1..))]
    tables: u16,
    /// learned: maximum difference in ranks between functions that share a
    /// table
    #[arg(long, value_name = "RANKS", default_value_t = LearnConfig::DEFAULT.tolerance)]
    tolerance: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Aim {
    /// Mean turnaround: the Gittins index
    Turnaround,
    /// A compromise between the two
    Both,
    /// Mean slowdown
    Slowdown,
}

impl LearnArgs {
    /// Puts the options into `settings`.
    ///
    /// # Errors
    /// If the file cannot be read, or a number is NaN or out of range.
    pub fn apply(&self, settings: &mut Settings) -> Result<()> {
        for (name, value) in [("--ageing", self.ageing), ("--prior", self.prior)] {
            if !(0.0..=1e6).contains(&value) {
                bail!("{name} is {value}, want a number from 0 to 1000000");
            }
        }
        if let Some(file) = &self.learn_from {
            let earlier = Trace::read(file)?.invocations;
            let completion = |one: &Invocation| (one.function.clone(), one.service_us());
            settings.history = earlier.iter().map(completion).collect();
        }
        let (mechanics, learn) = (&mut settings.mechanics, &mut settings.learn);
        mechanics.ageing = self.ageing;
        mechanics.level = self.level;
        mechanics.margin = self.margin;
        mechanics.tick_us = self.tick_us;
        mechanics.refresh = self.refresh;
        learn.window = self.window;
        learn.prior = self.prior;
        learn.functions = self.functions as usize;
        learn.tables = self.tables;
        learn.tolerance = self.tolerance;
        learn.aim = match self.aim {
            Aim::Turnaround => learn::Aim::Turnaround,
            Aim::Both => learn::Aim::Both,
            Aim::Slowdown => learn::Aim::Slowdown,
        };
        Ok(())
    }
}

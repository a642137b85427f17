//! An axis of values: its scale, and the text of its ticks.

use crate::svg::{LinearAxis, LogAxis};

/// The axis of the values.
pub(super) struct Axis {
    scale: Scale,
    unit: fn(f64) -> String,
}

enum Scale {
    Log(LogAxis),
    Linear(LinearAxis),
}

impl Axis {
    /// A logarithmic axis for values from `min` to `max`, widened to round numbers,
    /// on the pixels `from` to `to`.
    pub(super) fn log(
        (min, max): (f64, f64),
        (from, to): (f64, f64),
        unit: fn(f64) -> String,
    ) -> Self {
        Self {
            scale: Scale::Log(LogAxis::new(min, max, from, to)),
            unit,
        }
    }

    /// A linear axis from `low` to `high`, on the pixels `from` to `to`.
    pub(super) fn linear(
        (low, high): (f64, f64),
        (from, to): (f64, f64),
        unit: fn(f64) -> String,
    ) -> Self {
        Self {
            scale: Scale::Linear(LinearAxis::new(low, high, from, to)),
            unit,
        }
    }

    /// The pixel of `value`; values outside the axis are clamped to its ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        match &self.scale {
            Scale::Log(axis) => axis.at(value),
            Scale::Linear(axis) => axis.at(value),
        }
    }

    /// Round values for ticks, at most `most` if possible.
    pub(super) fn ticks(&self, most: u32) -> Vec<f64> {
        match &self.scale {
            Scale::Log(axis) => axis.ticks_up_to(most as usize),
            Scale::Linear(axis) => axis.ticks(most.saturating_sub(1)),
        }
    }

    /// The text of a value.
    pub(super) fn text(&self, value: f64) -> String {
        (self.unit)(value)
    }
}

//! Work that is a number of iterations, not a time.

use faas_data::fixed::Kernel;
use faas_fixed::bodies::Bodies;
use faas_fixed::rates::{Plan, Rates};
use nix::errno::Errno;
use std::hint::black_box;

/// The working sets of one process, and how many iterations fill a time.
#[derive(Debug)]
pub struct Fixed {
    rates: Rates,
    plan: Plan,
    bodies: Bodies,
}

impl Fixed {
    /// Without working sets, on a machine with these rates.
    pub fn new(rates: Rates) -> Self {
        Self {
            rates,
            plan: Plan::default(),
            bodies: Bodies::default(),
        }
    }

    /// Begins an invocation.
    pub fn begin(&mut self) {
        self.plan = Plan::default();
    }

    /// Makes the working set of `kernel`, unless it is there.
    ///
    /// # Errors
    /// ENOMEM if there is no memory for it.
    pub fn make(&mut self, kernel: Kernel) -> Result<(), Errno> {
        self.bodies.make(kernel).map_err(|_| Errno::ENOMEM)
    }

    /// Does the next phase of the invocation, of which the trace says that it
    /// takes `us` us.
    ///
    /// # Errors
    /// ENOMEM if there is no memory for the working set.
    pub fn phase(&mut self, kernel: Kernel, us: u64) -> Result<(), Errno> {
        let count = self.plan.iterations(&self.rates, kernel, us);
        let value = self.bodies.run(kernel, count).map_err(|_| Errno::ENOMEM)?;
        black_box(value);
        Ok(())
    }

    /// The next phase counts CPU time instead, for `us` us.
    pub fn counted(&mut self, us: u64) {
        self.plan.counted(us);
    }
}

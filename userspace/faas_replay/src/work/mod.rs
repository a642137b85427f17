//! Work: how invocations use their CPU time, and how they block.
//!
//! The demand is a time: a `cpu` phase ends by the thread's CPU clock, whatever
//! it computes. The kinds therefore differ in their effects on caches, memory,
//! kernel and branch predictor, not in their demand. Only [`fixed`] work is a
//! number of iterations, and its CPU time differs.

pub mod documents;
pub mod fib;
pub mod file;
pub mod fixed;
pub mod pace;
pub mod pipe;
pub mod primes;
pub mod spin;
pub mod stream;
pub mod text;

use crate::clock::{monotonic_ns, sleep_until, thread_cpu_ns};
use crate::refill::{Amounts, Counts, Refill, Seen, LOOK_NS};
use crate::topology::Topology;
use faas_data::fixed::Kernel;
use faas_data::kind::{Blocking, Work};
use faas_data::trace::Phase;
use faas_fixed::rates::Rates;
use nix::errno::Errno;
use pace::{Check, LONGEST_NS};
use std::os::fd::RawFd;

/// Does the work of one process. The data of a kind are created at its first
/// use, or by [`Worker::prepare`].
#[derive(Debug, Default)]
pub struct Worker {
    fib: Option<fib::Fib>,
    primes: primes::Primes,
    stream: Option<stream::Stream>,
    file: file::Files,
    json: Option<text::Json>,
    markdown: Option<text::Markdown>,
    sentiment: Option<text::Sentiment>,
    documents: documents::Documents,
    fixed: Option<Box<fixed::Fixed>>,
    /// How demands grow, if they do.
    refill: Option<Box<Refill>>,
    /// The socket for orders to the peer: [`pipe::block`].
    peer: Option<RawFd>,
    /// Time blocked so far.
    blocked_ns: u64,
    /// Whether it may also have waited for files.
    used_files: bool,
}

impl Worker {
    /// A worker that blocks on pipes with the help of the peer behind this
    /// socket, if there is one, does fixed work by these rates, and whose demand
    /// grows by these amounts.
    pub fn new(peer: Option<RawFd>, rates: Option<Rates>, amounts: Option<Amounts>) -> Self {
        Self {
            peer,
            refill: amounts.map(|amounts| Box::new(Refill::new(amounts, Topology::read()))),
            fixed: rates.map(|rates| Box::new(fixed::Fixed::new(rates))),
            ..Self::default()
        }
    }

    /// Creates the data of `work` that forked processes can share: measurements
    /// and word lists, but not the memory that the work exercises.
    pub fn prepare(&mut self, work: Work) {
        match work {
            Work::Fib => drop(self.fib.get_or_insert_with(fib::Fib::measure)),
            Work::Json => _ = self.json.get_or_insert_default(),
            Work::Markdown => _ = self.markdown.get_or_insert_default(),
            Work::Sentiment => _ = self.sentiment.get_or_insert_default(),
            // Without their files, invocations fail, and say why.
            Work::Md | Work::Sa => _ = self.documents.prepare(),
            Work::Spin | Work::Primes | Work::Stream | Work::File | Work::Fixed(_) => {}
        }
    }

    /// Makes the working sets of these kinds of fixed work, for this process.
    ///
    /// # Errors
    /// ENOMEM if there is no memory for them.
    pub fn make(&mut self, kernels: &[Kernel]) -> Result<(), Errno> {
        match &mut self.fixed {
            Some(fixed) => kernels.iter().try_for_each(|kernel| fixed.make(*kernel)),
            None => Ok(()),
        }
    }

    /// The switches for which the demand of this invocation has grown.
    pub fn refills(&self) -> Counts {
        let refill = self.refill.as_ref();
        refill.map(|refill| refill.counts()).unwrap_or_default()
    }

    /// Total time blocked, in nanoseconds; `None` if only the file system knows.
    pub fn blocked_ns(&self) -> Option<u64> {
        (!self.used_files).then_some(self.blocked_ns)
    }

    /// Executes the phases of an invocation. `begun_ns` is the thread's CPU
    /// time at its start, from which its demand counts.
    ///
    /// The cost of sleeping is part of the demand, unless the work is fixed.
    /// The cost of other kinds of blocking is added, because it may be large.
    ///
    /// # Errors
    /// If files, pipes or the peer fail.
    pub fn serve(&mut self, phases: &[Phase], begun_ns: u64) -> Result<(), Errno> {
        let mut demand_ns = begun_ns;
        if let Some(fixed) = &mut self.fixed {
            fixed.begin();
        }
        if let Some(refill) = &mut self.refill {
            refill.begin(Seen::now());
        }
        for phase in phases {
            match phase {
                Phase::Cpu {
                    us,
                    work: Some(Work::Fixed(kernel)),
                } => {
                    let before = thread_cpu_ns();
                    let fixed = self.fixed.as_mut().ok_or(Errno::EINVAL)?;
                    fixed.phase(*kernel, *us)?;
                    demand_ns += thread_cpu_ns() - before;
                    // It does not grow.
                    if let Some(refill) = &mut self.refill {
                        refill.pass(Seen::now());
                    }
                }
                Phase::Cpu { us, work } => {
                    demand_ns += us * 1000;
                    if let Some(fixed) = &mut self.fixed {
                        fixed.counted(*us);
                    }
                    demand_ns = self.compute(work.unwrap_or(Work::Spin), demand_ns)?;
                }
                Phase::Io { us, blocking } => {
                    let before = thread_cpu_ns();
                    self.blocked_ns += us * 1000;
                    let until_ns = monotonic_ns() + us * 1000;
                    let blocking = blocking.unwrap_or(Blocking::Sleep);
                    self.block(blocking, until_ns)?;
                    if blocking != Blocking::Sleep {
                        demand_ns += thread_cpu_ns() - before;
                    }
                }
            }
        }
        Ok(())
    }

    /// Computes until the thread's CPU clock shows `target_ns`, or later if the
    /// demand grows meanwhile; returns until when.
    fn compute(&mut self, work: Work, target_ns: u64) -> Result<u64, Errno> {
        let mut demand = Demand {
            target_ns,
            refill: self.refill.as_deref_mut(),
        };
        let check = || demand.check();
        match work {
            Work::Spin => pace::until(spin::SHORTEST, check, spin::rounds),
            Work::Fib => {
                let fib = self.fib.get_or_insert_with(fib::Fib::measure);
                fib.until(check, fib::plain);
            }
            Work::Primes => pace::until(1, check, |n| self.primes.test(n)),
            Work::Stream => {
                let stream = self.stream.get_or_insert_default();
                pace::until(1, check, |n| stream.blocks(n));
            }
            Work::File => {
                self.used_files = true;
                pace::try_until(1, check, |n| self.file.write_and_delete(n))?;
            }
            Work::Json => {
                let json = self.json.get_or_insert_default();
                pace::until(1, check, |n| json.render(n));
            }
            Work::Markdown => {
                let markdown = self.markdown.get_or_insert_default();
                pace::until(1, check, |n| markdown.render(n));
            }
            Work::Sentiment => {
                let sentiment = self.sentiment.get_or_insert_default();
                pace::until(1, check, |n| sentiment.score(n));
            }
            Work::Md => {
                self.used_files = true;
                pace::try_until(1, check, |n| self.documents.md(n))?;
            }
            Work::Sa => {
                self.used_files = true;
                pace::try_until(1, check, |n| self.documents.sa(n))?;
            }
            // A number of iterations, not a time: `serve` has done them.
            Work::Fixed(_) => {}
        }
        Ok(demand.target_ns)
    }

    /// Blocks until the monotonic clock shows `until_ns`.
    fn block(&mut self, blocking: Blocking, until_ns: u64) -> Result<(), Errno> {
        match blocking {
            Blocking::Sleep => {
                sleep_until(until_ns);
                Ok(())
            }
            Blocking::Pipe => pipe::block(self.peer.ok_or(Errno::ENOTCONN)?, until_ns),
            Blocking::File => {
                self.used_files = true;
                self.file.sync_until(until_ns, monotonic_ns)
            }
        }
    }
}

/// Until when to compute.
struct Demand<'a> {
    target_ns: u64,
    refill: Option<&'a mut Refill>,
}

impl Demand<'_> {
    fn check(&mut self) -> Check {
        let now_ns = thread_cpu_ns();
        let longest_ns = match &mut self.refill {
            None => LONGEST_NS,
            Some(refill) => {
                self.target_ns += refill.look(Seen::now());
                LOOK_NS
            }
        };
        Check {
            now_ns,
            target_ns: self.target_ns,
            longest_ns,
        }
    }
}

/// Tests that make files in the current folder take turns: a replay's processes
/// have numbers of their own, threads of a test do not.
#[cfg(test)]
static FOLDER: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;
    use faas_data::kind::Kind;

    #[test]
    fn every_kind_uses_the_requested_cpu_time() {
        let _turn = FOLDER.lock();
        let mut worker = Worker::new(None, None, None);
        let counts_time = |work: &&Work| work.fixed().is_none();
        for work in Work::ALL.iter().filter(counts_time).copied() {
            worker.prepare(work);
            let begun = thread_cpu_ns();
            let phase = Phase::Cpu {
                us: 2000,
                work: Some(work),
            };
            worker.serve(&[phase, phase], begun).unwrap();
            assert!(thread_cpu_ns() - begun >= 4_000_000, "{work}");
        }
        for left in ["faasbench-md.json", "faasbench-sa.txt"] {
            std::fs::remove_file(left).unwrap();
        }
    }

    #[test]
    fn demand_grows_for_a_sleep_before_it() {
        // Less than a turn on a busy machine: otherwise it would never end.
        let amounts = Amounts([200; 4]);
        let mut worker = Worker::new(None, None, Some(amounts));
        let begun = thread_cpu_ns();
        worker
            .serve(&[Phase::io(2000), Phase::cpu(1000)], begun)
            .unwrap();
        let grown = amounts.ns(worker.refills());
        assert!(grown >= 200_000, "{grown}");
        assert!(thread_cpu_ns() - begun >= 1_000_000 + grown);
        worker.serve(&[Phase::io(2000)], begun).unwrap();
        assert_eq!(worker.refills(), Counts::default());
    }

    #[test]
    fn files_and_pipes_block_and_a_pipe_needs_its_peer() {
        let _turn = FOLDER.lock();
        let mut worker = Worker::new(None, None, None);
        let io = |blocking| Phase::Io {
            us: 3000,
            blocking: Some(blocking),
        };
        let begun = monotonic_ns();
        worker
            .serve(&[io(Blocking::File), io(Blocking::Sleep)], thread_cpu_ns())
            .unwrap();
        assert!(monotonic_ns() - begun >= 6_000_000);
        assert_eq!(worker.blocked_ns(), None);
        let alone = worker.serve(&[io(Blocking::Pipe)], 0);
        assert_eq!(alone, Err(Errno::ENOTCONN));
    }
}

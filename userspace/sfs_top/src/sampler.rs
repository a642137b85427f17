//! Takes samples in a thread of its own, so that keys are answered while a busy machine lets a
//! sample wait.

use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::sample::Sample;
use crate::source::Source;

/// What the sampler is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// To take a sample so often.
    Interval(Duration),
    /// To take no samples, or to go on.
    Pause(bool),
    /// To watch for wasted CPU time, or to end that.
    Waste(bool),
}

/// What it tells.
#[derive(Debug)]
pub enum News {
    /// A sample.
    Sample(Box<Sample>),
    /// Why there is no watch for wasted CPU time.
    NoWaste(String),
}

/// The sampler; it ends when this is dropped.
pub struct Sampler {
    orders: Sender<Order>,
    /// What it has to tell.
    pub news: Receiver<News>,
}

impl Sampler {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// There is no thread for it.
    pub fn start(socket: Option<PathBuf>, interval: Duration) -> Result<Self> {
        let (orders, ordered) = channel();
        let (teller, news) = channel();
        thread::Builder::new()
            .name("sfs_top".into())
            .spawn(move || serve(Source::new(socket), interval, &ordered, &teller))
            .context("cannot start a thread that takes samples")?;
        Ok(Self { orders, news })
    }

    /// Gives it an order.
    ///
    /// # Errors
    ///
    /// It has ended.
    pub fn order(&self, order: Order) -> Result<()> {
        self.orders
            .send(order)
            .ok()
            .context("the thread that takes samples has died")
    }
}

fn serve(
    mut source: Source,
    mut interval: Duration,
    orders: &Receiver<Order>,
    news: &Sender<News>,
) {
    let mut last = None;
    let mut is_paused = false;
    loop {
        let due = |last: Instant| interval.saturating_sub(last.elapsed());
        let left = last.map_or(Duration::ZERO, due);
        let order = match is_paused {
            true => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => orders.recv_timeout(left),
        };
        match order {
            Ok(Order::Interval(other)) => interval = other,
            Ok(Order::Pause(on)) => is_paused = on,
            Ok(Order::Waste(on)) => {
                if let Err(sentence) = source.watch_waste(on) {
                    let _ = news.send(News::NoWaste(sentence));
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                last = Some(Instant::now());
                let (sample, _) = source.look();
                if news.send(News::Sample(Box::new(sample))).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

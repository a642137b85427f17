//! Work for several threads.

use anyhow::Result;
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};

/// Calls `work` for each of `items`, in their order, on `threads` threads (at least one).
/// Returns the results in the order of the items. After an error no more items are begun.
///
/// # Errors
/// The first error of `work`, in the order of the threads.
pub fn for_each<T: Send, R: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = threads.clamp(1, items.len().max(1));
    let queue: Mutex<VecDeque<(usize, T)>> = Mutex::new(items.into_iter().enumerate().collect());
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let take_all = || -> Result<Vec<(usize, R)>> {
        let mut results = Vec::new();
        loop {
            // Not in the `let` below: the lock would be held until its end.
            let next = lock().pop_front();
            let Some((index, item)) = next else {
                return Ok(results);
            };
            let result = work(item).inspect_err(|_| lock().clear())?;
            results.push((index, result));
        }
    };
    let mut results = std::thread::scope(|scope| -> Result<Vec<(usize, R)>> {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(take_all)).collect();
        let ended: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect();
        let mut results = Vec::new();
        for result in ended {
            results.extend(result?);
        }
        Ok(results)
    })?;
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for threads in [0, 1, 3, 9] {
            let squares = for_each(threads, (0..5).collect(), |n: usize| Ok(n * n)).unwrap();
            assert_eq!(squares, [0, 1, 4, 9, 16]);
        }
        assert!(for_each(2, Vec::<u8>::new(), Ok).unwrap().is_empty());
    }

    #[test]
    fn an_error_ends_it() {
        let begun = AtomicUsize::new(0);
        let result = for_each(1, vec![1, 2, 3], |n| {
            begun.fetch_add(1, Ordering::Relaxed);
            anyhow::ensure!(n != 2, "two");
            Ok(n)
        });
        assert_eq!(result.unwrap_err().to_string(), "two");
        assert_eq!(begun.load(Ordering::Relaxed), 2);
    }
}

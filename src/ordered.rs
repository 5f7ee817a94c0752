//! Tasks run on several threads, results handed out in task order, one per thread in memory.
//!
//! A task is stepped: each step gives one result and may be followed by others. At most `threads`
//! tasks are under way; each holds at most one finished result until it is taken. A step is a job
//! of its own in the pool and never blocks there, so many streams may be open at once, and a
//! stream that is dropped half-way just stops submitting (and cancels what is running).
//!
//! ```text
//! tasks   0 1 2 3 4 5 …          handed out: all results of 0, then of 1, …
//!         └─┬─┘ under way        taken from the front; a finished task makes room at the back
//! ```
//!
//! Tasks should give about one result each: later results of the front task are computed one
//! after the other.
//!
//! With one thread there is no pool: steps run on the caller's thread. Pools live as long as the
//! stream and are never shared, so nothing survives into a forked process.

use std::collections::VecDeque;
use std::sync::Arc;

use crossbeam_channel::{Receiver, bounded};
use rayon::ThreadPool;

use crate::control::{Control, wait};
use crate::error::without_panic;
use crate::workers::pool;
use crate::{Error, Result};

/// One step of a task: the next result, or `None` when the task is finished.
type Step<T, R> = Arc<dyn Fn(&mut T) -> Result<Option<R>> + Send + Sync>;

/// What comes back from a job: the task itself, and what its step gave.
type Outcome<T, R> = (T, Result<Option<R>>);

/// The results of stepped tasks, in task order. See the module's text.
pub struct Ordered<T, R> {
    tasks: Box<dyn Iterator<Item = T> + Send>,
    step: Step<T, R>,
    control: Arc<Control>,
    runner: Runner<T, R>,
    process: u32,
    failed: bool,
}

enum Runner<T, R> {
    Inline(Option<T>),
    Pool { pool: ThreadPool, under_way: VecDeque<Receiver<Outcome<T, R>>> },
}

impl<T: Send + 'static, R: Send + 'static> Ordered<T, R> {
    /// Runs `step` over `tasks` on `threads` threads.
    pub fn new(
        tasks: impl Iterator<Item = T> + Send + 'static,
        step: impl Fn(&mut T) -> Result<Option<R>> + Send + Sync + 'static,
        threads: usize,
        control: Arc<Control>,
    ) -> Result<Self> {
        // No more threads than tasks: for a small join, starting them is most of the work.
        let threads = tasks.size_hint().1.map_or(threads, |tasks| threads.min(tasks));
        let runner = if threads <= 1 {
            Runner::Inline(None)
        } else {
            Runner::Pool { pool: pool(threads)?, under_way: VecDeque::with_capacity(threads) }
        };
        Ok(Self {
            tasks: Box::new(tasks),
            step: Arc::new(step),
            control,
            runner,
            process: std::process::id(),
            failed: false,
        })
    }

    fn advance(&mut self) -> Result<Option<R>> {
        if self.process != std::process::id() {
            // The pool's threads did not survive the fork: waiting for them would hang.
            return Err(Error::invalid(
                "this result was begun in another process; ask the operator for it again here",
            ));
        }
        match &mut self.runner {
            Runner::Inline(current) => loop {
                self.control.tick()?;
                let task = match current {
                    Some(task) => task,
                    None => match self.tasks.next() {
                        Some(task) => current.insert(task),
                        None => return self.control.look().map(|()| None),
                    },
                };
                match without_panic(|| (self.step)(task))? {
                    Some(result) => return Ok(Some(result)),
                    None => *current = None,
                }
            },
            Runner::Pool { pool, under_way } => loop {
                while under_way.len() < pool.current_num_threads() {
                    match self.tasks.next() {
                        Some(task) => under_way.push_back(submit(pool, &self.step, task)),
                        None => break,
                    }
                }
                let Some(front) = under_way.front_mut() else {
                    return self.control.look().map(|()| None);
                };
                self.control.tick()?;
                let (task, outcome) = wait(front, &self.control)?;
                match outcome? {
                    Some(result) => {
                        *front = submit(pool, &self.step, task);
                        return Ok(Some(result));
                    }
                    None => drop(under_way.pop_front()),
                }
            },
        }
    }
}

impl<T: Send + 'static, R: Send + 'static> Iterator for Ordered<T, R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Result<R>> {
        if self.failed {
            return None;
        }
        let next = self.advance().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

impl<T, R> Drop for Ordered<T, R> {
    fn drop(&mut self) {
        self.control.cancel();
        if self.process != std::process::id() {
            // Dropping a pool talks to its threads, which are not here; leak it instead.
            let gone = std::mem::replace(&mut self.runner, Runner::Inline(None));
            std::mem::forget(gone);
        }
    }
}

fn submit<T: Send + 'static, R: Send + 'static>(
    pool: &ThreadPool,
    step: &Step<T, R>,
    mut task: T,
) -> Receiver<Outcome<T, R>> {
    let (sender, receiver) = bounded(1);
    let step = Arc::clone(step);
    pool.spawn(move || {
        let outcome = without_panic(|| step(&mut task));
        // Nobody waits any more when the stream was dropped.
        let _ = sender.send((task, outcome));
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Task `k` gives `k` results: (k, 0), (k, 1), …
    fn counting(threads: usize) -> Ordered<(usize, usize), (usize, usize)> {
        let step = |task: &mut (usize, usize)| {
            let (number, given) = *task;
            task.1 += 1;
            Ok((given < number).then_some((number, given)))
        };
        let tasks = (0..40).map(|number| (number % 7, 0));
        Ordered::new(tasks, step, threads, Arc::default()).unwrap()
    }

    #[test]
    fn results_come_in_task_order_whatever_the_threads() {
        let alone: Vec<_> = counting(1).map(Result::unwrap).collect();
        assert_eq!(alone.len(), 5 * 21 + 10);
        for threads in 2..=8 {
            assert_eq!(counting(threads).map(Result::unwrap).collect::<Vec<_>>(), alone);
        }
    }

    #[test]
    fn no_more_results_wait_than_there_are_threads() {
        for threads in [1, 2, 5] {
            let alive = Arc::new(AtomicUsize::new(0));
            struct Held(Arc<AtomicUsize>);
            impl Drop for Held {
                fn drop(&mut self) {
                    self.0.fetch_sub(1, Ordering::SeqCst);
                }
            }
            let seen = Arc::clone(&alive);
            let step = move |done: &mut bool| {
                if std::mem::replace(done, true) {
                    return Ok(None);
                }
                let held = Held(Arc::clone(&seen));
                let now = seen.fetch_add(1, Ordering::SeqCst) + 1;
                Ok(Some((held, now)))
            };
            let stream =
                Ordered::new(vec![false; 200].into_iter(), step, threads, Arc::default()).unwrap();
            let most = stream.map(|result| result.unwrap().1).max().unwrap();
            // One more may be in the consumer's hand while the others are full.
            assert!(most <= threads + 1, "{most} results with {threads} threads");
        }
    }

    #[test]
    fn an_error_or_a_panic_ends_the_stream() {
        for threads in [1, 3] {
            let failing = |task: &mut u32| match *task {
                2 => Err(Error::invalid("two")),
                4 => panic!("four"),
                _ => Ok(std::mem::replace(task, 2).checked_sub(0)),
            };
            let results: Vec<_> =
                Ordered::new([2].into_iter(), failing, threads, Arc::default()).unwrap().collect();
            assert!(matches!(&results[..], [Err(Error::Invalid(text))] if text == "two"));
            let results: Vec<_> =
                Ordered::new([4].into_iter(), failing, threads, Arc::default()).unwrap().collect();
            assert!(matches!(&results[..], [Err(Error::Internal(text))] if text == "four"));
        }
    }

    #[test]
    fn the_watcher_can_stop_a_run() {
        for threads in [1, 2] {
            let control = Arc::new(Control::watched_by(Box::new(|done, _| done < 10)));
            let counted = Arc::clone(&control);
            let step = move |_: &mut ()| {
                counted.advance(1);
                Ok(Some(()))
            };
            let mut stream =
                Ordered::new(std::iter::once(()), step, threads, Arc::clone(&control)).unwrap();
            let last = stream.by_ref().find(Result::is_err);
            assert!(matches!(last, Some(Err(Error::Cancelled))));
            assert!(stream.next().is_none());
        }
    }
}

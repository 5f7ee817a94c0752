//! How a running operator is watched and stopped.
//!
//! One [`Control`] belongs to one run. Worker threads only read the flag and add to the progress;
//! the thread that waits for results calls [`Control::tick`] at least every [`TICK`], and the
//! watcher it carries (a signal check, a progress bar) may say stop. So everything that touches
//! the host language happens on the caller's own thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use crate::error::without_panic;
use crate::{Error, Result};

/// How often the watcher looks: seldom enough not to fight over the host's locks.
pub const TICK: Duration = Duration::from_millis(25);

/// Called on the waiting thread with (done, total) units of work; returns false to stop the run.
pub type Watcher = Box<dyn Fn(u64, u64) -> bool + Send + Sync>;

/// The cancellation flag and the progress of one run.
pub struct Control {
    cancelled: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    watcher: Option<Watcher>,
    begun: Instant,
    /// Milliseconds after `begun` at which the watcher looks next.
    next_look: AtomicU64,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            cancelled: AtomicBool::new(false),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            watcher: None,
            begun: Instant::now(),
            next_look: AtomicU64::new(0),
        }
    }
}

impl Control {
    /// A control whose waiting thread reports to `watcher`.
    pub fn watched_by(watcher: Watcher) -> Self {
        Self { watcher: Some(watcher), ..Self::default() }
    }

    /// A control for one part of a longer run (a step, a window), which ends by itself: it stops
    /// when the whole run is stopped, and its work is work of the whole.
    pub fn part_of(whole: &Arc<Self>) -> Self {
        let whole = Arc::clone(whole);
        let reported = [AtomicU64::new(0), AtomicU64::new(0)];
        Self::watched_by(Box::new(move |done, total| {
            whole.advance(done - reported[0].swap(done, Ordering::Relaxed));
            let more = total - reported[1].swap(total, Ordering::Relaxed);
            whole.expect_more(more);
            whole.tick().is_ok()
        }))
    }

    /// Asks every thread of the run to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// `Err(Cancelled)` once the run is to stop; cheap enough for the middle of a kernel.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Lets the watcher look if a [`TICK`] has passed since it last did, then
    /// [`check`](Self::check)s. For the waiting thread only; call it at least every `TICK`.
    pub fn tick(&self) -> Result<()> {
        let now = self.begun.elapsed().as_millis() as u64;
        if now < self.next_look.load(Ordering::Relaxed) {
            return self.check();
        }
        self.next_look.store(now + TICK.as_millis() as u64, Ordering::Relaxed);
        self.look()
    }

    /// Lets the watcher look now: at the end, so that a progress bar gets there.
    pub fn look(&self) -> Result<()> {
        if let Some(watcher) = &self.watcher {
            let (done, total) = (self.done.load(Ordering::Relaxed), self.total());
            if !watcher(done, total) {
                self.cancel();
            }
        }
        self.check()
    }

    /// Says how many units of work the run has in all.
    pub fn expect(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Adds to the units of work that the run has in all: another step of it begins.
    pub fn expect_more(&self, more: u64) {
        self.total.fetch_add(more, Ordering::Relaxed);
    }

    /// Units of work announced by [`expect`](Self::expect).
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Adds finished units of work.
    pub fn advance(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }
}

/// Runs `work` on a thread of its own while this one keeps watching; when the watcher says stop,
/// the caller returns at once and the thread ends by itself, its result unused.
pub fn interruptible<T: Send + 'static>(
    control: &Control,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = bounded(1);
    let run = move || drop(sender.send(without_panic(work)));
    std::thread::Builder::new()
        .name("dovetail-prepare".into())
        .spawn(run)
        .map_err(|error| Error::internal(format!("cannot start a thread: {error}")))?;
    wait(&receiver, control)?
}

/// Waits for an answer while watching.
pub(crate) fn wait<T>(receiver: &Receiver<T>, control: &Control) -> Result<T> {
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) => control.tick()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::internal("a worker thread ended without an answer"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_stop_with_the_whole() {
        let whole = Arc::new(Control::default());
        for _ in 0..2 {
            let part = Control::part_of(&whole);
            part.expect(10);
            part.advance(4);
            part.look().unwrap();
            part.advance(6);
            part.look().unwrap();
            part.cancel();
        }
        whole.check().unwrap();
        assert_eq!((whole.done.load(Ordering::Relaxed), whole.total()), (20, 20));
        let part = Control::part_of(&whole);
        whole.cancel();
        assert!(matches!(part.look(), Err(Error::Cancelled)));
    }
}

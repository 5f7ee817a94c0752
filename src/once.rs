//! Something made on first use, by whichever thread comes first, while the others wait.
//!
//! Nothing is locked while it is made: who waits goes on checking for signals, a callback that
//! asks for it again is told so instead of waiting for itself, and so is a forked process whose
//! maker stayed behind.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::control::{Control, TICK};
use crate::{Error, Result};

/// A value that is made at most once; a failed attempt may be repeated.
pub(crate) struct Once<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

enum State<T> {
    Idle,
    Making { thread: ThreadId, process: u32 },
    Made(T),
}

impl<T: Clone> Once<T> {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State::Idle), changed: Condvar::new() }
    }

    /// The value, made by `make` if there is none yet.
    pub(crate) fn get(&self, control: &Control, make: impl FnOnce() -> Result<T>) -> Result<T> {
        let (me, process) = (thread::current().id(), std::process::id());
        loop {
            let mut state = self.lock();
            match &*state {
                State::Made(value) => return Ok(value.clone()),
                State::Making { thread, .. } if *thread == me => {
                    return Err(Error::invalid(
                        "this result is being prepared by a call that is still running, and which \
                         this call was made from",
                    ));
                }
                State::Making { process: other, .. } if *other != process => {
                    return Err(Error::invalid(
                        "this result was being prepared by another thread when the process \
                         forked: make it again here",
                    ));
                }
                State::Making { .. } => {
                    drop(self.changed.wait_timeout(state, TICK));
                    control.tick()?;
                }
                State::Idle => {
                    *state = State::Making { thread: me, process };
                    drop(state);
                    break;
                }
            }
        }
        let unfinished = Unfinished(self);
        let value = make()?;
        *self.lock() = State::Made(value.clone());
        drop(unfinished);
        Ok(value)
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the next one try if making failed or panicked.
struct Unfinished<'a, T: Clone>(&'a Once<T>);

impl<T: Clone> Drop for Unfinished<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(*state, State::Making { .. }) {
            *state = State::Idle;
        }
        self.0.changed.notify_all();
    }
}

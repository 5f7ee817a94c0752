//! One memory budget that operators reserve from.
//!
//! A [`Budget`] is a number of bytes shared by everything that works on one call. Whoever is about
//! to hold memory reserves it first and keeps the [`Reservation`] beside the memory; dropping it
//! gives the bytes back. The budget counts, it does not allocate: it is as honest as its callers.
//!
//! - The bytes reserved never exceed the limit, at no instant and under any number of threads; a
//!   request that does not fit changes nothing and is refused with [`Error::Budget`].
//! - No request waits. Who is refused spills, or asks for less.
//! - `used()` is the sum of the living reservations' `bytes()`, hence 0 once all are gone.
//!
//! Every operation is one atomic update (compare-and-swap for growth). They are relaxed: the
//! counter orders no other memory, and all that matters is the counter's own total order.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{Error, Result};

/// A shared number of bytes to reserve from; clones share it.
#[derive(Clone, Debug)]
pub struct Budget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// `u64::MAX` is no limit.
    limit: u64,
    used: AtomicU64,
    peak: AtomicU64,
}

impl Budget {
    /// A budget that refuses nothing, and still counts.
    pub fn unlimited() -> Self {
        Self::bytes(u64::MAX)
    }

    /// A budget of `limit` bytes.
    pub fn bytes(limit: u64) -> Self {
        let shared = Shared { limit, used: AtomicU64::new(0), peak: AtomicU64::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Sets `bytes` aside for `what`, which is how an error names the purpose ("sorting a run").
    pub fn reserve(&self, what: impl Into<Cow<'static, str>>, bytes: u64) -> Result<Reservation> {
        let mut reservation = Reservation { budget: self.clone(), what: what.into(), bytes: 0 };
        reservation.try_grow(bytes)?;
        Ok(reservation)
    }

    /// Bytes reserved now.
    pub fn used(&self) -> u64 {
        self.shared.used.load(Relaxed)
    }

    /// Bytes that could be reserved now.
    pub fn available(&self) -> u64 {
        self.shared.limit - self.used()
    }

    /// The most bytes that were ever reserved at once.
    pub fn peak(&self) -> u64 {
        // A grower raises `used` before `peak`; in between, `used` is the peak.
        let used = self.used();
        used.max(self.shared.peak.load(Relaxed))
    }

    /// The whole budget; `None` if unlimited.
    pub fn limit(&self) -> Option<u64> {
        (self.shared.limit != u64::MAX).then_some(self.shared.limit)
    }

    /// Takes `bytes`, or nothing and says how many were free.
    fn take(&self, bytes: u64) -> Result<(), u64> {
        let Shared { limit, used, peak } = &*self.shared;
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| sum <= limit);
        match used.fetch_update(Relaxed, Relaxed, fits) {
            Ok(before) => {
                peak.fetch_max(before + bytes, Relaxed);
                Ok(())
            }
            Err(used) => Err(limit - used),
        }
    }

    /// Gives back `bytes` that were taken.
    fn give_back(&self, bytes: u64) {
        let before = self.shared.used.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes returned, {before} were reserved");
    }
}

/// Bytes set aside from a [`Budget`], given back on drop.
#[derive(Debug)]
#[must_use = "a reservation that is dropped gives its bytes back"]
pub struct Reservation {
    budget: Budget,
    what: Cow<'static, str>,
    bytes: u64,
}

impl Reservation {
    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What they are for.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Takes `more` bytes in addition; if they do not fit, nothing changes.
    pub fn try_grow(&mut self, more: u64) -> Result<()> {
        self.budget.take(more).map_err(|available| Error::Budget {
            what: self.what.clone().into_owned(),
            requested: more,
            available,
            limit: self.budget.shared.limit,
        })?;
        self.bytes += more;
        Ok(())
    }

    /// Gives back `fewer` bytes, or all there are if that is less.
    pub fn shrink(&mut self, fewer: u64) {
        let fewer = fewer.min(self.bytes);
        self.bytes -= fewer;
        self.budget.give_back(fewer);
    }

    /// Holds exactly `bytes` from now on; if growing does not fit, nothing changes.
    pub fn resize(&mut self, bytes: u64) -> Result<()> {
        if bytes > self.bytes {
            self.try_grow(bytes - self.bytes)
        } else {
            self.shrink(self.bytes - bytes);
            Ok(())
        }
    }

    /// Moves `bytes` of these into a reservation of their own, so that part of the memory can live
    /// longer than the rest. Asking for more than there is would hand out bytes that nobody
    /// reserved: [`Error::Internal`].
    pub fn split(&mut self, bytes: u64) -> Result<Reservation> {
        let Some(rest) = self.bytes.checked_sub(bytes) else {
            return Err(Error::internal(format!(
                "cannot split {bytes} bytes off the {} reserved for {}",
                self.bytes, self.what
            )));
        };
        self.bytes = rest;
        Ok(Reservation { budget: self.budget.clone(), what: self.what.clone(), bytes })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

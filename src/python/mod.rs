//! `dovetail._native`: thin bindings. Convert, release the GIL, call, wrap.
//!
//! Everything here is private to the Python package, which types and documents what users see.

mod convert;
mod error;
mod input;
mod join;
mod theta;
mod watch;
mod window;

use pyo3::prelude::*;

/// The native half of dovetail.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::input::Input;
    #[pymodule_export]
    use super::join::{Join, Stream};
    #[pymodule_export]
    use super::theta::{chain_join, theta_join};
    #[pymodule_export]
    use super::window::WindowJoin;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let py = module.py();
        // Levels are asked for each time, so that a user may change them at any time.
        if let Ok(logger) = pyo3_log::Logger::new(py, pyo3_log::Caching::Loggers) {
            // Another extension may have installed its own logger in this process first.
            drop(logger.filter(log::LevelFilter::Debug).install());
        }
        Ok(())
    }
}

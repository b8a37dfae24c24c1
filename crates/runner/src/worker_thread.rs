//! How the thread of a worker is prepared.

use std::cell::RefCell;

use pubgauge_driver::DriverError;
use pubgauge_engine::assignment::Assignment;
use pubgauge_testbed::IdlePolling;

thread_local! {
    /// Held until the worker's thread ends.
    static IDLE_POLLING: RefCell<Option<IdlePolling>> = const { RefCell::new(None) };
}

/// Sets timer slack, processor and priority of a worker's thread, and what idle processors do while it lives.
pub fn prepare_thread(assignment: &Assignment) -> Result<(), DriverError> {
    let slack = pubgauge_testbed::set_timer_slack(1);
    slack.map_err(|e| DriverError::new(format!("cannot set the timer slack: {e}")))?;
    if let Some(cpu) = assignment.pin_to {
        pubgauge_testbed::pin_to(cpu).map_err(|e| DriverError::new(e.to_string()))?;
    }
    if let Some(priority) = assignment.client.realtime {
        let set = pubgauge_testbed::set_realtime(priority);
        set.map_err(|e| DriverError::new(e.to_string()))?;
    }
    if assignment.client.poll_when_idle {
        let polling = pubgauge_testbed::poll_when_idle();
        let polling = polling.map_err(|e| DriverError::new(e.to_string()))?;
        IDLE_POLLING.set(Some(polling));
    }
    Ok(())
}

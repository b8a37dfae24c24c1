//! How the conformance suite ends a system and starts it again.

/// How a system ends before it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEnd {
    /// At once, without time to save anything (SIGKILL).
    Killed,
    /// In order, with time to save.
    Stopped,
}

/// A system whose server the suite may end and start again.
pub trait Lifecycle {
    /// Ends the server and starts it again in the same folder, at the same addresses; returns
    /// when it is ready.
    ///
    /// # Errors
    /// Why it did not come back.
    fn restart(&mut self, how: ServerEnd) -> Result<(), Box<dyn std::error::Error>>;

    /// Suspends the server's processes (SIGSTOP), or lets them continue (SIGCONT): messages sent
    /// meanwhile stay where they are. Returns whether that was done. The default does nothing; how
    /// much a server takes in then depends on its speed.
    fn pause(&mut self, _paused: bool) -> bool {
        false
    }

    /// How the server ended, if it has, although the suite did not end it. The suite asks after a check that failed, and
    /// makes no more of them then. The default does not know.
    fn exit_reason(&mut self) -> Option<String> {
        None
    }
}

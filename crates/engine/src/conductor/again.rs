//! Further rounds of sentinels: workers are asked what is missing, and send it in the next round.

use super::Conductor;
use crate::reports::Command;

impl Conductor<'_> {
    /// Asks the workers which streams are missing; [`Conductor::go_on_proving`] then sends the next round.
    pub(super) fn prove_again(&mut self) {
        if !self.again.asked.is_empty() {
            return;
        }
        self.again.grow(self.live.unproven);
        self.again.told = self.apart.unproven_streams().collect();
        let workers = self.workers.iter().enumerate();
        let there = workers.filter(|(_, handle)| !handle.is_over());
        self.again.asked = there.map(|(number, _)| number as u32).collect();
        self.command(
            None,
            &Command::TellUnproven(self.again.from, self.again.most),
        );
    }

    /// Sends the next round of sentinels, once all workers have told what is missing.
    pub(super) fn go_on_proving(&mut self) {
        let workers = &self.workers;
        let again = &mut self.again;
        (again.asked).retain(|number| !workers[*number as usize].is_over());
        if !again.asked.is_empty() || again.told.is_empty() {
            return;
        }
        let round = again.round();
        self.command(None, &Command::ProveAgain(round));
    }

    /// How many paths are unproven, and how many sentinels of the newest round are missing, at most: a stream that several
    /// do not hear counts once.
    pub(super) fn missing(&self) -> (u64, u64) {
        let (unproven, streams) = (self.live.unproven, self.spec.brief.stream_count());
        (
            unproven,
            unproven.min(u64::from(streams)).min(self.again.streams),
        )
    }

    /// A stream that is missing, by its topic; `None` where no worker was asked.
    pub(super) fn missing_topic(&self) -> Option<&str> {
        let brief = &self.spec.brief;
        let last = self.again.from.checked_sub(1)?;
        let stream = brief.audience.streams.get(last as usize)?;
        let publisher = &brief.workload.flows[stream.flow as usize].publishers;
        let topics = &publisher[stream.publisher as usize].topics;
        topics.get(stream.topic as usize).map(String::as_str)
    }
}

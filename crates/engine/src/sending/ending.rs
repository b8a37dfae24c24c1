//! The end of sending: what stayed unsent, and the counts of the worker.

use pubgauge_driver::Nanos;
use pubgauge_workload::Due;

use super::{FlatOut, Sending, SendingPace, Whereabouts};
use crate::bursts::{BurstRecording, Bursts};
use crate::parts::FlowParts;
use crate::recording::FlowRecording;
use crate::series::Totals;
use crate::timetable::GRACE;

impl Sending {
    /// The measurement ends at `end`, perhaps earlier than planned: nothing that is due later is sent, and what
    /// is gathered leaves at once. Returns until when what is due may leave.
    pub fn end_at(&mut self, end: Nanos) -> Nanos {
        self.cuts.end_at(end);
        if let Some(table) = &mut self.table {
            table.end = table.end.min(end);
        }
        self.leave_at = 0;
        self.until = end + GRACE + self.client.pacing_within;
        for sender in &mut self.senders {
            sender.end = sender.end.min(end);
        }
        self.until
    }

    /// Whether messages that are due wait for the system.
    pub fn waits(&self) -> bool {
        self.waiting_count > 0
    }

    /// The measurement ended at `end`. Messages that still wait count as not sent, and so do those
    /// that the schedule had due by then and that were not looked at; nothing is sent any more.
    pub fn stop(&mut self, end: Nanos) {
        self.end_at(end);
        let Some(table) = self.table else {
            self.senders.clear();
            return;
        };
        for local in 0..self.locals.len() as u32 {
            self.outage_ends(local, end);
            let state = &mut self.locals[local as usize];
            if let Some(since) = state.blocked_since.take() {
                let flow = state.flow;
                // A flow may have ended before the measurement.
                let (_, ended) = table.span(&self.brief.workload.flows[flow as usize]);
                self.add_held_back(flow, since..ended, 1);
            }
        }
        for mut sender in std::mem::take(&mut self.senders) {
            if let SendingPace::FlatOut(FlatOut { ready, window, .. }) = &sender.pace
                && let Some((since, _)) = window.as_ref().and_then(|bound| bound.without)
            {
                self.add_held_back(sender.flow, since..sender.end, ready.len() as u64);
            }
            let SendingPace::Due(ahead) = &mut sender.pace else {
                continue;
            };
            let mut ahead = ahead.take();
            while let Some(due) = ahead {
                let intended = sender.origin.saturating_add(due.at);
                let waits = sender.turn.as_ref().is_some_and(|t| intended > t.burst);
                if intended >= sender.end || waits {
                    break;
                }
                let local = sender.local(due.publisher);
                let local = local.filter(|_| intended >= table.measure);
                let away = |local: u32| self.locals[local as usize].place == Whereabouts::Away;
                if local.is_some_and(away) {
                    self.flows[sender.flow as usize].messages.away += 1;
                } else if let Some(local) = local {
                    self.offer(sender.flow, intended);
                    self.not_sent(local, intended, &due);
                    self.flows[sender.flow as usize].not_tried += 1;
                    if let Some(bursts) = &mut self.bursts[sender.flow as usize]
                        && let Some(burst) = bursts.begun_at(intended)
                    {
                        burst.due += 1;
                        burst.unsent += 1;
                    }
                }
                ahead = sender.schedule.next();
            }
        }
        for (local, queue) in std::mem::take(&mut self.waiting) {
            let flow = self.locals[local as usize].flow as usize;
            for (at, due) in queue.iter().filter(|(at, _)| *at >= table.measure) {
                self.not_sent(local, *at, due);
                let bursts = self.bursts[flow].as_mut();
                if let Some(burst) = bursts.and_then(|bursts| bursts.begun_at(*at)) {
                    burst.unsent += 1;
                }
            }
        }
        self.waiting_count = 0;
        self.waiting_deliveries.fill(0);
    }

    /// Notes that a message that was due was not handed over.
    fn not_sent(&mut self, local: u32, intended: Nanos, due: &Due) {
        let flow = self.locals[local as usize].flow as usize;
        let deliveries = self.deliveries(local, due.topic);
        let counts = &mut self.flows[flow];
        counts.messages.not_sent += 1;
        counts.messages.untaken_deliveries += deliveries;
        if let Some(parts) = &mut self.parts[flow] {
            let part = parts.due_at(intended);
            part.not_sent += 1;
            part.untaken_deliveries += deliveries;
        }
    }

    /// The messages sent in each part of the measurement, flow by flow.
    pub fn finish_parts(&mut self) -> Vec<FlowParts> {
        let left = self.cuts.bounds_left();
        let flows = self.by_bound.len();
        let mut all = vec![FlowParts::default(); flows];
        for (flow, sum) in all.iter_mut().enumerate() {
            if let Some(parts) = self.parts[flow].take() {
                sum.by = std::mem::take(&mut self.by_bound[flow]);
                sum.by.extend(std::iter::repeat_n(self.totals(flow), left));
                parts.finish(sum);
            }
        }
        all
    }

    /// The messages sent of each burst, flow by flow.
    pub fn finish_bursts(&mut self) -> Vec<Vec<BurstRecording>> {
        let bursts = self.bursts.iter_mut().map(Option::take);
        bursts
            .map(|bursts| bursts.map(Bursts::finish).unwrap_or_default())
            .collect()
    }

    /// Ends the times and gives the counts and the series.
    pub fn finish(&mut self) -> (Vec<FlowRecording>, Vec<Vec<Totals>>) {
        let record = self.cuts.record();
        for flow in 0..self.flows.len() {
            let totals = self.totals(flow);
            self.series[flow].push(totals);
            let overflowed = self.lag[flow].take().map_or(0, |lag| lag.finish(record));
            self.flows[flow].overflowed += overflowed;
        }
        (
            std::mem::take(&mut self.flows),
            std::mem::take(&mut self.series),
        )
    }
}

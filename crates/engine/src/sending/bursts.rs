//! Bursts of messages back to back, as they are sent.

use pubgauge_driver::Nanos;
use pubgauge_workload::Due;

use super::paces::STUCK_AFTER;
use super::{Sending, SendingPace};

impl Sending {
    /// Notes that a measured message of a burst is due.
    #[inline]
    pub(super) fn burst_due(&mut self, flow: u32, intended: Nanos) {
        if let Some(bursts) = &mut self.bursts[flow as usize]
            && let Some(burst) = bursts.begun_at(intended)
        {
            burst.due += 1;
        }
    }

    /// Notes that a message was taken that was handed over from `now` on.
    #[inline]
    pub(super) fn burst_taken(&mut self, local: u32, intended: Nanos, now: Nanos, due: &Due) {
        let flow = self.locals[local as usize].flow as usize;
        let Some(bursts) = &mut self.bursts[flow] else {
            return;
        };
        let stream = self.locals[local as usize].first_stream + due.topic;
        self.burst_tokens[flow] += u64::from(self.spread[stream as usize]);
        if let Some(burst) = bursts.begun_at(intended) {
            burst.taken += 1;
            burst.bytes += u64::from(due.size);
            burst.expected += u64::from(self.brief.audience.fan_out(stream));
            let since = now.saturating_sub(intended);
            burst.handed.get_or_insert((since, since));
        }
    }

    /// Notes that handing over the last message was done at `now`.
    #[inline]
    pub(super) fn burst_handed(&mut self, flow: u32, intended: Nanos, now: Nanos) {
        if let Some(bursts) = &mut self.bursts[flow as usize]
            && let Some((_, upto)) = bursts.begun_at(intended).and_then(|b| b.handed.as_mut())
        {
            *upto = now.saturating_sub(intended);
        }
    }

    /// Reports, once no message of the burst waits any more, that it is handed over; later, that the
    /// next one still waits.
    pub(super) fn burst_over(&mut self, index: usize, now: Nanos) {
        let flow = self.senders[index].flow;
        let Some(turn) = &mut self.senders[index].turn else {
            return;
        };
        match turn.over {
            None if self.waiting_deliveries[flow as usize] == 0 => {
                turn.over = Some((now, now));
                let tokens = std::mem::take(&mut self.burst_tokens[flow as usize]);
                self.bursts_sent.push((flow, tokens));
            }
            Some((since, told)) if now.saturating_sub(told) >= STUCK_AFTER => {
                turn.over = Some((since, now));
                let positions = self.positions(flow);
                self.stuck.push((now - since, positions));
            }
            _ => {}
        }
    }

    /// The next burst of a flow begins at `at`.
    pub fn begin_burst(&mut self, flow: u32, at: Nanos) {
        for sender in self.senders.iter_mut().filter(|s| s.flow == flow) {
            let (Some(turn), SendingPace::Due(ahead)) = (&mut sender.turn, &mut sender.pace) else {
                continue;
            };
            turn.burst = at;
            turn.over = None;
            if ahead.is_some() {
                sender
                    .schedule
                    .next_burst_at(at.saturating_sub(sender.origin));
                *ahead = sender.schedule.next();
            }
        }
    }
}

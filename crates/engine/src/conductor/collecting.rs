//! Collects the recordings that workers hand in at the end, and adds them up.

use std::collections::BTreeSet;

use pubgauge_driver::Nanos;

use super::collected::latency_by_record;
use super::uniting::Sums;
use super::{Conductor, assignments};
use crate::parts::windows;
use crate::record::{DrainEnd, Moment, TrialEnd, TrialRecord};
use crate::recording::{Outage, Recording};
use crate::series::{Cuts, Totals};

impl Conductor<'_> {
    /// Adds everything up.
    pub(super) fn record(mut self, outcome: TrialEnd) -> TrialRecord {
        let mut recordings: Vec<Recording> = self
            .workers
            .iter_mut()
            .filter_map(|handle| handle.recording.take())
            .collect();
        let count = self.spec.brief.workload.flows.len();
        let mut sums = Sums::add_up(&recordings, count);
        for recording in &recordings {
            self.exhausted.extend(&recording.exhausted);
        }
        let apart = std::mem::take(&mut self.apart);
        apart.settle(&self.spec.brief, &mut sums, &mut recordings);
        let Sums {
            mut flows,
            series,
            bursts,
            parts,
        } = sums;
        let unsettled: u64 = recordings.iter().map(|r| r.unsettled).sum();
        for (number, flow) in flows.iter_mut().enumerate() {
            let most = match self.drain.ended {
                DrainEnd::CutShort => u64::MAX,
                // Messages that the system never acknowledged, and may still: it stopped reading, for example.
                // Messages that were cut off with their connection are not among them.
                _ => self.deliveries(number, flow.unacknowledged.min(unsettled)),
            };
            flow.still_under_way(most);
        }
        let closed_at = recordings.iter().map(|r| r.closed_at).max();
        let (course, series) = self.moments(&series, closed_at.unwrap_or_default());
        let collected = std::mem::take(&mut self.collected);
        let phases = &self.spec.brief.workload.phases;
        let duration = self.table.map_or(0, |t| t.end.saturating_sub(t.measure));
        let windows = windows(phases, duration, &parts, &collected.by_part);
        TrialRecord {
            outcome,
            silence_of_outages: self.silence_of_outages(&recordings),
            recordings,
            flows,
            times: collected.times,
            latency_by_interval: latency_by_record(&collected.intervals),
            intervals: collected.intervals,
            series,
            course,
            bursts,
            windows,
            drain: self.drain,
            table: self.table,
            epoch: self.epoch,
            exhausted: std::mem::take(&mut self.exhausted),
            planned: self.spec.brief.workload.devices.len() as u64,
            connect_span: self.connect_span,
            prove_span: self.prove_span,
        }
    }

    /// Longest time, ns, for which nothing came to a worker while messages fell due for it to publishers that
    /// were not connected.
    fn silence_of_outages(&self, recordings: &[Recording]) -> Nanos {
        let outages: Vec<&Outage> = recordings.iter().flat_map(|r| &r.outages).collect();
        if outages.is_empty() {
            return 0;
        }
        let brief = &self.spec.brief;
        let assignments = assignments(self.spec);
        let mut longest = 0;
        for recording in recordings {
            let Some(own) = assignments.get(recording.worker as usize) else {
                continue;
            };
            let links = own.devices.iter().flat_map(|device| brief.links(*device));
            let parties: BTreeSet<u32> = links
                .filter(|link| link.subscribes)
                .map(|link| brief.audience.party_of(link.flow, link.index))
                .collect();
            let hears = |outage: &Outage| {
                let of = brief.audience.streams[outage.stream as usize];
                let publisher = &brief.workload.flows[of.flow as usize].publishers;
                let topics = publisher[of.publisher as usize].topics.len() as u32;
                parties.iter().any(|party| {
                    let party = &brief.audience.parties[*party as usize];
                    (outage.stream..outage.stream + topics).any(|s| party.is_entitled(s))
                })
            };
            for outage in &outages {
                let common = |gap: &(Nanos, Nanos)| {
                    gap.1.min(outage.to).saturating_sub(gap.0.max(outage.from))
                };
                let silence = recording.gaps.iter().map(common).max().unwrap_or(0);
                if silence > longest && hears(outage) {
                    longest = silence;
                }
            }
        }
        longest
    }

    /// Deliveries that so many messages of a flow cause at most.
    fn deliveries(&self, flow: usize, messages: u64) -> u64 {
        let brief = &self.spec.brief;
        let fan_out = |stream| u64::from(brief.audience.fan_out(stream));
        brief.streams_of(flow).map(fan_out).max().unwrap_or(0) * messages
    }

    /// The course and the series with their times. The last moment of the series is `closed_at`, when no worker
    /// counted any more. It is later than the cut before it, so that nothing is left out that came between.
    fn moments(&self, totals: &[Vec<Totals>], closed_at: Nanos) -> (Vec<Moment>, Vec<Moment>) {
        let Some(table) = self.table else {
            return Default::default();
        };
        let cuts = Cuts::new(table, &self.spec.brief.workload);
        let count = totals.iter().map(Vec::len).max().unwrap_or(0);
        let moment = |n: usize, at: Nanos| {
            let by = |totals: &Vec<Totals>| totals.get(n).or(totals.last()).copied();
            Moment {
                at: at.saturating_sub(table.measure),
                flows: totals.iter().map(|f| by(f).unwrap_or_default()).collect(),
            }
        };
        let (mut course, mut series) = (Vec::new(), Vec::new());
        let last = count.saturating_sub(1);
        let mut before = 0;
        for (n, (at, whole)) in cuts.times().take(last).enumerate() {
            if at <= table.end {
                course.push(moment(n, at));
            }
            if whole {
                series.push(moment(n, at));
            }
            before = at + 1;
        }
        if count > 0 {
            series.push(moment(last, closed_at.max(before)));
        }
        (course, series)
    }
}

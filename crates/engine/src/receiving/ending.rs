//! The end of a trial: totals of all that a worker has received.

use pubgauge_driver::{ClientId, Kind, Nanos};
use rustc_hash::FxHashMap;

use super::{FlowIn, Member, Receiving, ReceivingClient};
use crate::bursts::{BurstRecording, Bursts};
use crate::ledger::Account;
use crate::parties::PartiesRecording;
use crate::parts::FlowParts;
use crate::recording::{FlowRecording, MemberRecording, Recording, Rejections, Silence};
use crate::series::Totals;

impl Receiving {
    /// Messages that the system rejected, by flow and code: the measured ones, or the others.
    pub fn rejections(&self, measured: bool) -> Vec<Rejections> {
        let flows = (0..).zip(&self.flows);
        let of_flow = |(flow, state): (u32, &FlowIn)| {
            let all = state.rejections[usize::from(measured)].clone().into_iter();
            all.map(move |(code, messages)| Rejections {
                flow,
                code,
                messages,
            })
        };
        flows.flat_map(of_flow).collect()
    }

    /// The silences from the start of the measurement on, the longest last.
    pub fn finish_silences(&self) -> Vec<Silence> {
        self.silences.finish(self.messages_received())
    }

    /// The longest times of the measurement, which ends at `end`, for which nothing came, longest first: from
    /// and to, clock time.
    pub fn finish_gaps(&mut self, end: Nanos) -> Vec<(Nanos, Nanos)> {
        // Of slow and late subscribers alone nobody expects that something comes all the time.
        let apart = |member: &Member| self.brief.audience.parties[member.party as usize].is_apart();
        if self.parties.iter().all(apart) {
            return Vec::new();
        }
        let end = end.saturating_sub(self.epoch);
        self.note_heard();
        self.note_gap(self.heard, end.max(self.heard));
        self.gaps
            .sort_by_key(|(from, to)| std::cmp::Reverse(to - from));
        let clock = |at: Nanos| self.epoch + at;
        let gaps = self.gaps.iter().take(Recording::MOST_GAPS);
        gaps.map(|(from, to)| (clock(*from), clock(*to))).collect()
    }

    /// The deliveries to each member of a group.
    pub fn finish_shares(&mut self) -> Vec<MemberRecording> {
        std::mem::take(&mut self.shares)
    }

    /// The deliveries to each party, of which these were `missed`. To be asked before [`Receiving::finish`].
    pub fn finish_parties(&mut self, missed: &FxHashMap<u32, u64>) -> PartiesRecording {
        let mut passed_over = FxHashMap::default();
        for (account, passed) in self.ledger.passed_over() {
            if account.kind == Kind::Measured {
                *passed_over.entry(account.party).or_default() += u64::from(passed);
            }
        }
        let parties = self.parties.iter().map(|member| {
            // Of groups it is only known over all members.
            let passed = passed_over.get(&member.party).copied();
            let passed = passed.filter(|_| !member.grouped).unwrap_or(0);
            let missed = missed.get(&member.party).copied().unwrap_or(0);
            let passed = u64::saturating_sub(passed, missed);
            let party = &self.brief.audience.parties[member.party as usize];
            (member.party, party.members[0], passed)
        });
        let mut recording = std::mem::take(&mut self.party_times).finish(parties);
        let apart = |party: u32| self.brief.audience.parties[party as usize].is_apart();
        recording.of.retain(|of| !apart(of.party));
        recording.count -= (self.parties.iter())
            .filter(|member| apart(member.party))
            .count() as u64;
        recording
    }

    /// The deliveries of each burst, flow by flow.
    pub fn finish_bursts(&mut self) -> Vec<Vec<BurstRecording>> {
        let flows = self.flows.iter_mut();
        let bursts = flows.map(|flow| flow.bursts.take().map(Bursts::finish));
        bursts.map(Option::unwrap_or_default).collect()
    }

    /// Adds what has come of each part of the measurement, flow by flow, to what was sent.
    pub fn finish_parts(&mut self, sent: &mut [FlowParts]) {
        let left = self.cuts.bounds_left();
        let halves = self.flows.iter_mut().zip(&mut self.by_bound).zip(sent);
        for ((flow, by_bound), sent) in halves {
            let Some(parts) = flow.parts.take() else {
                continue;
            };
            by_bound.extend(std::iter::repeat_n(flow.totals(), left));
            crate::series::add_up(&mut sent.by, by_bound);
            parts.finish(sent);
        }
    }

    /// Ends the times, adds the counts to those of the sending half, and gives the series.
    pub fn finish(&mut self, sent: &mut [FlowRecording]) -> Vec<Vec<Totals>> {
        self.count_groups();
        for (account, unique) in self.ledger.unique() {
            if let (Kind::Measured, Some(flow)) = (account.kind, self.brief.flow_of(account.stream))
                && !self.gathered.has(account.party)
                && !(self.any_apart
                    && self.brief.audience.parties[account.party as usize].is_apart())
            {
                self.flows[flow].counts.distinct += u64::from(unique);
            }
        }
        let record = self.cuts.record();
        for ((mut flow, sent), series) in self.flows.drain(..).zip(sent).zip(&mut self.series) {
            series.push(flow.totals());
            if flow.acknowledgements().is_some() {
                let answered = sent.messages.published - sent.never_acknowledged;
                sent.unacknowledged = answered.saturating_sub(flow.settled());
            }
            if let Some(t) = flow.times.take() {
                let always = [t.latency, t.from_send].into_iter();
                let all = always.chain(t.acknowledgement).chain(t.round_trip);
                flow.counts.overflowed += all.map(|times| times.finish(record)).sum::<u64>();
            }
            sent.add(&flow.counts);
            sent.messages.refused += flow.rejected;
            sent.messages.untaken_deliveries += flow.rejected_deliveries;
            sent.messages.published -= flow.rejected;
            sent.messages.expected -= flow.rejected_deliveries;
            sent.slow.expected -= flow.rejected_slow;
            sent.warm_up_expected -= flow.warm_up_rejected_deliveries;
        }
        std::mem::take(&mut self.series)
    }

    /// Counts what members of groups have passed over, which is only known when all is over; of groups with members on
    /// other workers the conductor counts it.
    fn count_groups(&mut self) {
        let here = |member: &&Member| member.grouped && !member.apart;
        for member in self.parties.iter().filter(here) {
            let is_member =
                |client: &ReceivingClient| client.parties.iter().any(|p| p.party == member.party);
            let clients = self.clients.iter().enumerate();
            let members: Vec<ClientId> = clients
                .filter(|(_, client)| is_member(client))
                .map(|(index, _)| ClientId(index as u32))
                .collect();
            let streams = &self.brief.audience.parties[member.party as usize].streams;
            for stream in streams.iter().cloned().flatten() {
                let Some(flow) = self.brief.flow_of(stream) else {
                    continue;
                };
                let missing = |kind| {
                    let account = Account {
                        party: member.party,
                        stream,
                        kind,
                    };
                    u64::from(self.ledger.passed_over_by_all(account, &members))
                };
                let counts = &mut self.flows[flow].counts;
                counts.passed_over += missing(Kind::Measured);
                counts.warm_up_passed_over += missing(Kind::WarmUp);
            }
        }
    }
}

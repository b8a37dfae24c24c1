//! Groups with members on several workers: what their members got, over all workers.

use pubgauge_driver::Kind;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::assignment::Brief;
use crate::bursts::BurstRecording;
use crate::counts::{add_all, add_each};
use crate::groups::{DeliveryClass, Gathered, Got};
use crate::ledger::{Account, SequenceSet};
use crate::live::Live;
use crate::parts::FlowParts;
use crate::recording::{FlowRecording, Recording};
use crate::series::{Totals, add_up};

/// Sums over workers, flow by flow.
pub(super) struct Sums {
    pub(super) flows: Vec<FlowRecording>,
    pub(super) series: Vec<Vec<Totals>>,
    pub(super) bursts: Vec<Vec<BurstRecording>>,
    pub(super) parts: Vec<FlowParts>,
}

impl Sums {
    /// Adds up what workers saw of so many flows.
    pub(super) fn add_up(recordings: &[Recording], flows: usize) -> Sums {
        let mut sums = Sums {
            flows: vec![FlowRecording::default(); flows],
            series: vec![Vec::new(); flows],
            bursts: vec![Vec::new(); flows],
            parts: vec![FlowParts::default(); flows],
        };
        for recording in recordings {
            add_each(&mut sums.flows, &recording.flows, FlowRecording::add);
            add_each(&mut sums.series, &recording.series, |sum, part| {
                add_up(sum, part)
            });
            add_each(&mut sums.bursts, &recording.bursts, |sum, part| {
                add_all(sum, part, BurstRecording::add);
            });
            add_each(&mut sums.parts, &recording.parts, FlowParts::add);
        }
        sums
    }
}

/// The knowledge, while the trial runs, of groups with members on several workers.
#[derive(Default)]
pub(super) struct Apart {
    /// As indices into the audience's parties.
    parties: Vec<u32>,
    /// (party, stream) pairs that no sentinel has reached yet.
    unproven: FxHashSet<(u32, u32)>,
    /// The deliveries handed in.
    got: Gathered,
    seen: FxHashMap<Account, SequenceSet>,
    /// Deliveries of measured messages, and of those of the warm-up, that members on another worker had.
    again: [u64; 2],
    /// Bytes of `seen` for numbers that came before those below them.
    gaps: usize,
}

/// Bytes that are kept for sequence numbers that came before those below them: a bit for each number.
const MOST_GAPS: usize = 256 << 20;
/// Bytes that are kept of what groups got: a billion deliveries, where members get them in turn.
const MOST_GOT: usize = 1 << 30;

impl Apart {
    pub(super) fn new(brief: &Brief, parties: &[u32]) -> Apart {
        let mut apart = Apart {
            parties: parties.to_vec(),
            ..Apart::default()
        };
        apart.await_sentinels(brief);
        apart
    }

    /// Awaits a sentinel on each stream of each of these groups, whether or not one has come before.
    pub(super) fn await_sentinels(&mut self, brief: &Brief) {
        let streams = |party: &u32| {
            let streams = brief.audience.parties[*party as usize].streams.clone();
            let party = *party;
            let each = (0..streams.len()).flat_map(move |n| streams[n].clone());
            each.map(move |stream| (party, stream))
        };
        self.unproven = self.parties.iter().flat_map(streams).collect();
    }

    /// Sentinels have reached these (party, stream) pairs.
    pub(super) fn proven(&mut self, pairs: &[(u32, u32)]) {
        for pair in pairs {
            self.unproven.remove(pair);
        }
    }

    /// Streams that some of these groups have not heard.
    pub(super) fn unproven_streams(&self) -> impl Iterator<Item = u32> {
        self.unproven.iter().map(|(_, stream)| *stream)
    }

    /// Takes in what a worker's members got.
    ///
    /// # Errors
    /// That it would take more memory than is kept for all of them: sequence numbers far beyond those that have come, or
    /// more of them than anybody publishes.
    pub(super) fn take(&mut self, pieces: &[Got]) -> Result<(), String> {
        for got in pieces {
            let seen = self.seen.entry(got.place.account()).or_default();
            for sequence in got.sequences() {
                let before = seen.bytes();
                if self.gaps - before + seen.bytes_with(sequence) > MOST_GAPS {
                    let most = MOST_GAPS >> 20;
                    return Err(format!(
                        "the sequence numbers of what its groups got leave gaps of more than {most} MiB"
                    ));
                }
                let again = u64::from(!seen.note(sequence));
                self.gaps = self.gaps - before + seen.bytes();
                self.again[usize::from(!got.place.measured)] += again;
                self.got.add(got.place, sequence);
            }
            if self.got.bytes() > MOST_GOT {
                let most = MOST_GOT >> 20;
                return Err(format!(
                    "what groups got takes more than {most} MiB with what it hands in"
                ));
            }
        }
        Ok(())
    }

    /// Corrects what workers have counted, each for itself.
    pub(super) fn correct(&self, live: &mut Live) {
        live.unproven += self.unproven.len() as u64;
        live.repeated += self.again.iter().sum::<u64>();
    }

    /// Deliveries of measured messages that workers have counted as first ones and that members on another worker had.
    pub(super) fn repeated_deliveries(&self) -> u64 {
        self.again[0]
    }

    /// Corrects sums over workers, now that all is over: of the copies of a message that came to several workers, the
    /// first counts. Between two that came within one record of the series the order of reports decides.
    pub(super) fn settle(mut self, brief: &Brief, sums: &mut Sums, recordings: &mut [Recording]) {
        let mut pieces = self.got.take(true);
        // Stable: a member's deliveries stay in their order.
        pieces.sort_by_key(|got| (got.place.cut, got.place.bound));
        let mut united = United {
            brief,
            again: sums
                .series
                .iter()
                .map(|totals| vec![0; totals.len()])
                .collect(),
            again_at_bounds: sums
                .parts
                .iter()
                .map(|parts| vec![0; parts.by.len()])
                .collect(),
            sums,
            shares: shares(brief, recordings),
            seen: FxHashMap::default(),
            next: FxHashMap::default(),
        };
        for got in &pieces {
            got.sequences()
                .for_each(|sequence| united.deliver(&got.place, sequence));
        }
        united.take_back();
        for party in &self.parties {
            united.finish(*party);
        }
    }
}

/// First deliveries of each member, as (party, index into its members).
type Shares<'a> = FxHashMap<(u32, u32), &'a mut u64>;

fn shares<'a>(brief: &Brief, recordings: &'a mut [Recording]) -> Shares<'a> {
    let members = recordings.iter_mut().flat_map(|r| &mut r.members);
    let each = members.filter_map(|recorded| {
        let member = (recorded.flow, recorded.subscriber);
        let party = brief.audience.parties.get(recorded.party as usize)?;
        let index = party.members.iter().position(|m| *m == member)?;
        Some(((recorded.party, index as u32), &mut recorded.unique))
    });
    each.collect()
}

/// Deliveries to the members of all workers, one after the other.
struct United<'a> {
    brief: &'a Brief,
    sums: &'a mut Sums,
    shares: Shares<'a>,
    /// Flow by flow, deliveries that were no first ones, by the first totals that contain them.
    again: Vec<Vec<u64>>,
    /// Flow by flow, deliveries that were no first ones, by the first totals at bounds of windows that contain them.
    again_at_bounds: Vec<Vec<u64>>,
    seen: FxHashMap<Account, SequenceSet>,
    /// One past the highest sequence number that each member has got, by its index.
    next: FxHashMap<(Account, u32), u32>,
}

impl United<'_> {
    fn deliver(&mut self, place: &DeliveryClass, sequence: u32) {
        let account = place.account();
        let Some(flow) = self.brief.flow_of(account.stream) else {
            return;
        };
        let seen = self.seen.entry(account).or_default();
        if !seen.note(sequence) {
            self.retract_first(flow, place);
            return;
        }
        let next = self.next.entry((account, place.member)).or_default();
        let reordered = u64::from(sequence < *next);
        *next = (*next).max(sequence + 1);
        if place.measured {
            self.sums.flows[flow].messages.reordered += reordered;
            if let Some(part) = self.sums.parts[flow].of.get_mut(place.part as usize) {
                part.reordered += reordered;
            }
        }
    }

    /// Takes back a first delivery that was none.
    fn retract_first(&mut self, flow: usize, place: &DeliveryClass) {
        let counts = &mut self.sums.flows[flow];
        let parts = &mut self.sums.parts[flow];
        for (again, at) in [
            (&mut self.again[flow], place.cut),
            (&mut self.again_at_bounds[flow], place.bound),
        ] {
            if let Some(again) = again.get_mut(at as usize) {
                *again += 1;
            }
        }
        if !place.measured {
            less(&mut counts.warm_up_unique);
            return;
        }
        less(&mut counts.messages.unique);
        counts.messages.timed_again += 1;
        if let Some(part) = parts.of.get_mut(place.part as usize) {
            less(&mut part.unique);
            part.timed_again += 1;
        }
        let bursts = &mut self.sums.bursts[flow];
        let burst = place.burst.and_then(|burst| bursts.get_mut(burst as usize));
        if let Some(burst) = burst {
            less(&mut burst.unique);
        }
        if let Some(share) = self.shares.get_mut(&(place.party, place.member)) {
            less(share);
        }
    }

    /// Takes back first deliveries that were none from the totals that contain them.
    fn take_back(&mut self) {
        let parts = self.sums.parts.iter_mut().map(|parts| &mut parts.by);
        let all = self.sums.series.iter_mut().zip(&self.again);
        for (totals, again) in all.chain(parts.zip(&self.again_at_bounds)) {
            let mut so_far = 0;
            for (totals, again) in totals.iter_mut().zip(again) {
                so_far += again;
                totals.unique = totals.unique.saturating_sub(so_far);
                totals.repeated += so_far;
            }
        }
    }

    /// Counts what a group has got in all, and what its members have passed over.
    fn finish(&mut self, number: u32) {
        let party = &self.brief.audience.parties[number as usize];
        for stream in party.streams.iter().cloned().flatten() {
            let Some(flow) = self.brief.flow_of(stream) else {
                continue;
            };
            for kind in [Kind::Measured, Kind::WarmUp] {
                let account = Account {
                    party: number,
                    stream,
                    kind,
                };
                let Some(seen) = self.seen.get(&account) else {
                    continue;
                };
                let members = 0..party.members.len() as u32;
                let next = members.map(|member| self.next.get(&(account, member)).copied());
                let lowest = next.map(Option::unwrap_or_default).min();
                let missing = u64::from(seen.missing_below(lowest.unwrap_or_default()));
                let counts = &mut self.sums.flows[flow];
                if kind == Kind::Measured {
                    counts.distinct += u64::from(seen.unique());
                    counts.passed_over += missing;
                } else {
                    counts.warm_up_passed_over += missing;
                }
                if let Some(last) = self.sums.series[flow].last_mut() {
                    last.passed_over += missing;
                }
            }
        }
    }
}

/// Subtracts one; a count of 0 stays.
fn less(count: &mut u64) {
    *count = count.saturating_sub(1);
}

#[cfg(test)]
mod tests;

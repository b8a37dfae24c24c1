//! One flow's incoming side.

use std::ops::RangeInclusive;

use pubgauge_driver::{Filler, Header};

use super::bodies::Bodies;
use crate::bursts::Bursts;
use crate::histograms::Times;
use crate::parts::Parts;
use crate::recording::FlowRecording;
use crate::series::Totals;

/// One flow's incoming side.
#[derive(Default)]
pub(super) struct FlowIn {
    pub(super) counts: FlowRecording,
    pub(super) bodies: Bodies,
    pub(super) times: Option<FlowTimes>,
    /// Its bursts, where it sends such.
    pub(super) bursts: Option<Bursts>,
    /// Its messages by the windows of the measurement, where that has some.
    pub(super) parts: Option<Parts>,
    /// The bound on its messages under way, where it has one.
    pub(super) window: Option<u32>,
    /// Messages no longer under way on this worker, not yet reported.
    pub(super) done: u64,
    /// Measured messages that the driver had accepted and the system rejected, and the deliveries
    /// that were therefore expected in vain.
    pub(super) rejected: u64,
    pub(super) rejected_deliveries: u64,
    /// Likewise to slow subscribers.
    pub(super) rejected_slow: u64,
    /// Deliveries that warm-up messages were expected to cause in vain.
    pub(super) warm_up_rejected_deliveries: u64,
    /// Rejected messages by code: those that are not measured, and measured ones.
    pub(super) rejections: [Vec<(u16, u64)>; 2],
}

impl FlowIn {
    /// Notes a rejection by its code; a system uses few.
    #[cold]
    pub(super) fn note_rejection(&mut self, code: u16, measured: bool) {
        let rejections = &mut self.rejections[usize::from(measured)];
        match rejections.iter_mut().find(|(known, _)| *known == code) {
            Some((_, messages)) => *messages += 1,
            None => rejections.push((code, 1)),
        }
    }

    /// The totals of the flow so far.
    pub(super) fn totals(&self) -> Totals {
        let c = &self.counts;
        let (unique, delivered) = (
            c.messages.unique + c.warm_up_unique,
            c.messages.delivered + c.warm_up_delivered,
        );
        Totals {
            rejected: self.rejected_deliveries + self.warm_up_rejected_deliveries,
            unique,
            repeated: delivered - unique,
            passed_over: c.passed_over + c.warm_up_passed_over,
            ..Totals::default()
        }
    }

    /// Compares the body of a delivery, of one of these `sizes`, with the one that was published, and counts the outcome.
    #[inline]
    pub(super) fn compare_body(
        &mut self,
        filler: &Filler,
        header: &Header,
        payload: &[u8],
        sizes: &RangeInclusive<usize>,
    ) {
        let looked = self.bodies.look(filler, header, payload, sizes);
        self.counts.compared += 1;
        self.counts.compared_whole += u64::from(looked.whole);
        self.counts.corrupt += u64::from(!looked.sound);
    }

    /// The times to acknowledgements of measured messages, where the system acknowledges.
    pub(super) fn acknowledgements(&self) -> Option<&Times> {
        self.times.as_ref()?.acknowledgement.as_ref()
    }

    /// Measured messages that the system has acknowledged or rejected.
    pub(super) fn settled(&self) -> u64 {
        self.rejected + self.acknowledgements().map_or(0, Times::count)
    }

    /// Calls `each` with all times that are taken.
    pub(super) fn each_time(&mut self, mut each: impl FnMut(&mut Times)) {
        if let Some(times) = &mut self.times {
            let always = [&mut times.latency, &mut times.from_send];
            let sometimes = [&mut times.acknowledgement, &mut times.round_trip];
            let all = always.into_iter().chain(sometimes.into_iter().flatten());
            all.for_each(&mut each);
        }
    }
}

/// The times of one flow's deliveries.
pub(super) struct FlowTimes {
    pub(super) latency: Times,
    pub(super) from_send: Times,
    pub(super) acknowledgement: Option<Times>,
    pub(super) round_trip: Option<Times>,
}

//! The figures by which rules of verdicts decide: one entry for each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unit::Unit;

/// Declares [`Evidence`] with the unit of each figure.
macro_rules! evidence {
    ($($(#[$doc:meta])+ $name:ident: $unit:ident,)+) => {
        /// A figure by which a rule decides. Its unit is fixed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Evidence {
            $($(#[$doc])+ $name,)+
        }

        impl Evidence {
            #[cfg(test)]
            const ALL: &[Evidence] = &[$(Evidence::$name),+];

            /// Its unit.
            pub const fn unit(self) -> Unit {
                match self {
                    $(Evidence::$name => Unit::$unit,)+
                }
            }
        }
    };
}

evidence! {
    /// Messages that were due.
    Offered: Messages,
    /// Messages that the system took.
    Published: Messages,
    /// Messages that the system or its client library refused.
    Refused: Messages,
    /// Refused messages, as a share of those that were due.
    RefusedShare: Share,
    /// Messages that were taken and never acknowledged.
    Unacknowledged: Messages,
    /// Messages that were due and not handed over, as a share of all that were due.
    UnsentShare: Share,
    /// Messages that were due and not handed over although their publisher was connected.
    NotSent: Messages,
    /// Messages that were never offered to the system, because their publisher was behind.
    NotTried: Messages,
    /// Messages that fell due while their publisher was not connected.
    NotConnected: Messages,
    /// Questions that were asked.
    Asked: Messages,
    /// Questions that got no answer.
    Unanswered: Messages,
    /// Deliveries that were expected.
    Expected: Deliveries,
    /// Deliveries that came.
    Delivered: Deliveries,
    /// Deliveries that were lost.
    Lost: Deliveries,
    /// Deliveries that did not come because their subscriber was away.
    Missed: Deliveries,
    /// Deliveries that came again.
    Duplicated: Deliveries,
    /// Deliveries still under way at the end of the drain.
    UnderWay: Deliveries,
    /// Deliveries that came out of order.
    Reordered: Deliveries,
    /// Deliveries with a lower quality of service than both ends asked for.
    Lowered: Deliveries,
    /// Deliveries on another topic than their message was published on.
    Misdirected: Deliveries,
    /// Deliveries that are not of this trial, or not for that subscriber.
    Foreign: Deliveries,
    /// Deliveries with a damaged body.
    Corrupt: Deliveries,
    /// Deliveries that came before they were sent, as a share of all.
    EarlyShare: Share,
    /// A count by one who counted; who that is stands beside it.
    Counted: Count,
    /// Connections that were to be made.
    ConnectionsPlanned: Count,
    /// Connections that were made.
    ConnectionsMade: Count,
    /// Connections that were lost.
    ConnectionsLost: Count,
    /// Length of the measurement.
    Measured: Seconds,
    /// Length that the measurement would have had to have.
    Needed: Seconds,
    /// Time for which a queue grew.
    GrownFor: Seconds,
    /// Latency at the beginning of a growth.
    FirstLatency: Nanoseconds,
    /// Latency at the end of a growth.
    LastLatency: Nanoseconds,
    /// Messages that waited at the beginning of a growth.
    FirstBacklog: Messages,
    /// Messages that waited at the end of a growth.
    LastBacklog: Messages,
    /// Subscribers, or groups, behind which a queue grew.
    Behind: Count,
    /// All subscribers, or groups.
    Subscribers: Count,
    /// The delivered rate at the beginning of a change.
    FirstRate: PerSecond,
    /// The delivered rate at the end of a change.
    LastRate: PerSecond,
    /// A change of the delivered rate, as a share of it.
    ChangeShare: Share,
    /// Deviation of the delivered rate from its mean, as a share of it.
    RateVariation: Share,
    /// The difference between the halves of the measurement, as a share.
    HalvesDiffer: Share,
    /// Latency of an interval that stands out.
    Latency: Nanoseconds,
    /// Time for which nothing was delivered.
    Silence: Nanoseconds,
    /// Messages that a window of the settings allows under way for each publisher.
    Window: Messages,
    /// Share of the measurement for which publishers had no room.
    BlockedShare: Share,
    /// Usual time of an acknowledgement.
    Acknowledgement: Nanoseconds,
    /// The most messages that a window lets through.
    MostRate: PerSecond,
    /// Share of the measurement for which the busiest thread of a side ran.
    RunningShare: Share,
    /// Share of the measurement in which the busiest subscriber's application, which takes its time, was busy.
    ApplicationsBusy: Share,
    /// Share of the measurement for which the busiest thread of a side ran or waited for a processor.
    RunningAndWaiting: Share,
    /// Share of the measurement for which a side waited for a processor.
    WaitingShare: Share,
    /// Share of the measurement for which publishers waited for a processor.
    PublishersWaiting: Share,
    /// Share of the measurement for which subscribers waited for a processor.
    SubscribersWaiting: Share,
    /// Median lateness of sending, beyond what the study allows.
    SendLagMedian: Nanoseconds,
    /// The 99th percentile of the lateness of sending, beyond what the study allows.
    SendLagTail: Nanoseconds,
    /// Share of the measurement for which the client stood still.
    StalledShare: Share,
    /// The longest standstill of the client.
    LongestStall: Nanoseconds,
    /// Share of the machine's processor time that a hypervisor gave to others.
    StolenShare: Share,
    /// Processors that other programs kept busy.
    OthersCores: Cores,
    /// Share of the measurement for which system, or system and workers, waited for processors that others had.
    WaitedForOthers: Share,
    /// A time than which no single wait of a thread for a processor was longer.
    LongestWaiting: Nanoseconds,
    /// Share of its size that a client host used.
    UsedShare: Share,
    /// Share of the measurement for which a host was held to its size.
    ThrottledShare: Share,
    /// Share of a host's use that was pubgauge's own.
    OwnCostShare: Share,
    /// Share of the measurement for which a quota held back client and system.
    HeldBackShare: Share,
    /// Periods in which a quota held back.
    HeldBackPeriods: Count,
    /// Periods of a quota.
    Periods: Count,
    /// Time for which a quota held back, added up over processors.
    HeldBack: Nanoseconds,
    /// Processors that a quota allows.
    QuotaCores: Cores,
    /// Share of a link's rate that was in use.
    LinkShare: Share,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;

    /// A figure that trials have, too, means the same there.
    #[test]
    fn names_of_the_catalogue_have_its_units() {
        let mut shared = 0;
        for evidence in Evidence::ALL {
            let name = serde_json::to_value(evidence).unwrap();
            let Some(figure) = Figure::named(name.as_str().unwrap()) else {
                continue;
            };
            assert_eq!(evidence.unit(), figure.unit, "{evidence:?}");
            shared += 1;
        }
        assert!(shared > 5, "{shared}");
    }
}

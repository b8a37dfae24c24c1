//! Devices that come and go: when the connection of each ends, and when it is made again.

use serde::{Deserialize, Serialize};

use crate::draws::Draws;
use crate::units::Nanos;

/// A span of time between two bounds, ns; each draw is uniform between them, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Between {
    /// Shortest.
    pub least: Nanos,
    /// Longest, no less than that.
    pub most: Nanos,
}

impl Between {
    /// Always as long.
    pub fn exactly(span: Nanos) -> Between {
        Between {
            least: span,
            most: span,
        }
    }

    fn draw(self, draws: &mut Draws) -> Nanos {
        let width = self.most.saturating_sub(self.least);
        self.least + draws.below(width.saturating_add(1))
    }
}

/// When the devices of a flow are connected, from the beginning of the measurement on. Before it all of them are, and after
/// it those that are absent come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Whether the flow's publishers come and go.
    pub publishers: bool,
    /// Whether its subscribers do.
    pub subscribers: bool,
    /// How long a device is connected.
    pub online: Between,
    /// How long it is not.
    pub offline: Between,
    /// Devices leave for the first time spread evenly over the time for which they are connected; else all at its end.
    pub spread: bool,
    /// All devices keep to one clock: they leave together, and come back within this time, each at random. `online` and
    /// `offline` are then always as long, and this is shorter than `online`.
    pub back_within: Option<Nanos>,
    /// A device drops its connection without a word; else it says that it leaves.
    pub vanishes: bool,
}

/// One absence of a device, nanoseconds from the beginning of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// When its connection ends.
    pub from: Nanos,
    /// When it begins to connect again, later than that.
    pub to: Nanos,
}

/// The absences of one device, in their order, without end.
#[derive(Clone, Debug)]
pub struct Absences {
    presence: Presence,
    draws: Draws,
    /// How many there were.
    count: u64,
    /// The end of the last one.
    back_at: Nanos,
}

/// Sets the draws of absences apart from those of messages.
const STREAM: u64 = 0xab5e_4ce5;

impl Presence {
    /// Whether devices come and go at the same times by both, whoever they are.
    pub fn same_times(&self, other: &Presence) -> bool {
        let times = |of: &Presence| {
            (
                of.online,
                of.offline,
                of.spread,
                of.back_within,
                of.vanishes,
            )
        };
        times(self) == times(other)
    }

    /// The absences of a device under a seed.
    pub fn absences(&self, seed: u64, device: u32) -> Absences {
        Absences {
            presence: self.clone(),
            draws: Draws::new(seed, STREAM, device.into()),
            count: 0,
            back_at: 0,
        }
    }
}

impl Iterator for Absences {
    type Item = Absence;

    fn next(&mut self) -> Option<Absence> {
        let Presence {
            online,
            offline,
            spread,
            back_within,
            ..
        } = self.presence;
        let from = if back_within.is_some() {
            let cycle = online.least + offline.least;
            self.count * cycle + online.least
        } else {
            let connected = online.draw(&mut self.draws);
            match self.count {
                0 if spread => self.draws.below(connected.saturating_add(1)),
                _ => self.back_at + connected,
            }
        };
        let late = back_within.map_or(0, |most| self.draws.below(most.saturating_add(1)));
        let away = match back_within {
            Some(_) => offline.least,
            None => offline.draw(&mut self.draws),
        };
        self.count += 1;
        self.back_at = from + away.max(1) + late;
        Some(Absence {
            from,
            to: self.back_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn presence() -> Presence {
        Presence {
            publishers: true,
            subscribers: true,
            online: Between {
                least: 4 * SECOND,
                most: 6 * SECOND,
            },
            offline: Between {
                least: SECOND,
                most: 3 * SECOND,
            },
            spread: true,
            back_within: None,
            vanishes: false,
        }
    }

    #[test]
    fn spans_keep_to_their_bounds_and_use_all_of_them() {
        let (mut away, mut here) = (Vec::new(), Vec::new());
        let mut first = Vec::new();
        for device in 0..1_000 {
            let absences: Vec<Absence> = presence().absences(7, device).take(5).collect();
            first.push(absences[0].from);
            away.extend(absences.iter().map(|absence| absence.to - absence.from));
            here.extend(absences.windows(2).map(|pair| pair[1].from - pair[0].to));
            assert_eq!(
                absences,
                presence().absences(7, device).take(5).collect::<Vec<_>>()
            );
        }
        for (spans, from, to) in [(away, 1.0, 3.0), (here, 4.0, 6.0)] {
            let s = |ns: Option<&Nanos>| *ns.unwrap() as f64 / SECOND as f64;
            let (least, most) = (s(spans.iter().min()), s(spans.iter().max()));
            assert!(least >= from && least < from + 0.02, "{least}");
            assert!(most <= to && most > to - 0.02, "{most}");
        }
        let early = first.iter().filter(|at| **at < 5 * SECOND / 2).count();
        assert!((440..580).contains(&early), "{early} of 1000");
    }

    #[test]
    fn devices_that_keep_to_one_clock_leave_together_every_time() {
        let nights = Presence {
            online: Between::exactly(8 * SECOND),
            offline: Between::exactly(2 * SECOND),
            back_within: Some(SECOND),
            ..presence()
        };
        for device in 0..1_000 {
            for (night, absence) in (0..).zip(nights.absences(3, device).take(4)) {
                assert_eq!(absence.from, night * 10 * SECOND + 8 * SECOND);
                let late = absence.to - absence.from - 2 * SECOND;
                assert!(late <= SECOND, "{late}");
            }
        }
    }
}

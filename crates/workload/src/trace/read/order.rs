//! The order of the times of a file.

use crate::trace::convert::Wrong;
use crate::trace::remarks::Remarks;
use crate::trace::time;
use crate::trace::zone::Moment;

/// Refuses times out of order, unless they are to be sorted, and tells times that clocks showed twice apart by it.
pub(super) struct Order {
    sort: bool,
    last: i64,
    /// Times are those of clocks that may have been set back, and nobody says which.
    pub(super) unknown_zone: bool,
    twice: [u64; 2],
    out_of_order: u64,
    furthest: u64,
}

impl Order {
    pub(super) fn new(sort: bool) -> Self {
        Order {
            sort,
            last: i64::MIN,
            unknown_zone: false,
            twice: [0; 2],
            out_of_order: 0,
            furthest: 0,
        }
    }

    /// The time of the next reading, ns since 1970.
    pub(super) fn settle(&mut self, moment: Moment) -> Result<i64, Wrong> {
        let now = match moment {
            Moment::At(now) => now,
            Moment::Never => {
                return Err(wrong(
                    "clocks of this zone never showed this time: they were set forward".into(),
                    "give the `time-zone` of the clocks that wrote it",
                ));
            }
            Moment::Twice(..) if self.sort => {
                return Err(wrong(
                    "clocks of this zone showed this time twice, and where readings are sorted their order cannot tell which it is".into(),
                    "leave `sort` out, or take a recording whose times name their offset",
                ));
            }
            Moment::Twice(before, after) => {
                let nth = usize::from(before < self.last);
                self.twice[nth] += 1;
                [before, after][nth]
            }
        };
        if now < self.last {
            if !self.sort {
                return Err(self.backwards(now));
            }
            self.out_of_order += 1;
            self.furthest = self.furthest.max(self.last.abs_diff(now));
        }
        self.last = self.last.max(now);
        Ok(now)
    }

    fn backwards(&self, now: i64) -> Wrong {
        let message = format!(
            "time runs backwards: {} comes after {}",
            time::format_rfc3339(now),
            time::format_rfc3339(self.last)
        );
        let sort = "`sort = true` in the study's trace (`--sort` of `pubgauge trace convert`) sorts the readings";
        if self.unknown_zone {
            let hint = format!(
                "local times of clocks that were set back, at the end of summer time, need their `time-zone`, such as \
                 \"Europe/Berlin\" (`--time-zone`); of others, {sort}"
            );
            return wrong(message, &hint);
        }
        wrong(message, sort)
    }

    /// Adds what was found to the remarks about the trace.
    pub(super) fn finish(self, remarks: &mut Remarks) {
        for (sum, count) in remarks.twice.iter_mut().zip(self.twice) {
            *sum += count;
        }
        remarks.out_of_order += self.out_of_order;
        remarks.furthest_ns = remarks.furthest_ns.max(self.furthest);
    }
}

fn wrong(message: String, hint: &str) -> Wrong {
    Wrong {
        field: None,
        message,
        hint: Some(hint.into()),
    }
}

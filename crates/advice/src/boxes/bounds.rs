//! How much so many boxes carry, from searches on some numbers of them.

use crate::rank::Range;

/// A limit that a search found on so many boxes together, in times the fleet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit {
    pub boxes: u32,
    pub range: Range,
}

impl Limit {
    /// An end of its range as the share of one box, with what the other kinds of devices send.
    fn share_of_one(&self, end: f64, others: f64) -> f64 {
        (end + others) / f64::from(self.boxes)
    }
}

/// The limits of some numbers of boxes, and what follows for other numbers if the boxes are independent of each other.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// In the order of their numbers of boxes.
    limits: Vec<Limit>,
    /// Load of the kinds of devices whose rate was not searched for, in times the fleet; dealt out like the rest.
    others: f64,
}

impl Bounds {
    pub(super) fn new(mut limits: Vec<Limit>, others: f64) -> Bounds {
        limits.sort_by_key(|limit| limit.boxes);
        Bounds { limits, others }
    }

    /// The smallest number of boxes whose limit is known.
    pub(super) fn smallest(&self) -> Option<u32> {
        self.limits.first().map(|limit| limit.boxes)
    }

    /// Two numbers of boxes of which the larger carries less for each box than the smaller, and how many times as much as
    /// the smaller it carries: the boxes share something.
    pub(super) fn contradiction(&self) -> Option<(u32, u32, Range)> {
        let pairs = self.limits.iter().enumerate();
        let mut pairs =
            pairs.flat_map(|(n, few)| self.limits[n + 1..].iter().map(move |many| (few, many)));
        let of = |limit: &Limit, end: f64| limit.share_of_one(end, self.others);
        let (few, many) =
            pairs.find(|(few, many)| of(many, many.range.high) < of(few, few.range.low))?;
        let times = Range {
            low: (many.range.low + self.others) / (few.range.high + self.others),
            high: (many.range.high + self.others) / (few.range.low + self.others),
        };
        Some((few.boxes, many.boxes, times))
    }

    /// The range of a measured limit. One box carries no more beside others than alone: where all that is sent was searched
    /// for, the lower end is not above what fewer boxes, or one, are sure of.
    pub(super) fn measured(&self, limit: Limit) -> Range {
        let mut range = limit.range;
        if self.others == 0.0 {
            let fewer = self.limits.iter().filter(|of| of.boxes < limit.boxes);
            let sure = fewer.map(|of| of.share_of_one(of.range.low, 0.0) * f64::from(limit.boxes));
            range.low = sure.fold(range.low, f64::min);
        }
        range
    }

    /// The range of so many boxes that were not measured; `None` without two limits.
    ///
    /// Between two that were measured, no less for each box than the worse of both. Beyond the largest, each further box
    /// may cost as much as the searches leave open: the time that a box spends for a message grows in a line from the upper
    /// end of the smallest number of boxes to the lower end of the largest.
    pub(super) fn range(&self, boxes: u32) -> Option<Range> {
        let (first, last) = (self.limits.first()?, self.limits.last()?);
        if first.boxes == last.boxes {
            return None;
        }
        let k = f64::from(boxes);
        let below: Vec<&Limit> = self.limits.iter().filter(|of| of.boxes < boxes).collect();
        let above = self.limits.iter().find(|of| of.boxes > boxes);
        // With other kinds beside, few boxes have little left for the one whose rate was searched for.
        let nearest = if self.others == 0.0 {
            &below[..]
        } else {
            &below[below.len().saturating_sub(1)..]
        };
        let sure = nearest.iter().copied().chain(above);
        let mut low = sure
            .map(|of| of.share_of_one(of.range.low, 0.0) * k)
            .fold(f64::INFINITY, f64::min);
        if above.is_none() {
            low = low.min(self.with_sharing(first, last, k));
        }
        let all = below.into_iter().chain(above);
        let high = all
            .map(|of| of.share_of_one(of.range.high, self.others) * k - self.others)
            .fold(0.0, f64::max);
        Some(Range { low, high })
    }

    fn with_sharing(&self, first: &Limit, last: &Limit, boxes: f64) -> f64 {
        let best = first.share_of_one(first.range.high, self.others);
        let worst = last.share_of_one(last.range.low, self.others);
        if worst <= 0.0 {
            return 0.0;
        }
        let further = f64::from(last.boxes - first.boxes);
        let slope = ((1.0 / worst - 1.0 / best) / further).max(0.0);
        let each = 1.0 / (1.0 / worst + slope * (boxes - f64::from(last.boxes)));
        (each * boxes - self.others).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(limits: &[(u32, f64, f64)], others: f64) -> Bounds {
        let limit = |&(boxes, low, high): &(u32, f64, f64)| Limit {
            boxes,
            range: Range { low, high },
        };
        Bounds::new(limits.iter().map(limit).collect(), others)
    }

    #[test]
    fn between_measured_numbers_each_box_carries_what_the_worse_one_does() {
        let bounds = bounds(&[(4, 3.6, 4.0), (1, 1.0, 1.1), (2, 1.96, 2.2)], 0.0);
        assert_eq!(bounds.contradiction(), None);
        let three = bounds.range(3).expect("two limits");
        assert!(
            (three.low - 2.7).abs() < 1e-9 && (three.high - 3.3).abs() < 1e-9,
            "{three:?}"
        );
        // Two were sure of 1.96 times; four are not above what one and two are sure of.
        let two = bounds.measured(bounds.limits[1]);
        assert_eq!((two.low, two.high), (1.96, 2.2));
        let rises = self::bounds(&[(1, 1.0, 1.1), (2, 2.1, 2.2)], 0.0);
        assert_eq!(rises.measured(rises.limits[1]).low, 2.0);
    }

    #[test]
    fn beyond_the_largest_number_boxes_may_share_what_the_searches_leave_open() {
        let exact = bounds(&[(1, 1.0, 1.0), (4, 4.0, 4.0)], 0.0);
        let eight = exact.range(8).expect("two limits");
        assert!((eight.low - 8.0).abs() < 1e-9, "{eight:?}");
        let open = bounds(&[(1, 1.0, 1.1), (4, 3.6, 4.4)], 0.0);
        let eight = open.range(8).expect("two limits");
        // A box spends 1 / 1.1 alone and 1 / 0.9 of four: 1.38 of eight.
        assert!((eight.low - 8.0 / 1.380_471).abs() < 1e-3, "{eight:?}");
    }

    #[test]
    fn a_larger_number_that_carries_less_for_each_box_contradicts() {
        let capped = bounds(&[(1, 1.0, 1.1), (2, 2.0, 2.2), (4, 2.4, 2.6)], 0.0);
        let (few, many, times) = capped.contradiction().expect("they share something");
        assert_eq!((few, many), (1, 4));
        assert!(times.low > 2.1 && times.high < 2.7, "{times:?}");
        assert!(bounds(&[(2, 2.0, 2.2)], 0.0).range(3).is_none());
    }

    #[test]
    fn other_kinds_of_devices_are_dealt_out_too() {
        // A box carries 1.5 of all kinds, and the others send 1 in all: 0.5, 2 and 5 are left.
        let bounds = bounds(&[(1, 0.5, 0.5), (2, 2.0, 2.0), (4, 5.0, 5.0)], 1.0);
        assert_eq!(bounds.contradiction(), None);
        let three = bounds.range(3).expect("two limits");
        assert!(three.low <= 3.5 && three.high >= 3.5, "{three:?}");
        assert_eq!(bounds.measured(bounds.limits[2]).low, 5.0);
        let six = bounds.range(6).expect("two limits");
        assert!((six.high - 8.0).abs() < 1e-9 && six.low <= 8.0, "{six:?}");
    }
}

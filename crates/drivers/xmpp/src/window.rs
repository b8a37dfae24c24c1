//! Publish requests in flight: which tags wait for which answers.

use std::collections::VecDeque;

/// The unanswered publish requests of one client, by the number in their identifiers. Servers
/// mostly answer in order, so that this is a queue.
#[derive(Debug, Default)]
pub(crate) struct RequestWindow {
    /// Number of the first request in `tags`.
    first: u32,
    /// Tags; none where the answer has come before that of an earlier request.
    tags: VecDeque<Option<u64>>,
    open: usize,
}

impl RequestWindow {
    /// Whether there is room for one more, if `limit` are allowed. A request that is never answered
    /// keeps its place, so that the queue cannot grow behind it.
    #[inline]
    pub fn has_room(&self, limit: usize) -> bool {
        self.tags.len() < limit
    }

    /// Adds a request; returns the number for its identifier.
    #[inline]
    pub fn take(&mut self, tag: u64) -> u32 {
        let number = self.first.wrapping_add(self.tags.len() as u32);
        self.tags.push_back(Some(tag));
        self.open += 1;
        number
    }

    /// The tag of the request with this number, if it was not answered yet.
    #[inline]
    pub fn settle(&mut self, number: u32) -> Option<u64> {
        let index = number.wrapping_sub(self.first) as usize;
        let tag = self.tags.get_mut(index)?.take()?;
        self.open -= 1;
        while let Some(None) = self.tags.front() {
            self.tags.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        Some(tag)
    }

    /// Forgets all; returns how many were in flight.
    pub fn clear(&mut self) -> u64 {
        // Numbers are not used twice: a late answer must not be taken for another one's.
        self.first = self.first.wrapping_add(self.tags.len() as u32);
        self.tags.clear();
        std::mem::take(&mut self.open) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_find_their_tags() {
        let mut window = RequestWindow::default();
        let numbers: Vec<u32> = (10..13).map(|tag| window.take(tag)).collect();
        assert!(!window.has_room(3) && window.has_room(4));
        assert_eq!(window.settle(numbers[1]), Some(11));
        assert_eq!(window.settle(numbers[1]), None);
        assert!(!window.has_room(3), "the first is still under way");
        assert_eq!(window.settle(numbers[0]), Some(10));
        assert!(window.has_room(2));
        assert_eq!(window.clear(), 1);
        assert_eq!(window.settle(numbers[2]), None);
        assert_ne!(window.take(1), numbers[2]);
        assert_eq!(window.settle(77), None);
    }

    proptest! {
        #[test]
        fn each_is_settled_once(orders in proptest::collection::vec(any::<prop::sample::Index>(), 1..50)) {
            let mut window = RequestWindow { first: u32::MAX - 20, ..RequestWindow::default() };
            let mut open: Vec<(u32, u64)> = (0..orders.len() as u64).map(|tag| (window.take(tag), tag)).collect();
            for order in orders {
                let (number, tag) = open.remove(order.index(open.len()));
                prop_assert_eq!(window.settle(number), Some(tag));
                prop_assert_eq!(window.settle(number), None);
            }
            prop_assert!(window.tags.is_empty());
        }
    }
}

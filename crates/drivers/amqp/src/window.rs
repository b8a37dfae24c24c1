//! Messages that were published and not yet confirmed: numbered from 1 on each channel, answered
//! one by one or up to a number, not necessarily in order (RabbitMQ, "Publisher Confirms").

use std::collections::VecDeque;

use pubgauge_driver::Acknowledgement;

/// The server answered for a message that does not wait for an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotWaiting;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Waiting,
    /// It was returned: no queue is bound for it.
    Returned,
    Settled,
}

/// Messages without an answer.
#[derive(Debug, Default)]
pub(crate) struct ConfirmWindow {
    slots: VecDeque<(u64, Fate)>,
    /// Messages that have left the window; the first slot's number is one more.
    gone: u64,
    waiting: usize,
}

impl ConfirmWindow {
    /// Messages without an answer.
    #[inline]
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Adds the next message, with the caller's tag, and returns its number.
    #[inline]
    pub fn push(&mut self, tag: u64) -> u64 {
        self.slots.push_back((tag, Fate::Waiting));
        self.waiting += 1;
        self.gone + self.slots.len() as u64
    }

    /// The number of the message added last; 0 if there was none.
    pub fn last(&self) -> u64 {
        self.gone + self.slots.len() as u64
    }

    fn index(&self, number: u64) -> Option<usize> {
        let index = usize::try_from(number.checked_sub(self.gone + 1)?).ok()?;
        (index < self.slots.len()).then_some(index)
    }

    /// A message was returned. An answer for it still follows.
    pub fn returned(&mut self, number: u64) {
        if let Some(index) = self.index(number)
            && self.slots[index].1 == Fate::Waiting
        {
            self.slots[index].1 = Fate::Returned;
        }
    }

    /// Handles the answer to one message, or to all up to it: reports each one's tag and outcome,
    /// and returns how many they were.
    ///
    /// # Errors
    /// If none of them waits for an answer.
    pub fn settle(
        &mut self,
        number: u64,
        multiple: bool,
        taken: bool,
        mut tell: impl FnMut(u64, Acknowledgement),
    ) -> Result<u64, NotWaiting> {
        // With `multiple`, 0 stands for all (§1.8.3.13 of the reference).
        let number = match number {
            0 if multiple => self.last(),
            number => number,
        };
        let last = self.index(number).ok_or(NotWaiting)?;
        let first = if multiple { 0 } else { last };
        let mut settled = 0;
        for (tag, fate) in self.slots.range_mut(first..=last) {
            let answer = match (*fate, taken) {
                (Fate::Settled, _) => continue,
                // The protocol's nack carries no code.
                (_, false) => Acknowledgement::Rejected(0),
                (Fate::Returned, true) => Acknowledgement::NoSubscriber,
                (Fate::Waiting, true) => Acknowledgement::Taken,
            };
            *fate = Fate::Settled;
            settled += 1;
            tell(*tag, answer);
        }
        if settled == 0 {
            return Err(NotWaiting);
        }
        self.waiting -= settled;
        while let Some((_, Fate::Settled)) = self.slots.front() {
            self.slots.pop_front();
            self.gone += 1;
        }
        Ok(settled as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn answers_come_in_any_order() {
        let mut window = ConfirmWindow::default();
        let numbers: Vec<u64> = (10..15).map(|tag| window.push(tag)).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        let mut told = Vec::new();
        let mut tell = |tag, answer| told.push((tag, answer));
        window.settle(3, false, true, &mut tell).unwrap();
        window.returned(1);
        window.settle(2, true, true, &mut tell).unwrap();
        window.settle(4, false, false, &mut tell).unwrap();
        assert_eq!(window.settle(4, false, true, &mut tell), Err(NotWaiting));
        assert_eq!(window.settle(9, false, true, &mut tell), Err(NotWaiting));
        assert_eq!(
            told,
            [
                (12, Acknowledgement::Taken),
                (10, Acknowledgement::NoSubscriber),
                (11, Acknowledgement::Taken),
                (13, Acknowledgement::Rejected(0)),
            ]
        );
        assert_eq!((window.len(), window.last()), (1, 5));
        assert_eq!(window.push(15), 6);
        assert_eq!(window.settle(0, true, true, |_, _| {}), Ok(2));
        assert_eq!(window.settle(0, true, true, |_, _| {}), Err(NotWaiting));
        assert_eq!(window.push(16), 7);
    }

    proptest! {
        #[test]
        fn every_message_is_answered_once(steps in prop::collection::vec((0u8..4, 0u64..40, any::<bool>()), 1..200)) {
            let mut window = ConfirmWindow::default();
            let mut model: BTreeMap<u64, u64> = BTreeMap::new();
            let mut next_tag = 100;
            for (what, number, flag) in steps {
                if what < 2 {
                    let number = window.push(next_tag);
                    model.insert(number, next_tag);
                    next_tag += 1;
                } else {
                    let multiple = what == 3;
                    let up_to = if multiple && number == 0 { window.last() } else { number };
                    // One number answers for itself only while it waits.
                    let known = up_to <= window.last() && up_to > 0;
                    let expected: Vec<u64> = model
                        .range(..)
                        .filter(|(n, _)| **n == up_to || multiple && **n <= up_to)
                        .map(|(_, tag)| *tag)
                        .collect();
                    let mut told = Vec::new();
                    let result = window.settle(number, multiple, flag, |tag, _| told.push(tag));
                    match result {
                        Ok(n) => prop_assert_eq!(n as usize, told.len()),
                        Err(NotWaiting) => prop_assert!(told.is_empty()),
                    }
                    if known && result.is_ok() {
                        prop_assert_eq!(&told, &expected);
                    }
                    model.retain(|_, tag| !told.contains(tag));
                }
                prop_assert_eq!(window.len(), model.len());
            }
        }
    }
}

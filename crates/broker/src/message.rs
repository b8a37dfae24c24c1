//! A message the broker has to keep: queued, in flight, retained or a will.

/// A message, owned, in one piece of memory.
///
/// Messages that go straight on to connected subscribers at QoS 0, or to clean
/// sessions with room in flight, never become one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredMessage {
    /// Topic, then properties, then payload.
    data: Box<[u8]>,
    topic_len: u32,
    props_len: u32,
    /// As published.
    pub qos: u8,
    /// As published: the retain flag, for subscriptions that want it as it was.
    pub retain: bool,
    /// When it must no longer be delivered, in milliseconds of the broker's
    /// clock (MQTT 5 section 3.3.2.3.3).
    pub expires_ms: Option<u64>,
}

impl StoredMessage {
    /// Copies the parts. `props` are the properties that are passed on
    /// unchanged, encoded, without their length.
    pub(crate) fn new(
        topic: &[u8],
        props: &[u8],
        payload: &[u8],
        qos: u8,
        retain: bool,
        expires_ms: Option<u64>,
    ) -> StoredMessage {
        let mut data = Vec::with_capacity(topic.len() + props.len() + payload.len());
        data.extend_from_slice(topic);
        data.extend_from_slice(props);
        data.extend_from_slice(payload);
        StoredMessage {
            data: data.into_boxed_slice(),
            topic_len: topic.len() as u32,
            props_len: props.len() as u32,
            qos,
            retain,
            expires_ms,
        }
    }

    #[cfg(test)]
    pub(crate) fn for_test(topic: &str, payload: &[u8]) -> StoredMessage {
        StoredMessage::new(topic.as_bytes(), b"", payload, 0, false, None)
    }

    pub(crate) fn topic(&self) -> &[u8] {
        &self.data[..self.topic_len as usize]
    }

    pub(crate) fn props(&self) -> &[u8] {
        &self.data[self.topic_len as usize..][..self.props_len as usize]
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.data[(self.topic_len + self.props_len) as usize..]
    }

    /// Bytes it holds.
    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }

    /// Seconds until it expires, rounded up; never `Some(0)`: it is then
    /// expired, see [`Message::is_expired`].
    pub(crate) fn remaining_s(&self, now_ms: u64) -> Option<u32> {
        let left = self.expires_ms?.saturating_sub(now_ms);
        Some(left.div_ceil(1000).min(u64::from(u32::MAX)) as u32)
    }

    /// Whether its expiry interval has passed.
    pub(crate) fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|at| at <= now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let m = StoredMessage::new(b"a/b", b"pp", b"load", 1, true, Some(5_000));
        assert_eq!(
            (m.topic(), m.props(), m.payload()),
            (&b"a/b"[..], &b"pp"[..], &b"load"[..])
        );
        assert_eq!(m.len(), 9);
        assert_eq!(m.remaining_s(0), Some(5));
        assert_eq!(m.remaining_s(4_001), Some(1));
        assert!(!m.is_expired(4_999));
        assert!(m.is_expired(5_000));
    }
}

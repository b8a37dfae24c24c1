//! The settings that only this driver knows: `native.zeromq.*`.

use pubgauge_driver::{Resolution, Settings, spelt};
use serde_json::Value;

/// Name of the driver, and of its table under `native`.
pub(crate) const NAME: &str = "zeromq";

/// How topic and payload share a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// One frame: topic, then payload.
    SingleFrame,
    /// Two frames: the topic as an envelope, then the payload (the guide's "pub-sub message
    /// envelopes").
    Multipart,
}

/// Names of the native settings, listed in the error for an unknown name.
///
/// | name | value | default | libzmq |
/// |---|---|---|---|
/// | `io-threads` | 1 to 64 | 1 | ZMQ_IO_THREADS of each fleet's context |
/// | `send-hwm` | messages, 0: no limit | `queue-limit`, else 1000 | ZMQ_SNDHWM |
/// | `receive-hwm` | messages, 0: no limit | `queue-limit`, else 1000 | ZMQ_RCVHWM |
/// | `linger-ms` | ms | 1000 | ZMQ_LINGER of a client that disconnects in order |
/// | `send-buffer-bytes` | bytes | the system's | ZMQ_SNDBUF |
/// | `receive-buffer-bytes` | bytes | the system's | ZMQ_RCVBUF |
/// | `immediate` | true, false | false | ZMQ_IMMEDIATE |
/// | `handshake-ms` | ms, 0: no limit | 5000 | ZMQ_HANDSHAKE_IVL |
/// | `connect-timeout-ms` | ms | 5000 | the driver's own: after this a client has failed to connect |
/// | `tos` | 0 to 255 | 0 | ZMQ_TOS |
/// | `framing` | `single-frame`, `multipart` | `single-frame` | frames of a message |
/// | `plus-wildcard` | `refuse`, `filter-at-receiver` | `refuse` | none: see `+` in filters |
const NAMES: [&str; 12] = [
    "io-threads",
    "send-hwm",
    "receive-hwm",
    "linger-ms",
    "send-buffer-bytes",
    "receive-buffer-bytes",
    "immediate",
    "handshake-ms",
    "connect-timeout-ms",
    "tos",
    "framing",
    "plus-wildcard",
];

/// The native settings, each at its default or as asked for.
#[derive(Debug)]
pub(crate) struct Native {
    pub(crate) io_threads: u16,
    pub(crate) send_hwm: Option<i32>,
    pub(crate) receive_hwm: Option<i32>,
    pub(crate) linger_ms: i32,
    pub(crate) send_buffer_bytes: Option<i32>,
    pub(crate) receive_buffer_bytes: Option<i32>,
    pub(crate) immediate: bool,
    pub(crate) handshake_ms: i32,
    pub(crate) connect_timeout_ms: u32,
    pub(crate) type_of_service: Option<i32>,
    pub(crate) framing: Framing,
    pub(crate) plus_at_receiver: bool,
}

impl Default for Native {
    fn default() -> Self {
        Native {
            io_threads: 1,
            send_hwm: None,
            receive_hwm: None,
            linger_ms: 1000,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            immediate: false,
            handshake_ms: 5000,
            connect_timeout_ms: 5000,
            type_of_service: None,
            framing: Framing::SingleFrame,
            plus_at_receiver: false,
        }
    }
}

impl Native {
    /// The native settings of `settings`; what is wrong with them goes into `answer`.
    pub(crate) fn read(settings: &Settings, answer: &mut Resolution) -> Native {
        let mut native = Native::default();
        answer.natives(settings, NAME, &NAMES, |name, value| {
            native.set(name, value).map(Some)
        });
        native
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<String, String> {
        let max = i64::from(i32::MAX);
        let option = match name {
            "io-threads" => {
                self.io_threads = whole(value, 1, 64)? as u16;
                "ZMQ_IO_THREADS"
            }
            "send-hwm" => {
                self.send_hwm = Some(whole(value, 0, max)?);
                "ZMQ_SNDHWM"
            }
            "receive-hwm" => {
                self.receive_hwm = Some(whole(value, 0, max)?);
                "ZMQ_RCVHWM"
            }
            "linger-ms" => {
                self.linger_ms = whole(value, 0, max)?;
                "ZMQ_LINGER"
            }
            "send-buffer-bytes" => {
                self.send_buffer_bytes = Some(whole(value, 1, max)?);
                "ZMQ_SNDBUF"
            }
            "receive-buffer-bytes" => {
                self.receive_buffer_bytes = Some(whole(value, 1, max)?);
                "ZMQ_RCVBUF"
            }
            "immediate" => {
                self.immediate = value.as_bool().ok_or("expected true or false")?;
                "ZMQ_IMMEDIATE"
            }
            "handshake-ms" => {
                self.handshake_ms = whole(value, 0, max)?;
                "ZMQ_HANDSHAKE_IVL"
            }
            "connect-timeout-ms" => {
                self.connect_timeout_ms = whole(value, 1, max)? as u32;
                "driver: a client that is not connected by then has failed, ms"
            }
            "tos" => {
                self.type_of_service = Some(whole(value, 0, 255)?);
                "ZMQ_TOS"
            }
            "framing" => {
                self.framing = match value.as_str() {
                    Some("single-frame") => Framing::SingleFrame,
                    Some("multipart") => Framing::Multipart,
                    _ => return Err("expected \"single-frame\" or \"multipart\"".into()),
                };
                "frames of a message:"
            }
            "plus-wildcard" => {
                self.plus_at_receiver = match value.as_str() {
                    Some("refuse") => false,
                    Some("filter-at-receiver") => true,
                    _ => return Err("expected \"refuse\" or \"filter-at-receiver\"".into()),
                };
                "driver: filters with `+`:"
            }
            unknown => unreachable!("{unknown} is not in NAMES"),
        };
        Ok(format!(
            "{option} {}",
            spelt(&Some(value)).unwrap_or_default()
        ))
    }
}

fn whole(value: &Value, min: i64, max: i64) -> Result<i32, String> {
    value
        .as_i64()
        .filter(|v| (min..=max).contains(v))
        .and_then(|v| i32::try_from(v).ok())
        .ok_or_else(|| format!("expected a whole number from {min} to {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Topology, resolve};

    fn with(name: &str, value: Value) -> Settings {
        let mut settings = Settings::default();
        let table = [(name.to_owned(), value)].into();
        settings.native.insert(NAME.to_owned(), table);
        settings
    }

    fn reason(name: &str, value: Value) -> String {
        let wrong = resolve(&with(name, value), Topology::Direct).unwrap_err();
        assert_eq!(wrong.len(), 1);
        assert_eq!(wrong[0].setting, format!("native.zeromq.{name}"));
        wrong[0].reason.clone()
    }

    #[test]
    fn every_name_is_known_and_shown() {
        for name in NAMES {
            let value = match name {
                "immediate" => true.into(),
                "framing" => "multipart".into(),
                "plus-wildcard" => "filter-at-receiver".into(),
                _ => 7.into(),
            };
            let (_, mappings) = resolve(&with(name, value), Topology::Direct).unwrap();
            let row = mappings.last().unwrap();
            assert_eq!(row.setting, format!("native.zeromq.{name}"));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest() {
        assert!(reason("io-thread", 1.into()).contains("did you mean `io-threads`?"));
        assert!(reason("send_hwm", 1.into()).contains("did you mean `send-hwm`?"));
        assert!(reason("qqq", 1.into()).contains("linger-ms"));
    }

    #[test]
    fn values_out_of_range_or_of_the_wrong_type_are_refused() {
        assert!(reason("io-threads", 0.into()).contains("from 1 to 64"));
        assert!(reason("tos", 256.into()).contains("from 0 to 255"));
        assert!(reason("linger-ms", (-1).into()).contains("from 0"));
        assert!(reason("send-hwm", "many".into()).contains("whole number"));
        assert!(reason("immediate", 1.into()).contains("true or false"));
        assert!(reason("framing", "two".into()).contains("multipart"));
    }
}

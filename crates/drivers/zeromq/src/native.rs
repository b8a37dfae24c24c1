//! The settings that only this driver knows: `native.zeromq.*`.

use pubgauge_driver::NativeSettings;
use schemars::JsonSchema;
use serde::Deserialize;

/// Name of the driver, and of its table under `native`.
pub(crate) const NAME: &str = "zeromq";

pub(crate) static NATIVE: NativeSettings<ZeromqNative> = NativeSettings::for_driver(NAME);

/// How topic and payload share a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Framing {
    /// One frame: topic, then payload.
    #[default]
    SingleFrame,
    /// Two frames: the topic as an envelope, then the payload (the guide's "pub-sub message
    /// envelopes").
    Multipart,
}

/// Handling of filters with `+`, which ZeroMQ, matching prefixes only, does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlusWildcard {
    #[default]
    Refuse,
    /// Subscribe to the prefix before it, and drop at the receiver what does not match.
    FilterAtReceiver,
}

/// The native settings, each at its default or as asked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct ZeromqNative {
    /// ZMQ_IO_THREADS of each fleet's context.
    #[schemars(range(min = 1, max = 64))]
    pub(crate) io_threads: u16,
    /// ZMQ_SNDHWM, messages, 0 for no limit.
    #[schemars(range(min = 0))]
    pub(crate) send_hwm: Option<i32>,
    /// ZMQ_RCVHWM, messages, 0 for no limit.
    #[schemars(range(min = 0))]
    pub(crate) receive_hwm: Option<i32>,
    /// ZMQ_LINGER of a client that disconnects in order, ms.
    #[schemars(range(min = 0))]
    pub(crate) linger_ms: i32,
    /// ZMQ_SNDBUF, bytes.
    #[schemars(range(min = 1))]
    pub(crate) send_buffer_bytes: Option<i32>,
    /// ZMQ_RCVBUF, bytes.
    #[schemars(range(min = 1))]
    pub(crate) receive_buffer_bytes: Option<i32>,
    /// ZMQ_IMMEDIATE.
    pub(crate) immediate: bool,
    /// ZMQ_HANDSHAKE_IVL, ms, 0 for no limit.
    #[schemars(range(min = 0))]
    pub(crate) handshake_ms: i32,
    /// Driver: a client that is not connected by then has failed, ms.
    #[schemars(range(min = 1))]
    pub(crate) connect_timeout_ms: u32,
    /// ZMQ_TOS.
    #[schemars(range(min = 0, max = 255))]
    #[serde(rename = "tos")]
    pub(crate) type_of_service: Option<i32>,
    /// Frames of a message.
    pub(crate) framing: Framing,
    /// Driver: filters with `+`.
    pub(crate) plus_wildcard: PlusWildcard,
}

impl Default for ZeromqNative {
    fn default() -> Self {
        ZeromqNative {
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
            framing: Framing::default(),
            plus_wildcard: PlusWildcard::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Topology, resolve};
    use pubgauge_driver::Settings;
    use serde_json::Value;

    fn with(name: &str, value: Value) -> Settings {
        let mut settings = Settings::default();
        let table = [(name.to_owned(), value)].into();
        settings.native.insert(NAME.to_owned(), table);
        settings
    }

    #[test]
    fn every_name_is_known_and_shown() {
        let schema = NATIVE.schema();
        for name in schema["properties"].as_object().unwrap().keys() {
            let value = match name.as_str() {
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
}

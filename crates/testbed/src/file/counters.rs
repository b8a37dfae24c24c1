//! How a system's own counts of messages are read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::template::fill;

/// The counts that a system keeps itself, and where they can be read: all in one HTTP answer, or
/// as messages on topics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Counters {
    /// Address (template) that answers GET with JSON or metrics in Prometheus's text format.
    pub http: Option<String>,
    /// User name (template) for HTTP basic authentication.
    pub username: Option<String>,
    /// Password (template) for it; no secret, as [`super::Login`].
    pub password: Option<String>,
    /// A topic (template) on which the system publishes after each update of its counters. Absent:
    /// it answers a subscription to a counter with the value of that moment.
    pub update: Option<String>,
    /// Seconds after which a reading counts as failed. 5 if absent.
    pub time_out_s: f64,
    /// Messages it received from publishers.
    pub published: Option<Counter>,
    /// Messages it sent to subscribers, one for each of them.
    pub delivered: Option<Counter>,
    /// Bytes of its heap in use after a collection, the largest since it was started; over HTTP alone.
    pub heap: Option<Counter>,
    /// Bytes of memory that it limits itself to; over HTTP alone.
    pub memory_limit: Option<Counter>,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            http: None,
            username: None,
            password: None,
            update: None,
            time_out_s: 5.0,
            published: None,
            delivered: None,
            heap: None,
            memory_limit: None,
        }
    }
}

/// One count: where it stands, and what it leaves out. One of `topic`, `json` and `metric` says
/// where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Counter {
    /// The topic (template) whose messages are the count in decimal digits.
    pub topic: Option<String>,
    /// Where it stands in a JSON answer, as a JSON Pointer (RFC 6901): `/in_msgs`.
    pub json: Option<String>,
    /// The name of a metric; its time series are added up.
    pub metric: Option<String>,
    /// Only time series of the metric with these labels.
    pub labels: BTreeMap<String, String>,
    /// Messages that nobody subscribed to are left out.
    pub routed_only: bool,
    /// By capability (`reliability:exactly-once`, `last-value`): why the count is not the number
    /// of messages where the settings ask for it.
    pub not_at: BTreeMap<String, String>,
}

impl Counters {
    /// Both counts: published, delivered.
    pub fn message_counters(&self) -> [Option<&Counter>; 2] {
        [self.published.as_ref(), self.delivered.as_ref()]
    }

    /// The values that are not counted but reported as they are, by their keys: heap, limit of memory.
    pub(crate) fn reported_values(&self) -> [(&'static str, Option<&Counter>); 2] {
        let limit = ("memory-limit", self.memory_limit.as_ref());
        [("heap", self.heap.as_ref()), limit]
    }

    pub(super) fn templates(&self) -> impl Iterator<Item = &String> {
        [&self.http, &self.username, &self.password, &self.update]
            .into_iter()
            .flatten()
            .chain(
                self.message_counters()
                    .into_iter()
                    .flatten()
                    .flat_map(|c| &c.topic),
            )
    }

    /// With its placeholders replaced.
    pub(crate) fn filled(&self, values: &BTreeMap<String, String>) -> Self {
        let mut filled = self.clone();
        let fill_in = |template: &mut Option<String>| {
            if let Some(text) = template {
                *text = fill(text, values);
            }
        };
        fill_in(&mut filled.http);
        fill_in(&mut filled.username);
        fill_in(&mut filled.password);
        fill_in(&mut filled.update);
        for counter in [&mut filled.published, &mut filled.delivered] {
            counter.iter_mut().for_each(|c| fill_in(&mut c.topic));
        }
        filled
    }
}

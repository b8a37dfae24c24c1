//! How a system's own counts of messages are read.

use std::collections::BTreeMap;

use pubgauge_driver::Capability;
use serde::{Deserialize, Serialize};

use super::check::Fault;
use super::{Kind, Probe, SystemFile, spelling_hint};
use crate::counters::{Url, is_metric_name};
use crate::template::{fill, names};

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
    pub fn both(&self) -> [Option<&Counter>; 2] {
        [self.published.as_ref(), self.delivered.as_ref()]
    }

    /// All templates in it.
    pub(super) fn templates(&self) -> impl Iterator<Item = &String> {
        [&self.http, &self.username, &self.password, &self.update]
            .into_iter()
            .flatten()
            .chain(self.both().into_iter().flatten().flat_map(|c| &c.topic))
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

    /// Checks what must hold beyond the types.
    pub(super) fn validate(&self, system: &SystemFile) -> Result<(), Fault> {
        let fault = |what: String, hint: &str, near: &str| {
            Err(Fault::new(what, Some(hint.into()), Some(near.into())))
        };
        if !matches!(system.kind, Kind::Process | Kind::Builtin) {
            return fault(
                "[counters] is of use only where pubgauge starts the system: others may publish to one that runs already".into(),
                "leave it out",
                "[counters",
            );
        }
        if self.both() == [None; 2] {
            return fault(
                "[counters] names no count".into(),
                "add [counters.published] or [counters.delivered]",
                "[counters",
            );
        }
        if let Some(http) = &self.http {
            // Placeholders have no value yet; in place of a port any number will do.
            let sample = names(http).map(|name| (name.to_owned(), "1".to_owned()));
            let sample: BTreeMap<String, String> = sample.collect();
            if let Err(what) = fill(http, &sample).parse::<Url>() {
                return fault(
                    format!("`{http}` cannot be asked for counts: {what}"),
                    "http://127.0.0.1:{port}/path, with a port of run.ports",
                    http,
                );
            }
        }
        let basic = self.username.is_some() || self.password.is_some();
        if basic && (self.http.is_none() || self.username.is_none()) {
            return fault(
                "username and password in [counters] are those of http".into(),
                "add http and username, or leave them out; over topics the system's [login] is used",
                "[counters",
            );
        }
        for (counter, key) in self.both().into_iter().zip(["published", "delivered"]) {
            counter.map_or(Ok(()), |counter| self.validate_counter(key, counter))?;
        }
        if self.http.is_none() && system.ready.probe == Some(Probe::Subscribe) {
            return fault(
                "counts on topics begin at 0 when the system starts, but the probe `subscribe` publishes messages before the trial".into(),
                "probe = \"connect\"",
                "probe",
            );
        }
        if self.http.is_some() && self.update.is_some() {
            return fault(
                "update is a topic, and the counts are read over http".into(),
                "leave out one of the two",
                "update",
            );
        }
        Ok(())
    }

    fn validate_counter(&self, key: &str, counter: &Counter) -> Result<(), Fault> {
        let table = format!("counters.{key}");
        let fault = |what: String, hint: &str, near: &str| {
            Err(Fault::new(what, Some(hint.into()), Some(near.into())))
        };
        let (topic, json, metric) = (&counter.topic, &counter.json, &counter.metric);
        let over_http = match (topic, json, metric) {
            (Some(_), None, None) => false,
            (None, Some(_), None) | (None, None, Some(_)) => true,
            _ => {
                return fault(
                    format!("[{table}] does not say in one way where the count stands"),
                    "one of topic = \"TOPIC\", json = \"/POINTER\" and metric = \"NAME\"",
                    &table,
                );
            }
        };
        if over_http != self.http.is_some() {
            return fault(
                match over_http {
                    true => format!("[{table}] names a place in an answer, but nothing is asked"),
                    false => format!("[{table}] names a topic, but [counters] is read over http"),
                },
                "json and metric need http = \"http://127.0.0.1:{port}/path\" in [counters]; topic goes without it",
                &table,
            );
        }
        if let Some(pointer) = json.as_ref().filter(|pointer| !pointer.starts_with('/')) {
            return fault(
                format!("`{pointer}` is no JSON Pointer"),
                "it begins with `/`: \"/in_msgs\", \"/queues/0/count\"",
                pointer,
            );
        }
        if let Some(name) = metric.as_ref().filter(|name| !is_metric_name(name)) {
            return fault(
                format!("`{name}` is not the name of a metric"),
                "the name alone: time series are chosen with labels = { protocol = \"amqp091\" }",
                name,
            );
        }
        if metric.is_none() && !counter.labels.is_empty() {
            return fault(
                format!("[{table}] has labels without a metric"),
                "labels choose among the time series of a metric",
                "labels",
            );
        }
        for name in counter.not_at.keys() {
            let asked = |c: &Capability| !c.asks().is_empty();
            if !name.parse::<Capability>().is_ok_and(|c| asked(&c)) {
                let known: Vec<String> = (Capability::ALL.iter().filter(|c| asked(c)))
                    .map(ToString::to_string)
                    .collect();
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                return fault(
                    format!("`{name}` is the name of no capability that settings ask for"),
                    &spelling_hint(name, &known),
                    name,
                );
            }
        }
        Ok(())
    }
}

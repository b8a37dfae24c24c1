//! Rules for the counters of a system file beyond their types.

use std::collections::BTreeMap;

use pubgauge_driver::Capability;

use super::SystemFile;
use super::counters::{Counter, Counters};
use super::fault::{FileFault, refuse_if};
use super::parts::{Probe, SystemKind};
use crate::counters::{Url, is_metric_name};
use crate::spelling::spelling_hint;
use crate::template::{fill, names};

impl Counters {
    /// Checks what must hold beyond the types.
    pub(super) fn validate(&self, system: &SystemFile) -> Result<(), FileFault> {
        refuse_if(
            !matches!(system.kind, SystemKind::Process | SystemKind::Builtin),
            "[counters] is of use only where pubgauge starts the system: others may publish to one that runs already",
            "leave it out",
            "[counters",
        )?;
        refuse_if(
            self.message_counters() == [None; 2],
            "[counters] names no count",
            "add [counters.published] or [counters.delivered]",
            "[counters",
        )?;
        if let Some(http) = &self.http {
            // Placeholders have no value yet; in place of a port any number will do.
            let sample = names(http).map(|name| (name.to_owned(), "1".to_owned()));
            let sample: BTreeMap<String, String> = sample.collect();
            if let Err(what) = fill(http, &sample).parse::<Url>() {
                return Err(FileFault::new(
                    format!("`{http}` cannot be asked for counts: {what}"),
                    "http://127.0.0.1:{port}/path, with a port of run.ports",
                    http,
                ));
            }
        }
        let basic = self.username.is_some() || self.password.is_some();
        refuse_if(
            basic && (self.http.is_none() || self.username.is_none()),
            "username and password in [counters] are those of http",
            "add http and username, or leave them out; over topics the system's [login] is used",
            "[counters",
        )?;
        let counts = ["published", "delivered"]
            .into_iter()
            .zip(self.message_counters());
        for (key, counter) in counts.chain(self.reported_values()) {
            counter.map_or(Ok(()), |counter| self.validate_counter(key, counter))?;
        }
        for (key, counter) in self.reported_values() {
            let is_count =
                counter.is_some_and(|c| c.topic.is_some() || c.routed_only || !c.not_at.is_empty());
            refuse_if(
                is_count,
                format!(
                    "[counters.{key}] is a number of bytes in an answer over http, and no count"
                ),
                "json = \"/POINTER\" or metric = \"NAME\" alone",
                key,
            )?;
        }
        refuse_if(
            self.http.is_none() && system.ready.probe == Some(Probe::Subscribe),
            "counts on topics begin at 0 when the system starts, but the probe `subscribe` publishes messages before the trial",
            "probe = \"connect\"",
            "probe",
        )?;
        refuse_if(
            self.http.is_some() && self.update.is_some(),
            "update is a topic, and the counts are read over http",
            "leave out one of the two",
            "update",
        )
    }

    fn validate_counter(&self, key: &str, counter: &Counter) -> Result<(), FileFault> {
        let table = format!("counters.{key}");
        let (topic, json, metric) = (&counter.topic, &counter.json, &counter.metric);
        let over_http = match (topic, json, metric) {
            (Some(_), None, None) => false,
            (None, Some(_), None) | (None, None, Some(_)) => true,
            _ => {
                return Err(FileFault::new(
                    format!("[{table}] does not say in one way where the count stands"),
                    "one of topic = \"TOPIC\", json = \"/POINTER\" and metric = \"NAME\"",
                    &table,
                ));
            }
        };
        refuse_if(
            over_http != self.http.is_some(),
            if over_http {
                format!("[{table}] names a place in an answer, but nothing is asked")
            } else {
                format!("[{table}] names a topic, but [counters] is read over http")
            },
            "json and metric need http = \"http://127.0.0.1:{port}/path\" in [counters]; topic goes without it",
            &table,
        )?;
        if let Some(pointer) = json {
            refuse_if(
                !pointer.starts_with('/'),
                format!("`{pointer}` is no JSON Pointer"),
                "it begins with `/`: \"/in_msgs\", \"/queues/0/count\"",
                pointer,
            )?;
        }
        if let Some(name) = metric {
            refuse_if(
                !is_metric_name(name),
                format!("`{name}` is not the name of a metric"),
                "the name alone: time series are chosen with labels = { protocol = \"amqp091\" }",
                name,
            )?;
        }
        refuse_if(
            metric.is_none() && !counter.labels.is_empty(),
            format!("[{table}] has labels without a metric"),
            "labels choose among the time series of a metric",
            "labels",
        )?;
        for name in counter.not_at.keys() {
            let asked = |c: &Capability| !c.requesting_settings().is_empty();
            if !name.parse::<Capability>().is_ok_and(|c| asked(&c)) {
                return Err(FileFault::new(
                    format!("`{name}` is the name of no capability that settings ask for"),
                    spelling_hint(name, Capability::ALL.iter().filter(|c| asked(c))),
                    name,
                ));
            }
        }
        Ok(())
    }
}

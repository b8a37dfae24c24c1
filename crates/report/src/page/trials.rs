//! The table of all trials with all their figures: what everything else is made of.

use std::fmt::Write as _;

use pubgauge_results::{Distribution, Trial};

use super::{badge, escape, system_of};
use crate::summary::{Summary, percentile};
use crate::units;

type Column = (&'static str, fn(&Trial) -> String);

fn at(distribution: &Distribution, quantile: f64, value: u64) -> String {
    percentile(distribution.count, quantile, value).map_or("–".into(), units::time)
}

fn optional(distribution: &Option<Distribution>, scale: f64, quantile: f64) -> String {
    let Some(d) = distribution else {
        return "–".into();
    };
    let value = if quantile == 0.5 { d.p50 } else { d.p99 };
    percentile(d.count, quantile, value).map_or("–".into(), |ns| units::time(ns * scale))
}

const COLUMNS: [Column; 36] = [
    ("repeat", |t| t.repeat.to_string()),
    ("measured", |t| format!("{:.1} s", t.duration_s)),
    ("offered", |t| t.offered.to_string()),
    ("published", |t| t.published.to_string()),
    ("refused", |t| t.refused.to_string()),
    ("not sent", |t| t.not_sent.to_string()),
    ("expected", |t| t.expected.to_string()),
    ("delivered", |t| t.delivered.to_string()),
    ("lost", |t| t.lost.to_string()),
    ("duplicated", |t| t.duplicated.to_string()),
    ("reordered", |t| t.reordered.to_string()),
    ("negative", |t| t.odd.negative.to_string()),
    ("overflowed", |t| t.odd.overflowed.to_string()),
    ("offered/s", |t| units::rate(t.offered_msgs_per_s)),
    ("published/s", |t| units::rate(t.published_msgs_per_s)),
    ("delivered/s", |t| units::rate(t.delivered_msgs_per_s)),
    ("latency p50", |t| at(&t.latency_ns, 0.5, t.latency_ns.p50)),
    ("p99", |t| at(&t.latency_ns, 0.99, t.latency_ns.p99)),
    ("p99.9", |t| at(&t.latency_ns, 0.999, t.latency_ns.p99_9)),
    ("max", |t| at(&t.latency_ns, 0.0, t.latency_ns.max)),
    ("from send p50", |t| {
        at(&t.latency_from_send_ns, 0.5, t.latency_from_send_ns.p50)
    }),
    ("p99", |t| {
        at(&t.latency_from_send_ns, 0.99, t.latency_from_send_ns.p99)
    }),
    ("send lag p50", |t| {
        at(&t.send_lag_ns, 0.5, t.send_lag_ns.p50)
    }),
    ("p99", |t| at(&t.send_lag_ns, 0.99, t.send_lag_ns.p99)),
    ("acknowledged p50", |t| {
        optional(&t.acknowledgement_ns, 1.0, 0.5)
    }),
    ("p99", |t| optional(&t.acknowledgement_ns, 1.0, 0.99)),
    ("round trip p50", |t| optional(&t.round_trip_ns, 1.0, 0.5)),
    ("half of it", |t| optional(&t.round_trip_ns, 0.5, 0.5)),
    ("publishers CPU", |t| {
        format!("{:.2} s", t.client_cpu_s.publishers)
    }),
    ("subscribers CPU", |t| {
        format!("{:.2} s", t.client_cpu_s.subscribers)
    }),
    ("system CPU", |t| {
        t.system_cpu_s.map_or("–".into(), |s| format!("{s:.2} s"))
    }),
    ("busiest publisher ran / waited", |t| {
        share(
            t.worker_load.publishers_running,
            t.worker_load.publishers_waiting,
        )
    }),
    ("busiest subscriber ran / waited", |t| {
        share(
            t.worker_load.subscribers_running,
            t.worker_load.subscribers_waiting,
        )
    }),
    ("client memory", |t| units::bytes(t.client_rss_bytes)),
    ("system memory", |t| {
        t.system_rss_bytes.map_or("–".into(), units::bytes)
    }),
    ("noise p99", |t| at(&t.noise_ns, 0.99, t.noise_ns.p99)),
];

fn share(running: f64, waiting: f64) -> String {
    format!("{:.0} % / {:.0} %", running * 100.0, waiting * 100.0)
}

/// Writes the section.
pub(super) fn table(out: &mut String, summary: &Summary<'_>) {
    out.push_str("<section id=\"trials\"><h2>Every trial</h2>\n");
    for workload in &summary.workloads {
        let name = escape(&workload.name);
        let _ = write!(
            out,
            "<h3>{name}</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Trials of {name}\"><table>\n<thead><tr><th scope=\"col\">system</th><th scope=\"col\">verdict</th>"
        );
        for (column, _) in COLUMNS {
            let _ = write!(out, "<th scope=\"col\">{column}</th>");
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for cell in &workload.cells {
            for trial in &cell.trials {
                let _ = write!(
                    out,
                    "<tr><th scope=\"row\" title=\"{}\">{}</th><td>{}</td>",
                    escape(&system_of(trial)),
                    escape(&cell.label),
                    badge(trial.verdict.status)
                );
                for (column, figure) in COLUMNS {
                    // On paper, where no table is that wide, each figure carries its name.
                    let figure = escape(&figure(trial));
                    let _ = write!(out, "<td class=\"n\" data-name=\"{column}\">{figure}</td>");
                }
                out.push_str("</tr>\n");
            }
        }
        out.push_str("</tbody></table></div>\n");
    }
    out.push_str("</section>\n");
}

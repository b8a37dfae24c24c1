//! OpenMetrics text (version 1.0), which Prometheus and similar programs read: families of metrics, and their samples.
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>

use std::fmt::Write as _;
use std::io;

/// The media type of the text.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// Goes up and down.
    Gauge,
    /// Only grows; its samples end in `_total`.
    Counter,
    /// Quantiles, with `_count` and `_sum`.
    Summary,
    /// How many values are not above each bound, in samples that end in `_bucket`, with `_count` and `_sum`.
    Histogram,
    /// Facts as labels of a sample that is 1 and ends in `_info`.
    Info,
    /// One of several states; each has a sample that is 1 or 0.
    StateSet,
}

/// A text that is being written.
#[derive(Clone, Debug, Default)]
pub struct Text {
    text: String,
    family: String,
}

/// Labels of a sample.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

impl Text {
    /// Begins a metric family. The unit, if there is one, must be the end of the name.
    pub fn family(&mut self, name: &str, kind: MetricType, unit: &str, help: &str) {
        let kind = match kind {
            MetricType::Gauge => "gauge",
            MetricType::Counter => "counter",
            MetricType::Summary => "summary",
            MetricType::Histogram => "histogram",
            MetricType::Info => "info",
            MetricType::StateSet => "stateset",
        };
        self.family = name.to_owned();
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", escaped(help));
    }

    /// A sample of the family that was begun last: `suffix` is `_total`, `_count`, `_sum`, `_info`
    /// or nothing.
    pub fn sample(&mut self, suffix: &str, labels: Labels<'_>, more: Labels<'_>, value: f64) {
        let _ = write!(self.text, "{}{suffix}", self.family);
        let mut before = '{';
        for (name, value) in labels.iter().chain(more) {
            let _ = write!(self.text, "{before}{name}=\"{}\"", escaped(value));
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// The samples of a histogram: each bound with the number of values that are not above it, the number of all values,
    /// and their sum.
    pub fn histogram(&mut self, up_to: &[(f64, u64)], count: u64, sum: f64) {
        for (bound, below) in up_to {
            self.sample(
                "_bucket",
                &[("le", &format!("{bound:?}"))],
                &[],
                *below as f64,
            );
        }
        self.sample("_bucket", &[("le", "+Inf")], &[], count as f64);
        self.sample("_count", &[], &[], count as f64);
        self.sample("_sum", &[], &[], sum);
    }

    /// Writes the text so far to `out` and forgets it, so that a long one is not held.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn pass_on(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }

    /// Returns the whole text, with its end mark.
    pub fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

/// The value of a label, or a help text.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

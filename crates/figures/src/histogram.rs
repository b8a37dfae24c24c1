//! HdrHistogram: summaries, distribution functions, and the standard V2 interval log.
//!
//! Logs follow the HdrHistogram log format 1.3 (`HistogramLogProcessor` and the other tools of
//! the HdrHistogram family read them): one line per interval with a tag for the flow, the
//! histogram itself V2-encoded, deflated and in base64. Values are nanoseconds.

use std::borrow::Borrow;
use std::io::Read;
use std::time::Duration;

use base64::Engine as _;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, LogIteratorError, Tag,
};

use crate::distribution::{Bounds, Distribution, PercentileBounds, bounding_places, check_enough};

/// Points that [`ecdf`] returns at most unless told otherwise: enough for a smooth curve on a
/// screen 400 points wide, few enough for `results.json`.
pub const ECDF_POINTS: usize = 200;

/// Why a histogram log could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The histogram could not be encoded.
    #[error("a histogram could not be encoded: {0}")]
    Encode(String),
    /// The text is not an interval log.
    #[error("no HdrHistogram log: it stops making sense at byte {offset}")]
    Parse {
        /// Where reading failed, from the start of the text.
        offset: usize,
    },
    /// A line's histogram could not be decoded.
    #[error("damaged histogram in line {line} of the log: {why}")]
    Decode {
        /// Number of the histogram line, from 1.
        line: usize,
        /// The decoder's message.
        why: String,
    },
}

/// One histogram of a log.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Its owner, usually a flow. Characters that the format forbids (comma, space,
    /// line ends) are written as `_`.
    pub tag: Option<String>,
    /// Start of the interval, from the start of the measurement.
    pub start: Duration,
    /// Length of the interval.
    pub length: Duration,
    /// Values in nanoseconds.
    pub histogram: Histogram<u64>,
}

impl Distribution {
    /// Summarises a histogram of nanoseconds. Percentiles are the histogram's own: the highest
    /// value of the bucket that holds the rank, never above the largest value recorded.
    pub fn from_histogram(histogram: &Histogram<u64>) -> Distribution {
        Distribution::censored(histogram, 0)
    }

    /// Summarises a histogram of nanoseconds of which `censored` larger values are missing.
    pub fn censored(histogram: &Histogram<u64>, censored: u64) -> Distribution {
        Distribution::of_messages(histogram, censored, histogram.len() + censored)
    }

    /// Summarises a histogram of nanoseconds of which `censored` larger values are missing, and which are deliveries of
    /// `messages`.
    pub fn of_messages(histogram: &Histogram<u64>, censored: u64, messages: u64) -> Distribution {
        let count = histogram.len();
        let several = Some(messages).filter(|messages| *messages < count + censored);
        if count == 0 {
            return Distribution {
                censored,
                messages: several,
                ..Distribution::default()
            };
        }
        let all = count + censored;
        let independent = several.unwrap_or(all);
        let at = |quantile: f64| {
            let rank = ((quantile * all as f64).ceil() as u64).max(1);
            // With no value missing, the histogram's own rounding of the rank is kept.
            let own = match censored {
                0 => quantile,
                _ => rank as f64 / count as f64,
            };
            let known = censored == 0 || rank <= count;
            known.then(|| histogram.value_at_quantile(own).min(histogram.max()))
        };
        let whole = censored == 0;
        let bounds = |quantile: f64| {
            // The place among messages, from the largest, is the same share of all deliveries.
            let rank = |place: u64, round: fn(f64) -> f64| {
                let share = (independent - place + 1) as f64 / independent as f64;
                (round(share * all as f64 - 1e-6) as u64).clamp(1, all)
            };
            let value = |rank: u64| {
                let own = histogram.value_at_quantile(rank as f64 / count as f64);
                own.min(histogram.max())
            };
            let [lower, upper] = bounding_places(independent, quantile);
            // Of one that falls among those missing it is known that it is as large as all that came.
            let lower = lower.map(|place| rank(place, f64::floor).min(count));
            let upper = upper.map(|place| rank(place, f64::ceil));
            Bounds {
                at_least: lower.map(value),
                at_most: upper.filter(|rank| *rank <= count).map(value),
            }
        };
        Distribution {
            count,
            censored,
            messages: several,
            bounds: Some(PercentileBounds::from_quantiles(bounds)),
            min: Some(histogram.min()),
            mean: whole.then(|| histogram.mean()),
            known_mean: (!whole).then(|| histogram.mean()),
            known_p90: (!whole && check_enough(count.min(independent), 0.9).is_ok())
                .then(|| histogram.value_at_quantile(0.9).min(histogram.max())),
            p50: at(0.50),
            p90: at(0.90),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: whole.then(|| histogram.max()),
        }
    }

    /// The distribution of half of each value: (T2 - T1) / 2 of a round trip.
    pub fn halved(&self) -> Distribution {
        self.map(|time| Some(time / 2), |mean| Some(mean / 2.0))
    }

    /// A percentile that can be quoted, ns: it is known, and known what it is at most.
    /// `quantile` is 0.5, 0.9, 0.99, 0.999 or 0.9999; 1 is the largest value.
    pub fn quotable(&self, quantile: f64) -> Option<u64> {
        let value = self.percentile(quantile);
        value.filter(|_| quantile == 1.0 || self.check_count(quantile).is_ok())
    }

    /// A percentile of the messages that there were, ns, whatever it says of others: at least one value lies beyond.
    /// `quantile` as in [`Distribution::quotable`].
    pub fn counted(&self, quantile: f64) -> Option<u64> {
        let values = (self.count + self.censored) as f64;
        let is_beyond = values * (1.0 - quantile) >= 1.0 - 1e-9;
        let value = self.percentile(quantile);
        value.filter(|_| quantile == 1.0 || is_beyond)
    }

    fn percentile(&self, quantile: f64) -> Option<u64> {
        match quantile {
            0.5 => self.p50,
            0.9 => self.p90,
            0.99 => self.p99,
            0.999 => self.p99_9,
            0.9999 => self.p99_99,
            1.0 => self.max,
            _ => None,
        }
    }
}

/// Points (ns, share of values at or below it) of the distribution function, at most
/// `max_points`, spread evenly over the logarithm of the value.
///
/// Every point is exact (a bucket's upper edge and everything counted up to it), none is
/// interpolated; the last point has share 1. Empty for an empty histogram.
pub fn ecdf(histogram: &Histogram<u64>, max_points: usize) -> Vec<(u64, f64)> {
    if histogram.is_empty() || max_points == 0 {
        return Vec::new();
    }
    let total = histogram.len() as f64;
    let low = (histogram.min().max(1) as f64).ln();
    let high = (histogram.max().max(1) as f64).ln();
    // One bin each for the first and the last value, which must not be merged with others.
    let bins = max_points.saturating_sub(2).max(1) as f64;
    let bin_of = |value: u64| {
        if high <= low {
            0
        } else {
            (((value.max(1) as f64).ln() - low) / (high - low) * bins) as u64
        }
    };
    let mut points: Vec<(u64, f64)> = Vec::new();
    let mut last_bin = None;
    let mut seen = 0u64;
    for step in histogram.iter_recorded() {
        seen += step.count_since_last_iteration();
        let value = step.value_iterated_to().min(histogram.max());
        let point = (value, seen as f64 / total);
        let bin = bin_of(value);
        let full = points.len() >= max_points;
        match points.last_mut() {
            Some(last) if full || last_bin == Some(bin) => *last = point,
            _ => points.push(point),
        }
        last_bin = Some(bin);
    }
    points
}

/// Writes an interval log. `comments` become its head, one line each.
///
/// # Errors
/// [`LogError::Encode`] if a histogram cannot be encoded.
pub fn write_log(
    comments: &[&str],
    intervals: impl IntoIterator<Item = impl Borrow<Interval>>,
) -> Result<String, LogError> {
    let encode = |why: &dyn std::fmt::Display| LogError::Encode(why.to_string());
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]");
    builder.add_comment(
        "Values are nanoseconds, times are seconds from the start of the measurement.",
    );
    for comment in comments {
        builder.add_comment(comment);
    }
    {
        let mut writer = builder
            .begin_log_with(&mut text, &mut serializer)
            .map_err(|why| encode(&why))?;
        for interval in intervals {
            let interval = interval.borrow();
            let tag = interval.tag.as_deref().map(clean_tag);
            writer
                .write_histogram(
                    &interval.histogram,
                    interval.start,
                    interval.length,
                    tag.as_deref().and_then(Tag::new),
                )
                .map_err(|why| encode(&why))?;
        }
    }
    String::from_utf8(text).map_err(|why| encode(&why))
}

/// A tag as the log format allows it.
pub fn clean_tag(tag: &str) -> String {
    tag.chars()
        .map(|c| {
            if matches!(c, ',' | ' ') || c.is_control() {
                '_'
            } else {
                c
            }
        })
        .collect()
}

/// Reads an interval log back, with all intervals of a tag added up: a log has one for each record of the series and each
/// worker.
///
/// # Errors
/// [`LogError::Parse`] or [`LogError::Decode`] if the text is damaged.
pub fn read_log(text: &str) -> Result<Vec<Interval>, LogError> {
    let mut deserializer = Deserializer::new();
    let mut intervals: Vec<Interval> = Vec::new();
    let mut decoded = 0;
    let mut line = 0;
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        let entry =
            entry.map_err(|LogIteratorError::ParseError { offset }| LogError::Parse { offset })?;
        let LogEntry::Interval(interval) = entry else {
            continue;
        };
        line += 1;
        let damaged = |why: String| LogError::Decode { line, why };
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(interval.encoded_histogram())
            .map_err(|why| damaged(why.to_string()))?;
        let plain = inflated(&bytes).map_err(damaged)?;
        let takes = check(&plain).map_err(damaged)?;
        let tag = interval.tag().map(|tag| tag.as_str().to_owned());
        let known = intervals.iter().position(|known| known.tag == tag);
        if known.is_none() {
            decoded += takes;
        }
        if decoded > MOST_DECODED {
            let most = MOST_DECODED >> 20;
            return Err(damaged(format!(
                "the log's histograms take more than {most} MiB, the most that are held"
            )));
        }
        let histogram = deserializer
            .deserialize::<u64, _>(&mut plain.as_slice())
            .map_err(|why| damaged(why.to_string()))?;
        let (start, length) = (interval.start_timestamp(), interval.duration());
        if let Some(at) = known {
            let sum = &mut intervals[at];
            sum.length = sum.length.max((start + length).saturating_sub(sum.start));
            sum.histogram.auto(true);
            sum.histogram
                .add(&histogram)
                .map_err(|why| damaged(format!("{why:?}")))?;
        } else {
            intervals.push(Interval {
                tag,
                start,
                length,
                histogram,
            });
        }
    }
    Ok(intervals)
}

/// The histogram without its deflation; the decoder would believe all lengths that the bytes claim.
fn inflated(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let deflated = match bytes.split_at_checked(8) {
        Some((head, rest)) if head[..4] == COMPRESSED => rest,
        _ => return Ok(bytes.to_vec()),
    };
    let mut plain = Vec::new();
    let mut reader = ZlibDecoder::new(deflated).take(MOST_ENCODED as u64 + 1);
    reader
        .read_to_end(&mut plain)
        .map_err(|why| why.to_string())?;
    if plain.len() > MOST_ENCODED {
        Err(format!("it is longer than {MOST_ENCODED} bytes"))
    } else {
        Ok(plain)
    }
}

/// Checks what an encoded histogram says of itself, before memory is taken for it: that its values have the bounds of
/// pubgauge's own, and that its counts are there. Returns the memory that it takes, bytes.
fn check(plain: &[u8]) -> Result<usize, String> {
    let Some((head, counts)) = plain.split_at_checked(40) else {
        return Err("it is cut off".into());
    };
    let word = |at: usize| {
        head[at..]
            .first_chunk()
            .map_or(0, |b| u32::from_be_bytes(*b))
    };
    let long = |at: usize| {
        head[at..]
            .first_chunk()
            .map_or(0, |b| u64::from_be_bytes(*b))
    };
    if word(4) as usize != counts.len() {
        return Err(format!(
            "it says that its counts take {} bytes, and they take {}",
            word(4),
            counts.len()
        ));
    }
    let (digits, low, high) = (word(12), long(16), long(24));
    if digits > DIGITS || low != 1 || high > HIGHEST {
        return Err(format!(
            "its values are from {low} to {high} with {digits} digits; from 1 to {HIGHEST} with {DIGITS} are read"
        ));
    }
    Ok(MOST_COUNTS * size_of::<u64>())
}

/// How a deflated histogram begins.
const COMPRESSED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
/// Digits of pubgauge's histograms, and twice the largest time that they hold, ns: 2 h.
const DIGITS: u32 = 3;
const HIGHEST: u64 = 7_200_000_000_000;
/// Counts of a histogram of these bounds: 1,024 for each power of two from 2,048 on, and 2,048 below.
const MOST_COUNTS: usize = 34 << 10;
/// A histogram's encoded counts: each takes 9 bytes at the most.
const MOST_ENCODED: usize = 40 + 9 * MOST_COUNTS;
/// Memory for the histograms of one log, bytes: some 7,700 flows. Most of it is zeros that the system does not even bring
/// in.
const MOST_DECODED: usize = 2 << 30;

/// Adds a histogram to a sum, which grows as it has to; counts stay exact.
pub fn add_to(sum: &mut Option<Histogram<u64>>, histogram: &Histogram<u64>) {
    match sum {
        Some(sum) => sum
            .add(histogram)
            .expect("a histogram that resizes itself takes every value"),
        none => {
            none.insert(histogram.clone()).auto(true);
        }
    }
}

/// Adds histograms up; counts stay exact. `None` if there are none.
pub fn merge<'a>(
    histograms: impl IntoIterator<Item = &'a Histogram<u64>>,
) -> Option<Histogram<u64>> {
    let mut sum = None;
    (histograms.into_iter()).for_each(|histogram| add_to(&mut sum, histogram));
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut h = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        for value in values {
            h.record(*value).unwrap();
        }
        h
    }

    fn interval(tag: &str, values: &[u64]) -> Interval {
        Interval {
            tag: Some(tag.to_owned()),
            start: Duration::ZERO,
            length: Duration::from_secs(2),
            histogram: histogram(values),
        }
    }

    #[test]
    fn an_empty_histogram_is_all_zero() {
        assert_eq!(
            Distribution::from_histogram(&histogram(&[])),
            Distribution::default()
        );
        assert!(ecdf(&histogram(&[]), 10).is_empty());
    }

    #[test]
    fn summary_of_known_values() {
        let values: Vec<u64> = (1..=1000).collect();
        let d = Distribution::from_histogram(&histogram(&values));
        assert_eq!(
            (d.count, d.min, d.p50, d.p90, d.p99, d.max),
            (1000, Some(1), Some(500), Some(900), Some(990), Some(1000))
        );
        assert!((d.mean.expect("a mean") - 500.5).abs() < 0.5);
    }

    /// A thousand values of which only the 700 smallest were seen.
    #[test]
    fn missing_values_have_their_ranks() {
        let values: Vec<u64> = (1..=700).collect();
        let d = Distribution::censored(&histogram(&values), 300);
        assert_eq!((d.count, d.censored, d.p50), (700, 300, Some(500)));
        assert_eq!((d.p90, d.p99, d.mean, d.max), (None, None, None, None));
        assert_eq!((d.quotable(0.5), d.quotable(0.9)), (Some(500), None));
        let nothing = Distribution::censored(&histogram(&[]), 300);
        assert_eq!(
            (nothing.censored, nothing.p50, nothing.min),
            (300, None, None)
        );
    }

    #[test]
    fn percentiles_without_a_value_beyond_are_not_quotable() {
        let d = Distribution::from_histogram(&histogram(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]));
        assert_eq!((d.counted(0.9), d.counted(0.99)), (Some(9), None));
        assert_eq!(d.quotable(0.9), None, "all ten may lie below it");
        assert_eq!(d.quotable(1.0), Some(10));
    }

    #[test]
    fn a_log_round_trips_with_tags() {
        let written = write_log(
            &["latency"],
            &[
                interval("fleet of, meters", &[10, 2_000, 3_000_000]),
                interval("b", &[7]),
            ],
        )
        .unwrap();
        assert!(written.starts_with("#[Histogram log format version 1.3]\n"));
        // `HISTFAAA` is how every deflated V2 histogram begins in base64.
        assert!(written.contains("HISTFAAA"), "{written}");
        let read = read_log(&written).unwrap();
        assert_eq!(read[0].tag.as_deref(), Some("fleet_of__meters"));
        assert_eq!(read[0].length, Duration::from_secs(2));
        assert_eq!(read[0].histogram, histogram(&[10, 2_000, 3_000_000]));
        assert_eq!(read[1].histogram.len(), 1);
    }

    #[test]
    fn a_damaged_log_says_where() {
        let written = write_log(&[], &[interval("a", &[1, 2, 3])]).unwrap();
        let cut = &written[..written.len() - 20];
        assert!(read_log(&format!("{cut}\n")).is_err());
        assert!(matches!(read_log("rubbish\n"), Err(LogError::Parse { .. })));
    }

    /// A line of a log with this histogram, whatever it says of itself.
    fn line(head: [u64; 5], counts: &[u8], compressed: bool) -> String {
        let [cookie, length, digits, low, high] = head;
        let mut plain = Vec::new();
        for word in [cookie, length, 0, digits] {
            plain.extend((word as u32).to_be_bytes());
        }
        for long in [low, high] {
            plain.extend(long.to_be_bytes());
        }
        plain.extend(1f64.to_be_bytes());
        plain.extend(counts);
        let mut bytes = plain.clone();
        if compressed {
            let mut zipped =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
            std::io::Write::write_all(&mut zipped, &plain).unwrap();
            let zipped = zipped.finish().unwrap();
            bytes = [0x1c84_9314_u32, zipped.len() as u32]
                .iter()
                .flat_map(|word| word.to_be_bytes())
                .chain(zipped)
                .collect();
        }
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        format!("Tag=a,0.0,1.0,1.0,{text}\n")
    }

    /// A few bytes, as a length or as bounds, would have the decoder take gigabytes.
    #[test]
    fn what_a_histogram_says_of_itself_is_checked_before_memory_is_taken() {
        const V2: u64 = 0x1c84_9313;
        let fine = [V2, 1, 3, 1, 3_600_000_000_000];
        for compressed in [false, true] {
            assert_eq!(read_log(&line(fine, &[2], compressed)).unwrap().len(), 1);
            for (says, head, counts) in [
                (
                    "counts take",
                    [V2, u64::from(u32::MAX), 3, 1, 1 << 40],
                    &[2_u8][..],
                ),
                ("5 digits", [V2, 1, 5, 1, 1 << 40], &[2]),
                ("digits; from 1", [V2, 1, 3, 1, u64::MAX], &[2]),
                ("digits; from 1", [V2, 1, 3, 1 << 30, 1 << 40], &[2]),
                ("longer than", fine, &[0; 400_000]),
            ] {
                if says == "longer than" && !compressed {
                    continue;
                }
                let wrong = read_log(&line(head, counts, compressed)).unwrap_err();
                assert!(wrong.to_string().contains(says), "{says}: {wrong}");
            }
        }
        // Lines of one tag are added up, as of workers and records; of many tags each is fine, all of them are not.
        let one = line(fine, &[2], true);
        let read = read_log(&one.repeat(8_000)).unwrap();
        assert_eq!((read.len(), read[0].histogram.len()), (1, 8_000));
        let many: String = (0..8_000)
            .map(|n| one.replace("Tag=a", &format!("Tag={n}")))
            .collect();
        let wrong = read_log(&many).unwrap_err().to_string();
        assert!(wrong.contains("the most that are held"), "{wrong}");
    }

    proptest! {
        #[test]
        fn merging_adds_up_exactly(a in prop::collection::vec(1u64..1_000_000_000, 0..200),
                                   b in prop::collection::vec(1u64..1_000_000_000, 0..200)) {
            let merged = merge([&histogram(&a), &histogram(&b)]).unwrap();
            let both: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(
                Distribution::from_histogram(&merged),
                Distribution::from_histogram(&histogram(&both))
            );
        }

        #[test]
        fn ecdf_is_short_exact_and_rising(values in prop::collection::vec(1u64..3_000_000_000_000, 1..500),
                                          max_points in 2usize..250) {
            let h = histogram(&values);
            let points = ecdf(&h, max_points);
            prop_assert!(points.len() <= max_points, "{} > {}", points.len(), max_points);
            prop_assert!((points.last().unwrap().1 - 1.0).abs() < 1e-12);
            prop_assert!(points.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
            for (value, share) in &points {
                let at_or_below = values.iter().filter(|v| h.lowest_equivalent(**v) <= *value).count();
                prop_assert!((share - at_or_below as f64 / values.len() as f64).abs() < 1e-9);
            }
        }
    }
}

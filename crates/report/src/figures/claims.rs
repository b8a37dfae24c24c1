//! The figure that decides a claim: that of each side over the claim's axis, with intervals.

use pubgauge_results::claim::{ClaimOutcome, ClaimPicture};

use super::figure::{Figure, Kind, Value};
use crate::claims::unit;

/// Names of the columns, from the figure's unit.
fn columns(unit: &str) -> [&'static str; 3] {
    match unit {
        "ns" => ["value_ns", "ci_low_ns", "ci_high_ns"],
        "us" => ["value_us", "ci_low_us", "ci_high_us"],
        "s" => ["value_s", "ci_low_s", "ci_high_s"],
        "bytes" => ["value_bytes", "ci_low_bytes", "ci_high_bytes"],
        "bytes_per_s" => [
            "value_bytes_per_s",
            "ci_low_bytes_per_s",
            "ci_high_bytes_per_s",
        ],
        "msgs_per_s" => [
            "value_msgs_per_s",
            "ci_low_msgs_per_s",
            "ci_high_msgs_per_s",
        ],
        "cores" => ["value_cores", "ci_low_cores", "ci_high_cores"],
        "share" => ["value_share", "ci_low_share", "ci_high_share"],
        _ => ["value", "ci_low", "ci_high"],
    }
}

/// The figures of a claim, one for each part that has an axis. Their ids begin with `id`.
pub(crate) fn of_claim(claim: &ClaimOutcome, id: &str) -> Vec<Figure> {
    let numbered = claim.pictures.iter().zip(1..);
    let figure = |(picture, nth): (&ClaimPicture, u32)| {
        let sides = picture.sides.iter();
        let rows = sides.flat_map(|side| {
            side.points.iter().map(|point| -> Vec<Value> {
                vec![
                    side.side.as_str().into(),
                    point.at.as_str().into(),
                    point.number.into(),
                    point.value.into(),
                    point.low.into(),
                    point.high.into(),
                ]
            })
        });
        let part = match picture.part.as_str() {
            "" => String::new(),
            part => format!(" ({part})"),
        };
        Figure {
            id: format!("{id}-{nth}"),
            kind: Kind::Claim,
            wide: false,
            title: format!("{} over {}{part}", picture.figure, picture.axis),
            description: format!(
                "{}: mean over repeats with its 95 % interval, without an upper end where the client was \
                 the limit; what cannot be judged is left out.",
                claim.id
            ),
            columns: ["row", "at", "number"]
                .into_iter()
                .chain(columns(unit(&picture.figure)))
                .collect(),
            rows: rows.collect(),
            lines: Vec::new(),
            marks: Vec::new(),
        }
    };
    let mut figures: Vec<Figure> = numbered.map(figure).collect();
    figures.retain(|figure| !figure.rows.is_empty());
    figures
}

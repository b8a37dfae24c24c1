//! The figure that decides a claim: that of each side over the claim's axis, with intervals.

use pubgauge_conclusions::claims::unit;
use pubgauge_figures::claim::{ClaimOutcome, ClaimPicture};

use super::chart::{Chart, ChartKind, Value, columns};

/// The figures of a claim, one for each part that has an axis. Their ids begin with `id`.
pub(crate) fn of_claim(claim: &ClaimOutcome, id: &str) -> Vec<Chart> {
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
        let unit = unit(&picture.figure);
        let in_unit = |name: &str| match unit {
            "" => name.to_owned(),
            unit => format!("{name}_{unit}"),
        };
        let part = match picture.part.as_str() {
            "" => String::new(),
            part => format!(" ({part})"),
        };
        Chart {
            id: format!("{id}-{nth}"),
            kind: ChartKind::Claim,
            wide: false,
            title: format!("{} over {}{part}", picture.figure, picture.axis),
            description: format!(
                "{}: mean over repeats with its 95 % interval, without an upper end where the client was \
                 the limit; what cannot be judged is left out.",
                claim.id
            ),
            columns: columns(["row", "at", "number"])
                .into_iter()
                .chain(["value", "ci_low", "ci_high"].map(in_unit))
                .collect(),
            rows: rows.collect(),
            lines: Vec::new(),
            marks: Vec::new(),
        }
    };
    let mut figures: Vec<Chart> = numbered.map(figure).collect();
    figures.retain(|figure| !figure.rows.is_empty());
    figures
}

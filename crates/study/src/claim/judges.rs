//! Judges of claims, from their form in the file.

use pubgauge_figures::rule::{Bounds, Count, Judge, Steps};
use pubgauge_quantities::written::amount;

use super::figures::{number, percent, quantity};
use crate::file::{RuleFile, SlopeFile};

/// A value of a rule, or the key that is wrong, and a message.
pub(super) type At<T> = Result<T, (&'static str, String)>;

pub(super) fn judge(file: &RuleFile, figure: &str) -> At<Judge> {
    let mut found = read(file, figure).into_iter();
    match (found.next(), found.next()) {
        (Some((key, judge)), None) => judge.map_err(|message| (key, message)),
        (Some((first, _)), Some((second, _))) => {
            Err((second, format!("a rule has one judge, but both `{first}` and `{second}` are given; write two rules")))
        }
        (None, _) => Err((
            "sides",
            "a rule needs a judge: one of `value`, `ratio`, `difference`, `equal`, `count`, `rises`, `falls`, \
             `flat`, `cross`, `jump`, `slope`, `spread`, `reaches`"
                .into(),
        )),
    }
}

/// Keys of the judges that are given.
pub(super) fn given_judges(file: &RuleFile) -> Vec<&'static str> {
    let found = read(file, "").into_iter();
    found.map(|(key, _)| key).collect()
}

/// The judges that are given, each by its key.
fn read(file: &RuleFile, figure: &str) -> Vec<(&'static str, Result<Judge, String>)> {
    // A gap is a ratio.
    let unit = |text: &str| match file.gap {
        Some(true) => number(text),
        _ => quantity(figure, text),
    };
    let mut found: Vec<(&'static str, Result<Judge, String>)> = Vec::new();
    let mut given = |key, text: &Option<String>, judge: &dyn Fn(&str) -> Result<Judge, String>| {
        found.extend(text.as_deref().map(|text| (key, judge(text))));
    };
    // Of ratios with a share, of differences with a quantity.
    let steps = |text: &str, up: bool| -> Result<Steps, String> {
        let plain = !text.trim().ends_with('%');
        let read: &dyn Fn(&str) -> Result<f64, String> = if plain { &unit } else { &number };
        let middle = if plain { 0.0 } else { 1.0 };
        let usual = if up {
            Bounds::above(middle)
        } else {
            Bounds::below(middle)
        };
        let ends = file.ends.as_deref();
        Ok(Steps {
            tolerance: if plain { unit(text)? } else { percent(text)? },
            ends: ends.map_or(Ok(usual), |text| bounds(text, read))?,
            plain,
        })
    };
    given("value", &file.value, &|text| {
        bounds(text, &unit).map(Judge::Value)
    });
    given("ratio", &file.ratio, &|text| {
        bounds(text, &number).map(Judge::Ratio)
    });
    given("difference", &file.difference, &|text| {
        bounds(text, &unit).map(Judge::Difference)
    });
    given("equal", &file.equal, &|text| {
        percent(text).map(Judge::Equal)
    });
    given("count", &file.count, &count);
    given("rises", &file.rises, &|text| {
        steps(text, true).map(Judge::Rises)
    });
    given("falls", &file.falls, &|text| {
        steps(text, false).map(Judge::Falls)
    });
    given("reaches", &file.reaches, &|text| {
        percent(text).map(Judge::Reaches)
    });
    given("flat", &file.flat, &|text| percent(text).map(Judge::Flat));
    given("spread", &file.spread, &|text| {
        bounds(text, &number).map(Judge::Spread)
    });
    let pair = |[from, to]: &[String; 2]| match (amount(from), amount(to)) {
        (Some(low), Some(high)) if low < high => Ok((from.clone(), to.clone())),
        _ => Err("expected two values of the axis with numbers, the smaller one first".to_owned()),
    };
    found.extend(
        file.cross
            .as_ref()
            .map(|p| ("cross", pair(p).map(|(a, b)| Judge::Cross(a, b)))),
    );
    found.extend(
        file.jump
            .as_ref()
            .map(|p| ("jump", pair(p).map(|(a, b)| Judge::Jump(a, b)))),
    );
    found.extend(file.slope.map(|slope| {
        (
            "slope",
            Ok(Judge::Slope {
                linear: slope == SlopeFile::Linear,
            }),
        )
    }));
    found
}

/// `> 1`, `< 1ms` or `1.2..2.1`, by `read` for a number.
fn bounds(text: &str, read: &dyn Fn(&str) -> Result<f64, String>) -> Result<Bounds, String> {
    if let Some(low) = text.strip_prefix('>') {
        return read(low.trim()).map(Bounds::above);
    }
    if let Some(high) = text.strip_prefix('<') {
        return read(high.trim()).map(Bounds::below);
    }
    let Some((low, high)) = text.split_once("..") else {
        return Err(format!(
            "`{text}` is no range; expected one such as \"> 1\", \"< 1.5\" or \"1.2..2.1\""
        ));
    };
    let (low, high) = (read(low.trim())?, read(high.trim())?);
    if low < high {
        Ok(Bounds { low, high })
    } else {
        Err(format!("`{text}` is no range: the smaller end comes first"))
    }
}

fn count(text: &str) -> Result<Judge, String> {
    let wanted = || "expected \"= 0\", \"> 0\" or another whole number".to_owned();
    let whole = |text: &str| {
        text.trim()
            .parse::<u32>()
            .map(f64::from)
            .map_err(|_| wanted())
    };
    let text = text.trim();
    if let Some(number) = text.strip_prefix('=') {
        let number = whole(number)?;
        return Ok(Judge::Count(Count::Exactly(number)));
    }
    let number = whole(text.strip_prefix('>').ok_or_else(wanted)?)?;
    Ok(Judge::Count(Count::Above(number)))
}

//! Factors: settings that can be varied, and the values that they can have.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// Levels of a range that one factor at a time tries beside the default.
const LADDER: usize = 4;
/// How near to the default a level of the ladder is left out, as a share of the range.
const NEAR: f64 = 0.08;

/// A setting that can be varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// Its name: a neutral setting, `native.DRIVER.NAME` or `options.SYSTEM.NAME`.
    pub name: String,
    pub levels: Levels,
}

/// The values of a factor beside the one that it has where nothing is said.
#[derive(Clone, Debug, PartialEq)]
pub enum Levels {
    /// These, without an order.
    Choices(Vec<Value>),
    /// Numbers of a range.
    Range {
        /// The smallest; above 0 on a logarithmic scale.
        from: f64,
        /// The largest, above `from`.
        to: f64,
        /// Whether it is divided by equal ratios, else by equal differences.
        is_logarithmic: bool,
        /// Whether all are whole numbers.
        whole: bool,
        /// The value that it has where nothing is said, within the range.
        default: f64,
    },
}

/// A value of each factor, in their order; `None`: as it comes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point(pub Vec<Option<Value>>);

impl Point {
    /// All factors as they come.
    pub fn default_of(factors: &[Factor]) -> Point {
        Point(vec![None; factors.len()])
    }

    /// Whether all factors are as they come.
    pub fn is_default(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The point with another value of one factor.
    pub fn with_value(&self, nth: usize, value: Option<Value>) -> Point {
        let mut point = self.clone();
        point.0[nth] = value;
        point
    }

    /// The factors that are not as they come, with their values as they are written.
    pub fn named<'p>(
        &'p self,
        factors: &'p [Factor],
    ) -> impl Iterator<Item = (&'p str, String)> + 'p {
        let all = factors.iter().zip(&self.0);
        all.filter_map(|(factor, value)| Some((factor.name.as_str(), written(value.as_ref()?))))
    }

    /// The point of named values, as [`Point::named`] has them; `None` if a name is no factor's.
    pub fn from_named<'n>(
        factors: &[Factor],
        named: impl Iterator<Item = (&'n str, &'n str)>,
    ) -> Option<Point> {
        let mut point = Point::default_of(factors);
        for (name, text) in named {
            let nth = factors.iter().position(|factor| factor.name == name)?;
            point.0[nth] = Some(factors[nth].levels.read(text));
        }
        Some(point)
    }
}

/// A value as it is written: a text without quotes, all else as JSON.
pub fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Levels {
    /// The values that one factor at a time tries, in lists that each lead away from the default: where one of a list is
    /// hopeless, so are those behind it.
    pub(crate) fn ladders(&self) -> Vec<Vec<Value>> {
        match self {
            Levels::Choices(values) => values.iter().map(|value| vec![value.clone()]).collect(),
            Levels::Range { default, .. } => {
                let middle = self.place_of(*default);
                let steps = (0..LADDER).map(|nth| nth as f64 / (LADDER - 1) as f64);
                let far = steps.filter(|place| (place - middle).abs() > NEAR);
                let (below, above): (Vec<f64>, Vec<f64>) = far.partition(|place| *place < middle);
                let values = |places: Vec<f64>| {
                    let mut values: Vec<Value> = places
                        .into_iter()
                        .map(|place| self.value_at(place))
                        .collect();
                    values.dedup();
                    values
                };
                let sides = [below.into_iter().rev().collect(), above].map(values);
                sides.into_iter().filter(|side| !side.is_empty()).collect()
            }
        }
    }

    /// A value from its text, as [`written`] has it.
    fn read(&self, text: &str) -> Value {
        let known = match self {
            Levels::Choices(values) => values.iter().find(|value| written(value) == text),
            Levels::Range { .. } => None,
        };
        let read = || serde_json::from_str(text).unwrap_or_else(|_| text.into());
        known.cloned().unwrap_or_else(read)
    }

    /// How many values one factor at a time tries.
    pub fn count_alone(&self) -> usize {
        self.ladders().iter().map(Vec::len).sum()
    }

    /// The smallest and the largest value of a range.
    pub fn range_ends(&self) -> Vec<Value> {
        match self {
            Levels::Choices(_) => Vec::new(),
            Levels::Range { .. } => vec![self.value_at(0.0), self.value_at(1.0)],
        }
    }

    /// A value that somebody else names, as it is written here; `None` if it is not one of these.
    pub fn accept(&self, value: &Value) -> Option<Value> {
        match self {
            Levels::Choices(values) => values.contains(value).then(|| value.clone()),
            Levels::Range {
                from, to, whole, ..
            } => {
                let number = value
                    .as_f64()
                    .filter(|number| (*from..=*to).contains(number))?;
                match (*whole, number.fract() == 0.0) {
                    (true, false) => None,
                    (true, true) => Some(Value::from(number as i64)),
                    (false, _) => Number::from_f64(number).map(Value::Number),
                }
            }
        }
    }

    /// How many values it has, if they can be counted.
    pub(crate) fn count(&self) -> Option<usize> {
        match self {
            Levels::Choices(values) => Some(values.len() + 1),
            Levels::Range { .. } => None,
        }
    }

    /// Where a number is in its range, 0 to 1.
    fn place_of(&self, number: f64) -> f64 {
        match *self {
            Levels::Choices(_) => 0.0,
            Levels::Range {
                from,
                to,
                is_logarithmic,
                ..
            } => {
                let place = if is_logarithmic {
                    (number / from).ln() / (to / from).ln()
                } else {
                    (number - from) / (to - from)
                };
                place.clamp(0.0, 1.0)
            }
        }
    }

    /// The value at a place of the range, 0 to 1, with two digits that count.
    fn value_at(&self, place: f64) -> Value {
        let Levels::Range {
            from,
            to,
            is_logarithmic,
            whole,
            ..
        } = *self
        else {
            return Value::Null;
        };
        let exact = if is_logarithmic {
            from * (to / from).powf(place)
        } else {
            from + (to - from) * place
        };
        let rounded = if exact == 0.0 {
            0.0
        } else {
            let unit = 10f64.powi(exact.abs().log10().floor() as i32 - 1);
            (exact / unit).round() * unit
        };
        let number = if whole { rounded.round() } else { rounded }.clamp(from, to);
        if whole {
            Value::from(number as i64)
        } else {
            // Without the last binary digits of a product.
            let short: f64 = format!("{number:.6}").parse().unwrap_or(number);
            Number::from_f64(short).map_or(Value::Null, Value::Number)
        }
    }

    /// Where a value is for the estimator: an index, or a place.
    pub(crate) fn coordinate(&self, value: Option<&Value>) -> f64 {
        match self {
            Levels::Choices(values) => {
                let at = values.iter().position(|one| Some(one) == value);
                at.map_or(0.5, |at| at as f64 + 1.5)
            }
            Levels::Range { default, .. } => {
                let number = value.and_then(Value::as_f64).unwrap_or(*default);
                self.place_of(number)
            }
        }
    }

    /// The value at a coordinate.
    pub(crate) fn at_coordinate(&self, coordinate: f64) -> Option<Value> {
        match self {
            Levels::Choices(values) => match coordinate as usize {
                0 => None,
                nth => values.get(nth - 1).cloned(),
            },
            Levels::Range { default, .. } => {
                let value = self.value_at(coordinate.clamp(0.0, 1.0));
                (value.as_f64() != Some(*default)).then_some(value)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn points_are_read_as_they_are_written() {
        let choices = [
            json!("4"),
            json!(4),
            json!(true),
            json!("a, b"),
            json!({ "bytes": 1 }),
        ];
        let factors = vec![
            Factor {
                name: "options.x-1.2.a".to_owned(),
                levels: Levels::Choices(choices[..1].to_vec()),
            },
            Factor {
                name: "b".to_owned(),
                levels: Levels::Choices(choices[1..].to_vec()),
            },
        ];
        for value in &choices[1..] {
            let point = Point(vec![Some(json!("4")), Some(value.clone())]);
            let named: Vec<(&str, String)> = point.named(&factors).collect();
            let read = Point::from_named(&factors, named.iter().map(|(n, v)| (*n, v.as_str())));
            assert_eq!(read, Some(point));
        }
        assert_eq!(Point::from_named(&factors, [("c", "1")].into_iter()), None);
    }

    #[test]
    fn ladders_lead_away_from_the_default() {
        let levels = Levels::Range {
            from: 1.0,
            to: 1000.0,
            is_logarithmic: true,
            whole: true,
            default: 20.0,
        };
        assert_eq!(
            levels.ladders(),
            [vec![json!(10), json!(1)], vec![json!(100), json!(1000)]]
        );
        assert_eq!(levels.at_coordinate(levels.coordinate(None)), None);
        assert_eq!(levels.accept(&json!(30.0)), Some(json!(30)));
        assert_eq!(levels.accept(&json!(0)), None);
        assert_eq!(levels.accept(&json!(1.5)), None);
    }
}

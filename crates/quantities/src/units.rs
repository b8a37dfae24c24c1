//! Quantities that are a whole number of their smallest unit: sizes, lengths of time, rates of links.

use std::fmt;
use std::str::FromStr;

use crate::quoted::{UnitError, as_string, number};
use crate::spelling::{nearest, suggestion};

/// A number of bytes, such as `64B`, `1kB` or `1KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A length of time, in nanoseconds, such as `100ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub u64);

/// Rate of a link, in bits per second, such as `95Mbit/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitRate(pub u64);

/// One kind of quantity: its units, and the words of its errors.
pub(crate) struct Units {
    /// `size`, as in "is not a size".
    noun: &'static str,
    /// `size`, as in "is not a unit of size".
    unit_of: &'static str,
    /// Names with their sizes in the smallest unit, ascending.
    units: &'static [(&'static str, u64)],
    /// The unit that is suggested to who gives none.
    usual: &'static str,
    /// Units with other names that people write for them.
    also: &'static [(&'static str, &'static [&'static str])],
    /// The expected form.
    example: &'static str,
    /// The error of a number that is too large.
    too_large: &'static str,
    /// How 0 is written.
    zero: &'static str,
}

pub(crate) const SIZES: Units = Units {
    noun: "size",
    unit_of: "size",
    units: &[
        ("B", 1),
        ("KB", 1_000),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    usual: "B",
    also: &[],
    example: "a size is a number with its unit: B, kB (1000 B), KiB (1024 B), MB, MiB, GB or GiB, \
              such as \"64B\" or \"1KiB\"",
    too_large: "is more than any message can have",
    zero: "0B",
};

pub(crate) const SPANS: Units = Units {
    noun: "duration",
    unit_of: "time",
    units: &[
        ("ns", 1),
        ("µs", 1_000),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    usual: "s",
    also: &[
        ("min", &["m", "minutes", "minute", "mins"]),
        ("s", &["sec", "secs", "second", "seconds", "S"]),
        ("h", &["hour", "hours", "hr"]),
        ("ms", &["msec", "millis", "MS"]),
    ],
    example: "a duration is a number with its unit: ns, us, ms, s, min or h, such as \"100ms\" or \
              \"10s\"",
    too_large: "is longer than 290 years",
    zero: "0s",
};

pub(crate) const BIT_RATES: Units = Units {
    noun: "rate of bits",
    unit_of: "rates of bits",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
    ],
    usual: "Mbit/s",
    also: &[],
    example: "expected a number with its unit: bit/s, kbit/s, Mbit/s or Gbit/s, such as \"95Mbit/s\"",
    too_large: "is faster than any link",
    zero: "0bit/s",
};

impl Units {
    /// The unit with this name, in the smallest unit.
    pub(crate) fn find(&self, name: &str) -> Option<u64> {
        let unit = self.units.iter().find(|(unit, _)| *unit == name);
        unit.map(|(_, size)| *size)
    }

    /// Reads a quantity: its number, and its unit in the smallest one.
    fn read(&self, text: &str) -> Result<(f64, u64), UnitError> {
        let Units { noun, example, .. } = self;
        let Some((value, unit)) = number(text) else {
            return Err(UnitError(format!("`{text}` is not a {noun}; {example}")));
        };
        if unit.is_empty() {
            let usual = self.usual;
            return Err(UnitError(format!(
                "`{text}` lacks its unit; did you mean \"{text}{usual}\"? ({example})"
            )));
        }
        match self.find(unit) {
            Some(size) => Ok((value, size)),
            None => Err(UnitError(format!(
                "`{unit}` is not a unit of {}{}; {example}",
                self.unit_of,
                suggestion(self.meant(unit))
            ))),
        }
    }

    /// The unit that was meant by a name that none has.
    fn meant(&self, name: &str) -> Option<&'static str> {
        let known = self.also.iter().find(|(_, names)| names.contains(&name));
        let near = || nearest(name, self.units.iter().map(|(unit, _)| *unit));
        known.map(|(unit, _)| *unit).or_else(near)
    }

    /// The quantity in the smallest unit, exact where it is a whole number of it.
    fn whole_units(&self, text: &str, value: f64, size: u64) -> Result<u64, UnitError> {
        let exact = value * size as f64;
        if exact.is_finite() && exact < 9e18 {
            Ok(exact.round() as u64)
        } else {
            Err(UnitError(format!("`{text}` {}", self.too_large)))
        }
    }

    /// Writes a quantity in the last of its units in which it is whole.
    fn write(&self, f: &mut fmt::Formatter<'_>, quantity: u64) -> fmt::Result {
        let whole = |(_, size): &&(&str, u64)| quantity > 0 && quantity.is_multiple_of(*size);
        match self.units.iter().rev().find(whole) {
            Some((name, size)) => write!(f, "{}{name}", quantity / size),
            None => f.write_str(self.zero),
        }
    }
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let (value, size) = SIZES.read(text)?;
        let bytes = value * size as f64;
        // A number with decimals has no exact binary form: 2.01 kB is 2009.9999999999998.
        if (bytes - bytes.round()).abs() > 1e-6 {
            return Err(UnitError(format!(
                "`{text}` is not a whole number of bytes"
            )));
        }
        SIZES.whole_units(text, value, size).map(Size)
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let (value, size) = SPANS.read(text)?;
        SPANS.whole_units(text, value, size).map(Span)
    }
}

impl FromStr for BitRate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let (value, size) = BIT_RATES.read(text)?;
        BIT_RATES.whole_units(text, value, size).map(BitRate)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SIZES.write(f, self.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SPANS.write(f, self.0)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        BIT_RATES.write(f, self.0)
    }
}

as_string!(
    Size,
    "a size in quotes, such as \"64B\" or \"1KiB\"",
    "A number of bytes with its unit: B, kB (1000 B), KiB (1024 B), MB, MiB, GB, GiB.",
    r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)\s*$"
);
as_string!(
    Span,
    "a duration in quotes, such as \"100ms\" or \"10s\"",
    "A length of time with its unit: ns, us, ms, s, min, h.",
    r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*(ns|us|µs|ms|s|min|h)\s*$"
);
as_string!(
    BitRate,
    "a rate of bits in quotes, such as \"95Mbit/s\"",
    "Bits per second with the unit: bit/s, kbit/s, Mbit/s, Gbit/s.",
    r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*[kMG]?bit/s\s*$"
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_of_bits() {
        let rate = |text: &str| text.parse::<BitRate>().map(|rate| rate.0);
        assert_eq!(rate("95Mbit/s"), Ok(95_000_000));
        assert_eq!(rate("1.5 kbit/s"), Ok(1500));
        for wrong in [
            "95",
            "95MB/s",
            "95 mbit/s",
            "Mbit/s",
            "",
            "-1bit/s",
            "99999999999Gbit/s",
        ] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        let near = rate("95Mbits/s").expect_err("a slip").0;
        assert!(near.contains("did you mean `Mbit/s`"), "{near}");
    }

    #[test]
    fn sizes() {
        let size = |text: &str| text.parse::<Size>().map(|s| s.0);
        assert_eq!(size("64B"), Ok(64));
        assert_eq!(size("1kB"), Ok(1000));
        assert_eq!(size("1KiB"), Ok(1024));
        assert_eq!(size("1.5 KiB"), Ok(1536));
        assert_eq!(size("2MB"), Ok(2_000_000));
        for wrong in [
            "64",
            "B",
            "64b",
            "64 kb",
            "1.3B",
            "-1B",
            "",
            "1e3B",
            "99999999999GB",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(
            size("64")
                .expect_err("no unit")
                .0
                .contains("did you mean \"64B\"")
        );
    }

    #[test]
    fn spans() {
        let span = |text: &str| text.parse::<Span>().map(|s| s.0);
        assert_eq!(span("100ms"), Ok(100_000_000));
        assert_eq!(span("15min"), Ok(900_000_000_000));
        assert_eq!(span("1.5s"), Ok(1_500_000_000));
        assert_eq!(span("2us"), span("2µs"));
        assert!(
            span("5m")
                .expect_err("ambiguous")
                .0
                .contains("did you mean `min`")
        );
        for wrong in ["10", "s", "10 sec", "10S"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn shown_quantities_read_back(bytes in 0u64..1 << 40, ns in 0u64..1 << 60) {
            prop_assert_eq!(Size(bytes).to_string().parse::<Size>(), Ok(Size(bytes)));
            prop_assert_eq!(BitRate(bytes).to_string().parse::<BitRate>(), Ok(BitRate(bytes)));
            let Ok(Span(read)) = Span(ns).to_string().parse() else { panic!("span") };
            // Beyond 2^53 ns (104 days) floating point rounds.
            prop_assert!(read.abs_diff(ns) <= ns >> 52);
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,12}") {
            let _ = (text.parse::<Size>(), text.parse::<Span>(), text.parse::<BitRate>());
        }
    }
}

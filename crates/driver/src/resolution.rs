//! The outcome of settings on one kind of system, collected setting by setting: the answer of
//! [`crate::Driver::resolve`].

use serde::Serialize;
use serde_json::Value;

use crate::seam::DriverError;
use crate::settings::{Mapping, Settings, Unsupported};

/// The outcome of settings: the options of a driver with a row for each setting, or all that was refused.
pub type Resolved<T> = Result<(T, Vec<Mapping>), Vec<Unsupported>>;

/// The options that settings became on `system`.
///
/// # Errors
/// All that was refused, as one error.
pub fn accepted<T>(system: &str, resolved: Resolved<T>) -> Result<T, DriverError> {
    resolved.map(|(options, _)| options).map_err(|refused| {
        let words = |u: &Unsupported| format!("{} = {}: {}", u.setting, u.value, u.reason);
        let refused: Vec<String> = refused.iter().map(words).collect();
        DriverError::new(format!("{system} cannot honour {}", refused.join("; ")))
    })
}

/// Collects what each setting became, and which cannot be honoured.
#[derive(Debug, Default)]
pub struct Resolution {
    rows: Vec<Mapping>,
    refused: Vec<Unsupported>,
}

impl Resolution {
    /// A setting is honoured: `value` as [`spelt`], `native` in the system's own terms.
    pub fn row(&mut self, setting: &str, value: Option<String>, native: impl Into<String>) {
        self.rows.push(Mapping {
            setting: setting.to_owned(),
            value: value.unwrap_or_else(|| "default".to_owned()),
            native: native.into(),
            term: None,
            qos: None,
        });
    }

    /// The short term for the setting that was honoured last.
    pub fn term(&mut self, setting: &str, term: impl Into<String>) {
        if let Some(row) = self.rows.last_mut().filter(|row| row.setting == setting) {
            row.term = Some(term.into());
        }
    }

    /// MQTT's quality of service that the reliability became, where that was honoured last.
    pub fn quality_of_service(&mut self, qos: u8) {
        self.term("reliability", format!("QoS {qos}"));
        if let Some(row) = self
            .rows
            .last_mut()
            .filter(|row| row.setting == "reliability")
        {
            row.qos = Some(qos);
        }
    }

    /// A setting cannot be honoured: why not, and what would do instead.
    pub fn refuse(&mut self, setting: &str, value: impl Into<String>, reason: impl Into<String>) {
        self.refused.push(Unsupported {
            setting: setting.to_owned(),
            value: value.into(),
            reason: reason.into(),
        });
    }

    /// A setting becomes what `native` says of its value, or is refused for the reason that it gives.
    pub fn decide<T: Serialize + Copy>(
        &mut self,
        setting: &str,
        value: Option<T>,
        native: impl FnOnce(Option<T>) -> Result<String, Cannot>,
    ) {
        let shown = spelt(&value);
        match native(value) {
            Ok(native) => self.row(setting, shown, native),
            Err(Cannot(reason)) => {
                self.refuse(
                    setting,
                    shown.unwrap_or_else(|| "default".to_owned()),
                    reason,
                );
            }
        }
    }

    /// A setting that the system has nothing for: it becomes `otherwise` if it was not given or is
    /// false, and is refused for `reason` if it was given.
    pub fn absent<T: Serialize>(
        &mut self,
        setting: &str,
        given: &Option<T>,
        otherwise: &str,
        reason: &str,
    ) {
        match spelt(given) {
            Some(value) if value != "false" => self.refuse(setting, value, reason),
            value => self.row(setting, value, otherwise),
        }
    }

    /// The options that the settings became, with a row for each in the order of [`Settings::NAMES`] and
    /// the driver's own after them.
    ///
    /// # Errors
    /// All that was refused.
    pub fn finish<T>(mut self, options: T) -> Resolved<T> {
        if !self.refused.is_empty() {
            return Err(self.refused);
        }
        let order = |m: &Mapping| Settings::NAMES.iter().position(|n| *n == m.setting);
        self.rows
            .sort_by_key(|row| order(row).unwrap_or(usize::MAX));
        Ok((options, self.rows))
    }
}

/// Why a setting cannot be honoured, and what would do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cannot(String);

/// The outcome of a setting, in the system's own terms: an answer in [`Resolution::decide`].
pub fn becomes(native: impl Into<String>) -> Result<String, Cannot> {
    Ok(native.into())
}

/// Why a setting cannot be honoured, and what would do instead: an answer in [`Resolution::decide`].
pub fn cannot(reason: impl Into<String>) -> Result<String, Cannot> {
    Err(Cannot(reason.into()))
}

/// A setting's value as a study file spells it; `None` if it was not given.
pub fn spelt<T: Serialize>(value: &Option<T>) -> Option<String> {
    Some(match serde_json::to_value(value.as_ref()?).ok()? {
        Value::String(text) => text,
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::OnFull;

    #[test]
    fn rows_come_in_the_order_of_the_settings_and_refusals_alone() {
        let mut resolution = Resolution::default();
        resolution.row("native.x.depth", Some("7".into()), "depth: 7");
        resolution.decide("on-full", Some(OnFull::Drop), |_| becomes("drops"));
        resolution.absent("priority", &None::<u8>, "none", "there is none");
        resolution.absent("multicast", &Some(false), "off", "there is none");
        resolution.row("pattern", None, "topics");
        let (options, rows) = resolution.finish("options").unwrap();
        assert_eq!(options, "options");
        let shown = |m: &Mapping| format!("{} = {}: {}", m.setting, m.value, m.native);
        let shown: Vec<String> = rows.iter().map(shown).collect();
        assert_eq!(
            shown,
            [
                "pattern = default: topics",
                "on-full = drop: drops",
                "priority = default: none",
                "multicast = false: off",
                "native.x.depth = 7: depth: 7",
            ]
        );

        let mut resolution = Resolution::default();
        resolution.row("pattern", None, "topics");
        resolution.absent("multicast", &Some(true), "off", "there is none");
        resolution.decide("on-full", Some(OnFull::Block), |_| cannot("never"));
        let refused = accepted("X", resolution.finish(())).unwrap_err();
        assert_eq!(
            refused.what,
            "X cannot honour multicast = true: there is none; on-full = block: never"
        );
    }
}

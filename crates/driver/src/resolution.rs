//! What settings become on one kind of system, collected setting by setting: what
//! [`crate::Driver::resolve`] answers.

use serde::Serialize;
use serde_json::Value;

use crate::seam::DriverError;
use crate::settings::{Mapping, Settings, Unsupported};

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
        });
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
        native: impl FnOnce(Option<T>) -> Result<String, String>,
    ) {
        let shown = spelt(&value);
        match native(value) {
            Ok(native) => self.row(setting, shown, native),
            Err(reason) => {
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

    /// Goes through the settings that only this driver knows, `native.DRIVER.*`. `take` is called with
    /// the name and the value of each that is `known`: what it becomes (`None`: the driver adds the row
    /// itself), or what was expected.
    pub fn natives(
        &mut self,
        settings: &Settings,
        driver: &str,
        known: &[&str],
        mut take: impl FnMut(&str, &Value) -> Result<Option<String>, String>,
    ) {
        for (name, value) in settings.native.get(driver).into_iter().flatten() {
            let setting = format!("native.{driver}.{name}");
            let shown = spelt(&Some(value));
            let taken = match known.contains(&name.as_str()) {
                true => take(name, value),
                false => Err(unknown(name, known)),
            };
            match taken {
                Ok(Some(native)) => self.row(&setting, shown, native),
                Ok(None) => {}
                Err(reason) => self.refuse(&setting, shown.unwrap_or_default(), reason),
            }
        }
    }

    /// The options that the settings became, with a row for each in the order of [`Settings::NAMES`] and
    /// the driver's own after them.
    ///
    /// # Errors
    /// All that was refused.
    pub fn finish<T>(mut self, options: T) -> Result<(T, Vec<Mapping>), Vec<Unsupported>> {
        if !self.refused.is_empty() {
            return Err(self.refused);
        }
        let order = |m: &Mapping| Settings::NAMES.iter().position(|n| *n == m.setting);
        self.rows
            .sort_by_key(|row| order(row).unwrap_or(usize::MAX));
        Ok((options, self.rows))
    }
}

/// A setting's value as a study file spells it; `None` if it was not given.
pub fn spelt<T: Serialize>(value: &Option<T>) -> Option<String> {
    Some(match serde_json::to_value(value.as_ref()?).ok()? {
        Value::String(text) => text,
        other => other.to_string(),
    })
}

/// All that was refused, as one error.
pub fn refusal(system: &str, refused: Vec<Unsupported>) -> DriverError {
    let lines: Vec<String> = refused
        .iter()
        .map(|u| format!("{} = {}: {}", u.setting, u.value, u.reason))
        .collect();
    DriverError::new(format!("{system} cannot honour {}", lines.join("; ")))
}

/// Likeness (Jaro-Winkler, 0 to 1) from which a name may have been meant.
const LIKELY: f64 = 0.75;

fn unknown(name: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > LIKELY);
    let meant = nearest.map_or(String::new(), |(_, known)| {
        format!("; did you mean `{known}`?")
    });
    format!(
        "not a setting of this driver{meant} (it has {})",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::OnFull;

    #[test]
    fn rows_come_in_the_order_of_the_settings_and_refusals_alone() {
        let mut settings = Settings::default();
        let natives = [("depth".to_owned(), 7.into())].into();
        settings.native.insert("x".into(), natives);
        let mut resolution = Resolution::default();
        resolution.natives(&settings, "x", &["depth"], |name, value| {
            Ok(Some(format!("{name} is {value}")))
        });
        resolution.decide("on-full", Some(OnFull::Drop), |_| Ok("drops".into()));
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
                "native.x.depth = 7: depth is 7",
            ]
        );

        let mut resolution = Resolution::default();
        resolution.row("pattern", None, "topics");
        resolution.natives(&settings, "x", &["depths", "other"], |_, _| Ok(None));
        resolution.absent("multicast", &Some(true), "off", "there is none");
        resolution.decide("on-full", Some(OnFull::Block), |_| Err("never".into()));
        let refused = resolution.finish(()).unwrap_err();
        assert_eq!(
            refusal("X", refused).what,
            "X cannot honour native.x.depth = 7: not a setting of this driver; did you mean `depths`? \
             (it has depths, other); multicast = true: there is none; on-full = block: never"
        );
    }
}

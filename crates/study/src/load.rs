//! A load that is not known before the run: a value of a flow that is searched for ("find"), or that is a share of
//! what the search of another workload finds ("80% of limit").

use std::fmt;
use std::iter::once;
use std::str::FromStr;
use std::sync::Arc;

use pubgauge_quantities::Percent;
use pubgauge_strict_toml::InvalidInput;
use pubgauge_workload::Workload;

use crate::places::{ValuePosition, set_value, written};
use crate::placing;
use crate::resolve::{self, Traces};
use crate::study::Study;
use pubgauge_search::Axis;

/// A share of the limit that the search of a workload finds, written as `80% of limit`.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareOfLimit {
    /// The share, above 0; 1 is the limit.
    pub share: f64,
    /// Name of the workload that is searched.
    pub of: String,
}

/// Why a text is no share of a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// The percentage is 0.
    #[error("`{0}` is nothing; a share of a limit is above 0% and below 1000%")]
    Nothing(String),
    /// The text has another form.
    #[error(
        "`{0}` is no share of a limit; expected a percentage above 0% and below 1000%, and the name of a workload \
         that is searched"
    )]
    OtherForm(String),
}

/// Why no load is a share of what a search found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoLoad {
    /// The search found no lower end of the limit.
    #[error("the search of {0} found no limit: no load stayed within what was asked for")]
    NoLimit(String),
    /// The search found no upper end of the limit, and the share is above 100 %.
    #[error("the search of {of} found at least {low} and no upper end")]
    NoUpperEnd {
        /// The workload that was searched.
        of: String,
        /// The largest load that stayed within what was asked for.
        low: String,
    },
    /// The load is below the smallest one of its axis.
    #[error("{share} is less than the smallest {axis}: the search of {} found {end}", share.of)]
    TooSmall {
        /// The share that was asked for.
        share: ShareOfLimit,
        /// The axis that is varied.
        axis: &'static str,
        /// The end of the limit that it is a share of.
        end: String,
    },
}

/// A value of a flow that is known only once the run has found it.
#[derive(Clone, Debug)]
pub(crate) struct OpenLoad {
    pub(crate) place: ValuePosition,
    /// The limit that it is a share of; searched for if absent.
    pub(crate) share: Option<ShareOfLimit>,
    /// The study with the grid's values of one cell in place.
    pub(crate) study: Study,
    /// Seed of the workload's draws.
    pub(crate) seed: u64,
}

impl FromStr for ShareOfLimit {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<ShareOfLimit, ShareError> {
        let parts = text.split_once(" of ");
        let share = parts.and_then(|(share, _)| share.parse::<Percent>().ok());
        match (share, parts) {
            (Some(share), Some((_, of))) if share.0 > 0.0 && !of.trim().is_empty() => {
                Ok(ShareOfLimit {
                    share: share.0,
                    of: of.trim().to_owned(),
                })
            }
            (Some(_), Some((_, of))) if !of.trim().is_empty() => {
                Err(ShareError::Nothing(text.to_owned()))
            }
            _ => Err(ShareError::OtherForm(text.to_owned())),
        }
    }
}

impl fmt::Display for ShareOfLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", Percent(self.share), self.of)
    }
}

impl ShareOfLimit {
    /// The load of a share, from the ends of the interval that the limit lies in: of the lower end
    /// up to 100 %, of the upper end above, so that the load is certainly on its side of the limit.
    /// Rounded away from the limit, to whole numbers or four digits. The second value is the end
    /// that it is a share of.
    ///
    /// # Errors
    /// Why there is no such load.
    pub fn load(
        &self,
        axis: Axis,
        low: Option<f64>,
        high: Option<f64>,
    ) -> Result<(f64, f64), NoLoad> {
        let above = self.share > 1.0;
        let Some(end) = (if above { high } else { low }) else {
            let of = self.of.clone();
            return Err(match low.filter(|_| above) {
                Some(low) => NoLoad::NoUpperEnd {
                    of,
                    low: axis.written(low),
                },
                None => NoLoad::NoLimit(of),
            });
        };
        let load = axis.rounded(self.share * end, above);
        if axis != Axis::Rate && load < axis.range().0 {
            Err(NoLoad::TooSmall {
                share: self.clone(),
                axis: axis.name(),
                end: axis.written(end),
            })
        } else {
            Ok((load, end))
        }
    }
}

impl OpenLoad {
    /// The workload with this load, over so many brokers.
    pub(crate) fn workload(&self, load: f64, brokers: u32) -> Result<Arc<Workload>, InvalidInput> {
        let (study, index) = (&self.study, self.place.workload);
        let mut tree = study.tree.clone();
        set_value(&mut tree, &self.place, written(self.place.axis, load));
        let file = study.decode(&tree)?;
        let (mut found, mut notes) = (Vec::new(), Vec::new());
        let mut traces = Traces::new(&file.trace, &study.folder);
        let said = (&mut found, &mut notes);
        let own = &file.workload[index];
        let workload = resolve::workload(own, index, &file.phases, self.seed, &mut traces, said);
        found.splice(0..0, traces.found.drain(..));
        if !found.is_empty() {
            return Err(study.clashed(&tree, &found));
        }
        let topology = own.topology.merge_over(&file.topology);
        let over = placing::first_unplaceable(&workload.into(), once(brokers), &topology);
        let over =
            over.map_err(|clash| study.clashed(&tree, &[clash.of_workload(&file, index)]))?;
        Ok(over[&brokers].clone())
    }
}

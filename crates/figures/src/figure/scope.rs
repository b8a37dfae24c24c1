//! A trial, one of its flows, or a window of either, as figures come out of it.

use crate::messages::{Messages, Questions};
use crate::model::{FlowFigures, Trial};
use crate::window::WindowFigures;

/// The messages of a trial, of one of its flows or of a window, and beside them what a window may not be able to tell. `None`: it
/// does not have it, or it was not observed.
pub(super) struct Scope<'a> {
    pub messages: &'a Messages,
    pub lost: Option<u64>,
    pub under_way: Option<u64>,
    /// Questions and answers, where there are any.
    pub questions: Option<Questions>,
    pub system_cpu_s: Option<f64>,
    /// The trial, where it is all of it.
    pub trial: Option<&'a Trial>,
}

/// The deliveries that were lost; `None` where messages were due and none was taken: there was nothing to lose.
fn losses(messages: &Messages, lost: u64) -> Option<u64> {
    let nothing_taken = messages.offered > 0 && messages.published == 0;
    (!nothing_taken).then_some(lost)
}

impl<'a> From<&'a Trial> for Scope<'a> {
    fn from(trial: &'a Trial) -> Self {
        Scope {
            messages: &trial.messages,
            lost: losses(&trial.messages, trial.shortfall.lost),
            under_way: Some(trial.shortfall.under_way),
            questions: trial.shortfall.questions,
            system_cpu_s: trial.system_cpu_s,
            trial: Some(trial),
        }
    }
}

impl<'a> From<&'a FlowFigures> for Scope<'a> {
    fn from(flow: &'a FlowFigures) -> Self {
        Scope {
            messages: &flow.messages,
            lost: losses(&flow.messages, flow.shortfall.lost),
            under_way: Some(flow.shortfall.under_way),
            questions: flow.shortfall.questions,
            system_cpu_s: None,
            trial: None,
        }
    }
}

impl<'a> From<&'a WindowFigures> for Scope<'a> {
    fn from(window: &'a WindowFigures) -> Self {
        Scope {
            messages: &window.messages,
            lost: window.lost,
            under_way: window.under_way,
            questions: None,
            system_cpu_s: window.system_cpu_s,
            trial: None,
        }
    }
}

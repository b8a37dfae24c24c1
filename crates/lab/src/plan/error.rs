//! Errors that keep a network from being planned.

use std::fmt;

use pubgauge_network::FieldProblem;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The network is wrong.
    #[error("{}", lines(.0))]
    Network(Vec<FieldProblem>),
    /// This machine cannot make it.
    #[error("{}", lines(.0))]
    Refused(Vec<Unavailable>),
}

fn lines<T: fmt::Display>(list: &[T]) -> String {
    let texts: Vec<String> = list.iter().map(T::to_string).collect();
    texts.join("\n")
}

/// A property of a network that this machine cannot make.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wanted} cannot be had here: {missing}\n  hint: {hint}")]
pub struct Unavailable {
    /// The property that was asked for: `delay of links of subscriber hosts`.
    pub wanted: String,
    /// The feature that it needs, and the error of trying that.
    pub missing: String,
    /// The way to add it.
    pub hint: String,
}

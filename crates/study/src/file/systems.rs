//! The systems to run on, as they are written.

use serde::Serialize;

/// Systems to run on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Systems {
    /// One name, or `available`.
    One(String),
    /// Several names.
    Many(Vec<String>),
}

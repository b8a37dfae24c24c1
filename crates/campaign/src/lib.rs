//! A measurement campaign: which trial comes next, and all of them up to the results of a run.
//!
//! A [`Prepared`] plan names trials, searches and rounds, and the systems that they run on. A [`Proposer`] says from the stored
//! results which trial comes next; a [`Campaign`] measures it, on this host, on emulated networks or on other hosts, stores it and
//! goes on. Systems and networks stay up between trials that share them. Nothing here prints: a [`Watch`] is told.

mod campaign;
pub mod capabilities;
pub mod capacity;
mod client;
mod contents;
mod error;
pub mod hosts;
mod identities;
mod late;
pub mod networks;
mod new_run;
pub mod pairs;
mod prepare;
mod prepared;
mod proposer;
mod repeats;
pub mod sizes;
mod systems_here;
pub mod tuning;
mod wills;

pub use campaign::{Campaign, Note, Watch, judge};
pub use client::{ClientOptions, MOST_PROCESSES};
pub use error::Error;
pub use new_run::{decisive, machine, new_run, resolved};
pub use prepare::{Given, prepare};
pub use prepared::{AvailableSystems, Chosen, Prepared};
pub use proposer::{Proposal, Proposer, default_criterion, specs};
pub use repeats::RepeatsForecast;
pub use systems_here::{SystemsHere, split};

//! Tests of the crate through what it offers, one program.

mod claims;
mod compare;
mod conditions;
mod counts;
mod crossing;
mod identities;
mod late;
mod load_over_time;
mod network;
mod one_flow;
mod papers;
mod plans;
mod presence;
mod profiles;
mod schema;
mod search;
mod slow;
mod wills;
mod windows;
mod wrong_files;

//! Tests that need a machine that is not busy with other things.

mod advise;
mod boxes;
mod connecting;
mod counted;
mod find;
mod guard;
mod hosts_of_a_size;
mod late;
mod limits;
mod network;
mod scale;
mod tune;
mod under_stress;

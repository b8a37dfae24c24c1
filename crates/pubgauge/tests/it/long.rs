//! Tests that take long.

mod first_look;
mod plans;
mod slurm;

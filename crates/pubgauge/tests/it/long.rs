//! What takes long.

mod first_look;
mod plans;
mod slurm;

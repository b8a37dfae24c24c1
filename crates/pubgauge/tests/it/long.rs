//! What takes long.

mod first_look;
mod scale;
mod slurm;
mod plans;

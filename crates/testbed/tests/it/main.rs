//! Tests of the crate through what it offers, one program.

mod counting;
mod interface;
mod long;
mod restart;
mod sampling;
mod shares;
mod syscalls;
mod system_files;
mod systems;
mod traffic;

//! Tests of the crate through what it offers, one program.

mod bounds;
mod combined;
mod judges;
mod outcomes;
mod planted;
mod rounds;
mod shares;
mod stops;
mod ties;
mod traps;
mod unequal;
mod untold;

//! Tests of the crate through what it offers, one program.

mod advice;
mod answers;
mod browser;
mod chromium;
mod claims;
mod comparisons;
mod first_section;
mod layout;
mod papers;
mod sample;
mod screen;
mod searches;
mod shares;
mod studies;
mod table;
mod told;
mod trend;

//! Tuning of systems whose best settings are planted.

mod planted;

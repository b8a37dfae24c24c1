//! Servers that follow a script.

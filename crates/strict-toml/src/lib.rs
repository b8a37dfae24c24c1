//! TOML files that are read strictly: every error at once, with file, line and column, what was expected, and the nearest
//! right spelling.
//!
//! A [`StrictFile`] is read and decoded into a type of one's own. What is changed before it is decoded, by flags for
//! example, is a tree ([`Node`]) whose [`Sources`] are the texts that its errors point into.

mod decode;
mod file;
mod problem;
mod tree;

pub use file::{MAX_DEPTH, MAX_FILE_BYTES, Noun, StrictFile, read_text, read_tree, too_deep};
pub use problem::{InvalidInput, Problem, Sources};
pub use tree::{Entry, Node, TomlValue};

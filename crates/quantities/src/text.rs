//! Texts for the terminal.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// A text in lines of at most `width` columns, the first behind `lead`, the others behind `indent`. They break at spaces, and
/// within a word only where that alone is longer than a line.
pub fn fill(lead: &str, indent: &str, text: &str, width: usize) -> String {
    let options = Options::new(width)
        .initial_indent(lead)
        .subsequent_indent(indent)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::fill(text, options) + "\n"
}

/// Wraps a text into indented lines of at most 80 columns.
pub fn wrap(text: &str, indent: usize) -> String {
    let indent = " ".repeat(indent);
    fill(&indent, &indent, text.trim_end(), 80)
}

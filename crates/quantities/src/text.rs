//! Texts for the terminal.

/// Wraps a text into indented lines of at most 80 columns.
pub fn wrap(text: &str, indent: usize) -> String {
    let mut out = String::new();
    for paragraph in text.lines() {
        let mut line = " ".repeat(indent);
        for word in paragraph.split_whitespace() {
            if line.len() > indent && line.chars().count() + 1 + word.chars().count() > 80 {
                out.push_str(line.trim_end());
                out.push('\n');
                line = " ".repeat(indent);
            }
            if line.len() > indent {
                line.push(' ');
            }
            line.push_str(word);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

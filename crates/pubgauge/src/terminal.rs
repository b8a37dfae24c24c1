//! The width of the terminal, where there is one, and text in lines.

/// Columns of the terminal of a descriptor; `None` if it is no terminal, or its width is not known.
pub fn columns(descriptor: libc::c_int) -> Option<usize> {
    // SAFETY: a winsize of zeros is a valid one.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: `size` is a valid, writable winsize.
    let told = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, &mut size) } == 0;
    (told && size.ws_col > 0).then(|| usize::from(size.ws_col))
}

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

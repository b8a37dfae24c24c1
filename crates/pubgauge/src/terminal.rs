//! The width of the terminal, where there is one.

/// Columns of the terminal of a descriptor; `None` if it is no terminal, or its width is not known.
pub fn columns(descriptor: libc::c_int) -> Option<usize> {
    // SAFETY: a winsize of zeros is a valid one.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: `size` is a valid, writable winsize.
    let told = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, &mut size) } == 0;
    (told && size.ws_col > 0).then(|| usize::from(size.ws_col))
}

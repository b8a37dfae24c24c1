//! Parts of the file that say nothing, which are not written.

/// Whether a part of the file says nothing.
pub(super) fn is_default<T: Default + PartialEq>(part: &T) -> bool {
    *part == T::default()
}

//! Which readings of a device are sent: those that repeat the last one, or hardly differ from it, may be left out.

/// Send on change, by one column.
pub(super) struct Change {
    pub(super) field: usize,
    pub(super) absolute: f64,
    pub(super) relative: f64,
}

/// The reading of a device that was sent last.
#[derive(Default)]
pub(super) struct LastSent {
    repeat: Option<Box<[u8]>>,
    sent: Vec<f64>,
}

impl LastSent {
    /// Whether a reading is sent; remembers it if so.
    pub(super) fn keeps(
        &mut self,
        repeat: Option<&[u8]>,
        values: &[f64],
        changes: &[Change],
    ) -> bool {
        if let Some(repeat) = repeat {
            if self.repeat.as_deref() == Some(repeat) {
                return false;
            }
            self.repeat = Some(repeat.into());
        }
        if changes.is_empty() {
            return true;
        }
        let changed = self.sent.is_empty()
            || changes
                .iter()
                .zip(values)
                .zip(&self.sent)
                .any(|((change, value), last)| {
                    let moved = (value - last).abs();
                    moved > 0.0 && moved >= change.absolute.max(change.relative * last.abs())
                });
        if changed {
            self.sent.clear();
            self.sent.extend_from_slice(values);
        }
        changed
    }
}

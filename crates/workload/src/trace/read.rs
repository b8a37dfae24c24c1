//! Reading trace files record by record, and saying exactly where one is wrong.

mod csv;
mod json;
mod order;
mod place;
mod text;

use std::path::Path;

use super::builder::Builder;
use super::source::{TraceError, TraceSource};
use order::Order;
use place::FileLocation;
use text::TextKind;

/// Adds the readings of one file to `builder`.
pub(super) fn read_file(
    path: &Path,
    source: &TraceSource,
    builder: &mut Builder,
) -> Result<(), TraceError> {
    let place = FileLocation { path };
    let format = source.format.as_ref();
    let opened = text::open(&place, format)?;
    let begin = builder.readings.len();
    let mut order = Order::new(source.sort);
    match opened.kind {
        TextKind::Objects => json::read_lines(&place, opened, format, builder, &mut order)?,
        TextKind::List => json::read_list(&place, opened, format, builder, &mut order)?,
        TextKind::Csv => csv::read(&place, opened, format, builder, &mut order)?,
    }
    order.finish(&mut builder.remarks);
    if source.sort {
        let end = builder.readings.len();
        let sorted = builder.sort(begin..end);
        sorted.map_err(|why| place.wrong(None, None, why, None))?;
    }
    Ok(())
}

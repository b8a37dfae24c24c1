//! How the table of results shows a figure, on the page and in the terminal.

/// The column of a figure in the table of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FigureColumn {
    /// Its name, and its heading on the page.
    pub name: &'static str,
    /// Columns stand in the order of their places.
    pub place: u8,
    /// Its heading in the terminal, in two lines.
    pub head: [&'static str; 2],
    /// Characters that it takes in the terminal.
    pub width: usize,
    /// Width in characters of the narrowest terminal that shows it.
    pub from: usize,
    pub shown: Shown,
    /// The heading has the unit: its entries are plain numbers.
    pub has_unit: bool,
}

/// When the table of results has a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// In each table: the absence of the figure matters, too.
    Always,
    /// If a row has the figure.
    IfKnown,
    /// If a count of failures is above 0 in some row.
    IfAny,
}

impl FigureColumn {
    /// A column that is shown if a row has the figure, whatever the terminal's width.
    pub(super) const fn new(
        name: &'static str,
        place: u8,
        head: [&'static str; 2],
        width: usize,
    ) -> FigureColumn {
        FigureColumn {
            name,
            place,
            head,
            width,
            from: 0,
            shown: Shown::IfKnown,
            has_unit: false,
        }
    }

    /// A column of failures.
    pub(super) const fn of_failures(
        name: &'static str,
        place: u8,
        head: [&'static str; 2],
    ) -> FigureColumn {
        FigureColumn {
            shown: Shown::IfAny,
            ..FigureColumn::new(name, place, head, 7)
        }
    }

    pub(super) const fn always(self) -> FigureColumn {
        FigureColumn {
            shown: Shown::Always,
            ..self
        }
    }

    pub(super) const fn from(self, from: usize) -> FigureColumn {
        FigureColumn { from, ..self }
    }

    pub(super) const fn has_unit(self) -> FigureColumn {
        FigureColumn {
            has_unit: true,
            ..self
        }
    }
}

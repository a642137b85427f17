//! Tables: their columns, their order, and how far they are scrolled.

use std::cmp::Ordering;

/// A column.
#[derive(Debug)]
pub struct Column {
    /// Its title.
    pub title: &'static str,
    /// Its width in characters; 0: what the others leave.
    pub width: u16,
    /// Whether large values come first, unless the order is reversed.
    pub large_first: bool,
    /// Columns with larger numbers are left out first where there is no room.
    pub left_out: u8,
}

/// What a cell is ordered by.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// Nothing: it comes last in either order.
    Unknown,
}

impl Value {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }
}

/// A cell: its text, and what it is ordered by.
pub type Cell = (String, Value);

/// A table of one kind.
pub trait Rows {
    /// Its columns.
    const COLUMNS: &'static [Column];

    /// Returns a cell for each column.
    fn cells(&self) -> Vec<Cell>;
}

/// How a table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The column that it is ordered by.
    pub by: usize,
    /// Whether its order is reversed.
    pub reversed: bool,
    /// Number of rows above the first one that is shown.
    pub offset: usize,
}

impl Shown {
    /// Shows it from its first row on, ordered by this column.
    pub fn by(column: usize) -> Self {
        Self {
            by: column,
            reversed: false,
            offset: 0,
        }
    }

    /// Orders it by another column, or the other way round if it is ordered by this one.
    pub fn choose(&mut self, column: usize) {
        if self.by == column {
            self.reversed = !self.reversed;
        } else {
            *self = Self::by(column);
        }
    }

    /// Scrolls by `rows`, negative: up, within a table of `length` rows.
    pub fn scroll(&mut self, rows: isize, length: usize) {
        let last = length.saturating_sub(1);
        self.offset = self.offset.saturating_add_signed(rows).min(last);
    }

    /// Returns the cells of all rows in this order. Rows that are equal stay as they are.
    pub fn ordered<R: Rows>(&self, rows: &[R]) -> Vec<Vec<Cell>> {
        let mut all: Vec<Vec<Cell>> = rows.iter().map(Rows::cells).collect();
        let Some(column) = R::COLUMNS.get(self.by) else {
            return all;
        };
        let down = column.large_first != self.reversed;
        let value = |row: &Vec<Cell>| {
            row.get(self.by)
                .map_or(Value::Unknown, |cell| cell.1.clone())
        };
        all.sort_by(|a, b| {
            let (a, b) = (value(a), value(b));
            match (a == Value::Unknown, b == Value::Unknown) {
                (false, false) if down => b.compare(&a),
                (false, false) => a.compare(&b),
                (a, b) => a.cmp(&b),
            }
        });
        all
    }
}

/// Returns the columns that fit into `width`, with their widths, in their order.
pub fn fitting(columns: &[Column], width: u16) -> Vec<(usize, u16)> {
    /// What the column of variable width has at least.
    const LEAST: u16 = 12;
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let taken = |kept: &[usize]| -> u16 {
        let widths = kept.iter().map(|at| match columns[*at].width {
            0 => LEAST,
            width => width,
        });
        widths.sum::<u16>() + kept.len().saturating_sub(1) as u16
    };
    while taken(&kept) > width && kept.len() > 1 {
        let Some(least) = kept.iter().copied().max_by_key(|at| columns[*at].left_out) else {
            break;
        };
        kept.retain(|at| *at != least);
    }
    let spare = width.saturating_sub(taken(&kept));
    let of = |at: &usize| match columns[*at].width {
        0 => (LEAST + spare).min(width),
        fixed => fixed.min(width),
    };
    kept.iter().map(|at| (*at, of(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(&'static str, Option<f64>);

    impl Rows for Row {
        const COLUMNS: &'static [Column] = &[
            Column {
                title: "NAME",
                width: 0,
                large_first: false,
                left_out: 0,
            },
            Column {
                title: "SIZE",
                width: 6,
                large_first: true,
                left_out: 1,
            },
            Column {
                title: "AGE",
                width: 4,
                large_first: true,
                left_out: 2,
            },
        ];

        fn cells(&self) -> Vec<Cell> {
            let size = self.1.map_or(Value::Unknown, Value::Number);
            vec![
                (self.0.into(), Value::Text(self.0.into())),
                (String::new(), size),
                (String::new(), Value::Unknown),
            ]
        }
    }

    fn names(shown: Shown) -> String {
        let rows = [
            Row("b", Some(1.0)),
            Row("a", None),
            Row("d", Some(3.0)),
            Row("c", Some(2.0)),
        ];
        shown
            .ordered(&rows)
            .into_iter()
            .map(|row| row[0].0.clone())
            .collect()
    }

    #[test]
    fn rows_are_ordered_and_what_is_unknown_comes_last() {
        let mut shown = Shown::by(1);
        assert_eq!(names(shown), "dcba");
        shown.choose(1);
        assert_eq!(names(shown), "bcda");
        shown.offset = 2;
        shown.choose(0);
        assert_eq!((names(shown), shown.offset), ("abcd".into(), 0));
        assert_eq!(names(Shown::by(2)), "badc");
        assert_eq!(names(Shown::by(9)), "badc");
    }

    #[test]
    fn scrolling_stays_within_the_table() {
        let mut shown = Shown::by(0);
        shown.scroll(-3, 10);
        assert_eq!(shown.offset, 0);
        shown.scroll(99, 10);
        assert_eq!(shown.offset, 9);
        shown.scroll(1, 0);
        assert_eq!(shown.offset, 0);
    }

    #[test]
    fn columns_that_do_not_fit_are_left_out() {
        let columns = Row::COLUMNS;
        assert_eq!(fitting(columns, 40), [(0, 28), (1, 6), (2, 4)]);
        assert_eq!(fitting(columns, 24), [(0, 12), (1, 6), (2, 4)]);
        assert_eq!(fitting(columns, 23), [(0, 16), (1, 6)]);
        assert_eq!(fitting(columns, 10), [(0, 10)]);
        assert_eq!(fitting(columns, 0), [(0, 0)]);
    }
}

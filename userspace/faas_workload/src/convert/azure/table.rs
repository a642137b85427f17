//! CSV tables with a header, read row by row.

use anyhow::{bail, Context, Result};
use csv::{ByteRecord, ReaderBuilder, StringRecord};
use std::io::Read;

/// The columns that identify a row's function.
const HASHES: [&str; 3] = ["HashOwner", "HashApp", "HashFunction"];

/// Identity of a function: the hashes of its owner, its application and itself.
pub(super) type Key = [String; 3];

/// A table during reading.
pub(super) struct Table<'a, R> {
    file: &'a str,
    reader: csv::Reader<R>,
    header: StringRecord,
    hashes: [usize; 3],
}

/// A row: its line, and its fields or why it cannot be used.
pub(super) type Row = (usize, Result<StringRecord, String>);

impl<'a, R: Read> Table<'a, R> {
    /// Reads the header of the table named `file`.
    pub(super) fn open(file: &'a str, reader: R) -> Result<Self> {
        let mut reader = ReaderBuilder::new()
            .flexible(true)
            .buffer_capacity(1 << 20)
            .from_reader(reader);
        let header = reader.headers().with_context(|| cannot_read(file))?.clone();
        let mut hashes = [0; 3];
        for (place, name) in hashes.iter_mut().zip(HASHES) {
            let found = header.iter().position(|field| field == name);
            *place = found.with_context(|| format!("{file}:1: no column {name}"))?;
        }
        Ok(Self {
            file,
            reader,
            header,
            hashes,
        })
    }

    /// The columns for whose name `parse` returns a value, with that value.
    pub(super) fn columns<T>(&self, parse: impl Fn(&str) -> Option<T>) -> Vec<(T, usize)> {
        let names = self.header.iter().enumerate();
        names
            .filter_map(|(column, name)| Some((parse(name)?, column)))
            .collect()
    }

    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or a quoted field has a line break: most
    /// likely a quote is missing and rows would be lost.
    pub(super) fn next(&mut self) -> Result<Option<Row>> {
        let mut record = ByteRecord::new();
        let more = self.reader.read_byte_record(&mut record);
        if !more.with_context(|| cannot_read(self.file))? {
            return Ok(None);
        }
        let line = record.position().map_or(0, csv::Position::line) as usize;
        if record.as_slice().contains(&b'\n') {
            bail!(
                "{}:{line}: a quoted field continues past the end of the line",
                self.file
            );
        }
        Ok(Some((line, self.check(record))))
    }

    fn check(&self, record: ByteRecord) -> Result<StringRecord, String> {
        let (want, found) = (self.header.len(), record.len());
        if found != want {
            return Err(format!("want {want} fields, found {found}"));
        }
        StringRecord::from_byte_record(record).map_err(|_| "not UTF-8 text".to_string())
    }

    /// The function of `row`.
    pub(super) fn key(&self, row: &StringRecord) -> Key {
        self.hashes.map(|column| row[column].to_string())
    }
}

fn cannot_read(file: &str) -> String {
    format!("cannot read {file}")
}

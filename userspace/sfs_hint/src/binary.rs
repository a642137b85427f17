//! The binary form: a header and one record per hint, all little endian.
//!
//! | header | bytes | |
//! |---|---|---|
//! | magic | 1 | [`MAGIC`], which does not occur in UTF-8 text |
//! | version | 1 | [`VERSION`] |
//! | records | 2 | number of records, at most [`MAX_HINTS`](crate::MAX_HINTS) |
//!
//! | record | bytes | |
//! |---|---|---|
//! | fields | 1 | which optional fields follow: [`ARRIVAL`], [`SERVICE`], [`FUNCTION`], [`START`] |
//! | pid | 4 | process id, from 1 to 2147483647 |
//! | arrival | 8, if `ARRIVAL` | in ns; 0: not given |
//! | service | 8, if `SERVICE` | in ns; 0: not given |
//! | start | 8, if `START` | of the process, in clock ticks since boot; 0: not given |
//! | length | 1, if `FUNCTION` | bytes of the name |
//! | name | length | UTF-8 |
//!
//! Nothing may follow the last record.
//!
//! `START` was added later, without a new version: a reader that does not know
//! it refuses records with it and accepts all others.

use crate::error::Problem;
use crate::hint::{check_function, HintRef};

/// First byte of a datagram in binary form.
pub const MAGIC: u8 = 0xF5;

/// The version described here.
pub const VERSION: u8 = 1;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 4;

/// The record has a time of arrival.
pub const ARRIVAL: u8 = 1;

/// The record has a service time.
pub const SERVICE: u8 = 2;

/// The record has the function's name.
pub const FUNCTION: u8 = 4;

/// The record has the start time of the process.
pub const START: u8 = 8;

/// Reads the header from the front of `bytes`; returns the number of records.
pub(crate) fn take_header(bytes: &mut &[u8]) -> Result<usize, Problem> {
    let [_magic, version] = take(bytes)?;
    if version != VERSION {
        return Err(Problem::Version(version));
    }
    Ok(usize::from(u16::from_le_bytes(take(bytes)?)))
}

/// Reads a record from the front of `bytes`.
pub(crate) fn take_record<'a>(bytes: &mut &'a [u8]) -> Result<HintRef<'a>, Problem> {
    let [fields] = take(bytes)?;
    if fields & !(ARRIVAL | SERVICE | FUNCTION | START) != 0 {
        return Err(Problem::Fields(fields));
    }
    let pid = i32::from_le_bytes(take(bytes)?);
    let arrived_at_ns = take_number(bytes, fields & ARRIVAL != 0)?;
    let service_ns = take_number(bytes, fields & SERVICE != 0)?;
    let started_ticks = take_number(bytes, fields & START != 0)?;
    let function = match fields & FUNCTION {
        0 => None,
        _ => Some(take_name(bytes)?),
    };
    if pid < 1 {
        return Err(Problem::Pid);
    }
    Ok(HintRef {
        pid,
        arrived_at_ns,
        function,
        service_ns,
        started_ticks,
    })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Problem> {
    let (front, rest) = bytes.split_first_chunk().ok_or(Problem::Short)?;
    *bytes = rest;
    Ok(*front)
}

fn take_number(bytes: &mut &[u8], given: bool) -> Result<Option<u64>, Problem> {
    if !given {
        return Ok(None);
    }
    let number = u64::from_le_bytes(take(bytes)?);
    Ok((number > 0).then_some(number))
}

fn take_name<'a>(bytes: &mut &'a [u8]) -> Result<&'a str, Problem> {
    let [length] = take(bytes)?;
    let (name, rest) = bytes
        .split_at_checked(usize::from(length))
        .ok_or(Problem::Short)?;
    *bytes = rest;
    let name = std::str::from_utf8(name).map_err(|_| Problem::NotUtf8)?;
    check_function(name)?;
    Ok(name)
}

/// Appends the header for no records to `bytes`.
pub(crate) fn write_header(bytes: &mut Vec<u8>) {
    bytes.extend([MAGIC, VERSION, 0, 0]);
}

/// Writes the number of records into the header that `bytes` begins with.
pub(crate) fn write_count(records: u16, bytes: &mut [u8]) {
    bytes[2..HEADER_BYTES].copy_from_slice(&records.to_le_bytes());
}

/// Appends `hint`, which must be valid.
pub(crate) fn write_record(hint: &HintRef<'_>, bytes: &mut Vec<u8>) {
    let arrival = hint.arrived_at_ns.filter(|&ns| ns > 0);
    let service = hint.service_ns.filter(|&ns| ns > 0);
    let start = hint.started_ticks.filter(|&ticks| ticks > 0);
    let flag = |given: bool, bit: u8| if given { bit } else { 0 };
    bytes.push(
        flag(arrival.is_some(), ARRIVAL)
            | flag(service.is_some(), SERVICE)
            | flag(hint.function.is_some(), FUNCTION)
            | flag(start.is_some(), START),
    );
    bytes.extend(hint.pid.to_le_bytes());
    for number in [arrival, service, start].into_iter().flatten() {
        bytes.extend(number.to_le_bytes());
    }
    if let Some(name) = hint.function {
        bytes.push(name.len() as u8);
        bytes.extend(name.as_bytes());
    }
}

//! HTTP/1.1 on one connection: one request, one answer, then the end. `httparse` reads the request.
//!
//! Any process of the machine can connect to a loopback port, so each step has a limit: bytes of a
//! request, time of a request, time of an answer.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use crate::listener::Connection;

/// Maximum length of a request with its headers, in bytes. Prometheus's have less than 1,000.
const MAX_REQUEST: usize = 8192;

/// Maximum number of headers.
const MAX_HEADERS: usize = 64;

/// Maximum time for a request to arrive.
const READ_LIMIT: Duration = Duration::from_secs(1);

/// Maximum time for an answer to leave.
const WRITE_LIMIT: Duration = Duration::from_secs(2);

/// A request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// GET, or another method.
    pub method: String,
    /// The path, with the query.
    pub path: String,
    /// The header `Accept`, or nothing.
    pub accept: String,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Status and its reason, such as `200 OK`.
    pub status: &'static str,
    /// The header `Content-Type`.
    pub content_type: &'static str,
    /// The content.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns an answer of one line of text.
    pub fn line(status: &'static str, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{text}\n").into_bytes(),
        }
    }
}

/// Reads a request. Returns the answer to one that is none.
///
/// # Errors
///
/// The client has gone, or is too slow.
pub fn read(stream: &mut Connection) -> io::Result<Result<Request, Answer>> {
    let until = Instant::now() + READ_LIMIT;
    let mut bytes = Vec::new();
    let mut chunk = [0; 2048];
    loop {
        stream.set_read_timeout(left(until)?)?;
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&chunk[..count]);
        match parse(&bytes) {
            Ok(Some(request)) => return Ok(Ok(request)),
            Ok(None) if bytes.len() < MAX_REQUEST => {}
            Ok(None) | Err(httparse::Error::TooManyHeaders) => {
                let status = "431 Request Header Fields Too Large";
                return Ok(Err(Answer::line(status, "the request is too long")));
            }
            Err(error) => {
                let text = format!("this is no request of HTTP: {error}");
                return Ok(Err(Answer::line("400 Bad Request", &text)));
            }
        }
    }
}

/// Returns a request that is complete.
fn parse(bytes: &[u8]) -> Result<Option<Request>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    if request.parse(bytes)?.is_partial() {
        return Ok(None);
    }
    let accepts = request
        .headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("accept"));
    let texts = accepts.map(|header| String::from_utf8_lossy(header.value));
    Ok(Some(Request {
        method: request.method.unwrap_or_default().to_owned(),
        path: request.path.unwrap_or_default().to_owned(),
        accept: texts.collect::<Vec<_>>().join(","),
    }))
}

/// Writes an answer; without its content if `is_head`.
///
/// # Errors
///
/// The client has gone, or is too slow.
pub fn write(stream: &mut Connection, answer: &Answer, is_head: bool) -> io::Result<()> {
    let until = Instant::now() + WRITE_LIMIT;
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.status,
        answer.content_type,
        answer.body.len()
    );
    let mut bytes = head.into_bytes();
    if !is_head {
        bytes.extend_from_slice(&answer.body);
    }
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        stream.set_write_timeout(left(until)?)?;
        let count = stream.write(rest)?;
        rest = &rest[count..];
    }
    Ok(())
}

/// Returns the time until then, which is not 0.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_whole_or_refused() {
        let whole = b"GET /metrics HTTP/1.1\r\nHost: a\r\naccept: x\r\nAccept: y\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end]).unwrap(), None, "{end}");
        }
        let request = parse(whole).unwrap().unwrap();
        assert_eq!(
            (request.method, request.path),
            ("GET".into(), "/metrics".into())
        );
        assert_eq!(request.accept, "x,y");
        for wrong in [
            &b"\0"[..],
            b"GET\r\n\r\n",
            b"GET / HTTP/9\r\n\r\n",
            b"GET / \xff\r\n",
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}

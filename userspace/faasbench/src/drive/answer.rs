//! The answer to a request: its status, and the handler's measurements.

use serde::Deserialize;

/// Maximum number of headers of an answer.
const MAX_HEADERS: usize = 64;

/// Maximum length of an answer in bytes; handlers of benchmarks answer briefly.
const MAX_BYTES: usize = 1 << 20;

/// The handler's measurements in the body of an answer; missing fields are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Measures {
    /// When the handler began, in nanoseconds on the monotonic clock.
    pub start_ns: u64,
    /// CPU time of the handler in microseconds.
    pub cpu_us: u64,
    /// Number of times it blocked.
    pub voluntary: u64,
    /// Number of times it was preempted.
    pub involuntary: u64,
}

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The handler's measurements, if the body is such JSON.
    pub measures: Option<Measures>,
}

/// The state of the bytes received so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The answer is not complete.
    Partial,
    /// The answer is complete.
    Complete(Answer),
    /// The bytes are not an HTTP answer.
    Broken,
}

/// Parses the bytes received so far; `ended`: no more will come.
///
/// An answer ends after its `content-length`, otherwise with the connection.
/// Chunked bodies are not supported.
pub fn read(bytes: &[u8], ended: bool) -> Reading {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let head = match response.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) if !ended && bytes.len() <= MAX_BYTES => {
            return Reading::Partial;
        }
        _ => return Reading::Broken,
    };
    let body = &bytes[head..];
    let length = match length(response.headers) {
        Ok(length) => length.unwrap_or(usize::MAX),
        Err(()) => return Reading::Broken,
    };
    if body.len() < length && !ended {
        return if bytes.len() <= MAX_BYTES {
            Reading::Partial
        } else {
            Reading::Broken
        };
    }
    if length != usize::MAX && body.len() < length {
        return Reading::Broken;
    }
    Reading::Complete(Answer {
        status: response.code.unwrap_or_default(),
        measures: serde_json::from_slice(&body[..body.len().min(length)]).ok(),
    })
}

fn length(headers: &[httparse::Header<'_>]) -> Result<Option<usize>, ()> {
    let is_length = |one: &&httparse::Header| one.name.eq_ignore_ascii_case("content-length");
    let Some(header) = headers.iter().find(is_length) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(header.value).map_err(|_| ())?;
    text.trim().parse().map(Some).map_err(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 45\r\n\r\n\
                         {\"start_ns\":7,\"cpu_us\":5,\"voluntary\":1,\"x\":0}";

    #[test]
    fn an_answer_is_complete_with_its_last_byte() {
        let bytes = WHOLE.as_bytes();
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end], false), Reading::Partial, "{end}");
            assert_eq!(read(&bytes[..end], true), Reading::Broken, "{end}");
        }
        let measures = Measures {
            start_ns: 7,
            cpu_us: 5,
            voluntary: 1,
            involuntary: 0,
        };
        let answer = Answer {
            status: 200,
            measures: Some(measures),
        };
        assert_eq!(read(bytes, false), Reading::Complete(answer));
    }

    #[test]
    fn without_a_length_it_ends_with_the_connection() {
        let bytes = b"HTTP/1.0 503 Busy\r\n\r\nlater";
        assert_eq!(read(bytes, false), Reading::Partial);
        let answer = Answer {
            status: 503,
            measures: None,
        };
        assert_eq!(read(bytes, true), Reading::Complete(answer));
    }

    #[test]
    fn invalid_answers_are_broken() {
        for bytes in [
            &b"\x00\x01"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: \xff\r\n\r\n",
        ] {
            assert_eq!(read(bytes, false), Reading::Broken);
        }
        let endless = vec![b'x'; MAX_BYTES + 100];
        let mut text = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        text.extend(endless);
        assert_eq!(read(&text, false), Reading::Broken);
    }
}

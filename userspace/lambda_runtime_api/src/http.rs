//! HTTP/1.1 with persistent connections: the part that runtimes and load
//! generators need.

use anyhow::{bail, Context, Result};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Maximum length of a request's head in bytes.
const MAX_HEAD: usize = 1 << 16;

/// Maximum length of a body in bytes: Lambda's limit for a request or an
/// answer.
const MAX_BODY: usize = 6 << 20;

const MAX_HEADERS: usize = 64;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// GET, POST, ...
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Whether the connection ends with the answer.
    pub close: bool,
    /// The body.
    pub body: Vec<u8>,
}

/// One side of a connection, with its read buffer.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The parsed head of a request.
struct Head {
    request: Request,
    length: usize,
    body: Option<usize>,
    expects: bool,
}

impl Connection {
    /// Serves `stream`, with TCP_NODELAY.
    ///
    /// # Errors
    /// If it is already closed.
    pub fn new(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// The next request; `None` if the other side has closed the connection.
    ///
    /// # Errors
    /// If it is not HTTP, too long, or truncated.
    pub fn request(&mut self) -> Result<Option<Request>> {
        let head = loop {
            if let Some(head) = parse(&self.buffer)? {
                break head;
            }
            if self.buffer.len() > MAX_HEAD {
                bail!("the head of a request is longer than {MAX_HEAD} bytes");
            }
            if !self.read()? {
                if self.buffer.is_empty() {
                    return Ok(None);
                }
                bail!("the connection ended in the head of a request");
            }
        };
        self.buffer.drain(..head.length);
        if head.expects {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut request = head.request;
        request.body = match head.body {
            Some(length) => self.take(length)?,
            None => self.chunks()?,
        };
        Ok(Some(request))
    }

    /// Sends an answer with these `headers`, lines that end in CR LF.
    ///
    /// # Errors
    /// If the other side is gone.
    pub fn answer(&mut self, status: &str, headers: &str, body: &[u8]) -> Result<()> {
        let mut bytes = format!(
            "HTTP/1.1 {status}\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        bytes.extend(body);
        self.stream
            .write_all(&bytes)
            .context("cannot send an answer")
    }

    /// A chunked body, as curl sends if the length is unknown.
    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let (head, length) = loop {
                match httparse::parse_chunk_size(&self.buffer) {
                    Ok(httparse::Status::Complete(found)) => break found,
                    Ok(httparse::Status::Partial) if self.buffer.len() < MAX_HEAD => self.more()?,
                    _ => bail!("a chunk of a request has no length"),
                }
            };
            self.buffer.drain(..head);
            if length > (MAX_BODY - body.len()) as u64 {
                bail!("the body of a request is longer than {MAX_BODY} bytes");
            }
            body.extend(self.take(length as usize)?);
            let end = self.take(2)?;
            if end != b"\r\n" {
                bail!("a chunk of a request is longer than its length, or has trailers");
            }
            if length == 0 {
                return Ok(body);
            }
        }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.more()?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    fn more(&mut self) -> Result<()> {
        if !self.read()? {
            bail!("the connection ended in the body of a request");
        }
        Ok(())
    }

    /// Reads available bytes; false at the end.
    fn read(&mut self) -> Result<bool> {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(count) => {
                    self.buffer.extend(&bytes[..count]);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot read a request"),
            }
        }
    }
}

/// The head of a request at the start of `bytes`, if it is complete.
fn parse(bytes: &[u8]) -> Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes).context("a request is not HTTP")? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let value = |name: &str| {
        let mut named = request.headers.iter();
        let found = named.find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(
            String::from_utf8_lossy(found.value)
                .trim()
                .to_ascii_lowercase(),
        )
    };
    let chunked = value("transfer-encoding").is_some_and(|coding| coding == "chunked");
    let body = match value("content-length") {
        _ if chunked => None,
        None => Some(0),
        Some(text) => Some(
            text.parse()
                .context("the length of a request is not a number")?,
        ),
    };
    if body.is_some_and(|length| length > MAX_BODY) {
        bail!("the body of a request is longer than {MAX_BODY} bytes");
    }
    let keeps = request.version == Some(1);
    Ok(Some(Head {
        length,
        body,
        expects: value("expect").is_some_and(|what| what == "100-continue"),
        request: Request {
            method: request.method.unwrap_or_default().to_string(),
            path: request.path.unwrap_or_default().to_string(),
            close: !keeps || value("connection").is_some_and(|what| what == "close"),
            body: Vec::new(),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Shutdown, TcpListener};

    /// What a server reads from a client that sends `bytes` and then stops.
    fn requests(bytes: &[u8]) -> Result<Vec<Request>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut client = TcpStream::connect(listener.local_addr()?)?;
        let bytes = bytes.to_vec();
        let sender = std::thread::spawn(move || {
            client.write_all(&bytes).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            client
        });
        let mut connection = Connection::new(listener.accept()?.0)?;
        let mut found = Vec::new();
        while let Some(request) = connection.request()? {
            found.push(request);
        }
        drop(sender.join());
        Ok(found)
    }

    #[test]
    fn requests_follow_each_other_on_a_connection() {
        let found = requests(
            b"GET /next HTTP/1.1\r\nHost: x\r\n\r\n\
              POST /a HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc\
              POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n\
              GET /c HTTP/1.1\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
        let seen: Vec<_> = found
            .iter()
            .map(|one| (one.method.as_str(), one.path.as_str(), one.body.as_slice()))
            .collect();
        assert_eq!(
            seen,
            [
                ("GET", "/next", &b""[..]),
                ("POST", "/a", b"abc"),
                ("POST", "/b", b"def"),
                ("GET", "/c", b"")
            ]
        );
        let closes: Vec<bool> = found.iter().map(|one| one.close).collect();
        assert_eq!(closes, [false, false, false, true]);
    }

    #[test]
    fn invalid_requests_are_refused() {
        let endless = vec![b'a'; MAX_HEAD + 8192];
        let cases: [(&[u8], &str); 6] = [
            (b"\x01\x02\r\n\r\n", "not HTTP"),
            (b"GET /x HTTP/1.1\r\nHo", "ended in the head"),
            (&endless, "longer than"),
            (
                b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab",
                "ended in the body",
            ),
            (
                b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
                "longer than",
            ),
            (
                b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
                "longer than its length",
            ),
        ];
        for (bytes, message) in cases {
            let error = format!("{:#}", requests(bytes).unwrap_err());
            assert!(error.contains(message), "{message}: {error}");
        }
    }
}

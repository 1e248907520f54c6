//! As much of HTTP/1.1 as a proxy needs that uses one connection to the server
//! per request: heads, complete request bodies, and where an answer ends.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Far more than a client of the API server sends.
const LONGEST_HEAD: usize = 64 << 10;
const LONGEST_BODY: usize = 16 << 20;

/// A request, read completely.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// Path and query.
    pub(super) path: String,
    /// Without those that [`Request::to_bytes`] sets.
    headers: Vec<String>,
    body: Option<Vec<u8>>,
}

impl Request {
    /// The request as it is forwarded. The server closes the connection after
    /// its answer, so the answer ends where the connection does.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\nConnection: close\r\n", self.method, self.path);
        for header in &self.headers {
            text.push_str(header);
            text.push_str("\r\n");
        }
        if let Some(body) = &self.body {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend(self.body.iter().flatten());
        bytes
    }
}

/// Where the body of an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    /// With the connection; the client learns the end in the same way.
    Connection,
}

/// The head of an answer.
#[derive(Clone, Debug)]
pub(super) struct AnswerHead {
    pub(super) status: u16,
    /// For the client, whose connection may stay open.
    pub(super) bytes: Vec<u8>,
    pub(super) framing: Framing,
}

/// The next request of a connection; `None` if the client closed it. `buffer`
/// has the bytes that were read and not used yet.
pub(super) async fn read_request(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Request>> {
    let Some(head) = read_head(stream, buffer).await? else { return Ok(None) };
    let mut words = head.first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(broken(&head.first));
    };
    let body = match (head.is_chunked(), head.length()?) {
        (true, _) => Some(read_chunks(stream, buffer).await?),
        (false, Some(length)) => Some(take(stream, buffer, usize_of(length)?).await?),
        (false, None) => None,
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    let set = ["connection", "content-length", "transfer-encoding"];
    Ok(Some(Request { method, path, headers: head.without(&set), body }))
}

/// The head of the answer to a request. `buffer` has the first bytes of its body.
pub(super) async fn read_answer_head(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<AnswerHead> {
    let head = read_head(stream, buffer).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| broken(&head.first))?;
    let framing = match head.length()? {
        _ if head.is_chunked() => Framing::Chunked,
        Some(length) => Framing::Length(length),
        None if matches!(status, 204 | 304) => Framing::Length(0),
        None => Framing::Connection,
    };
    let mut text = format!("{}\r\n", head.first);
    for header in head.without(&["connection"]) {
        text.push_str(&header);
        text.push_str("\r\n");
    }
    if framing == Framing::Connection {
        text.push_str("Connection: close\r\n");
    }
    text.push_str("\r\n");
    Ok(AnswerHead { status, bytes: text.into_bytes(), framing })
}

/// The first line and the header lines of a message.
struct Head {
    first: String,
    headers: Vec<String>,
}

impl Head {
    fn value(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn length(&self) -> io::Result<Option<u64>> {
        let length = self.value("content-length").map(str::parse).transpose();
        length.map_err(|_| broken("Content-Length"))
    }

    fn is_chunked(&self) -> bool {
        self.value("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
    }

    fn without(&self, names: &[&str]) -> Vec<String> {
        let is_other = |line: &&String| {
            let name = line.split(':').next().unwrap_or_default();
            !names.iter().any(|other| name.eq_ignore_ascii_case(other))
        };
        self.headers.iter().filter(is_other).cloned().collect()
    }
}

async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Head>> {
    let Some(end) = find(stream, buffer, b"\r\n\r\n").await? else { return Ok(None) };
    let text: Vec<u8> = buffer.drain(..end + 4).collect();
    let text = std::str::from_utf8(&text[..end]).map_err(|_| broken("a head"))?;
    let mut lines = text.split("\r\n").map(str::to_owned);
    Ok(Some(Head { first: lines.next().unwrap_or_default(), headers: lines.collect() }))
}

/// Decodes a chunked body. Trailers are dropped; no client of the API sends any.
async fn read_chunks(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = read_line(stream, buffer).await?;
        let digits = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16).map_err(|_| broken("the size of a chunk"))?;
        if size == 0 {
            while !read_line(stream, buffer).await?.is_empty() {}
            return Ok(body);
        }
        body.extend(take(stream, buffer, size).await?);
        read_line(stream, buffer).await?;
        if body.len() > LONGEST_BODY {
            return Err(broken("a body that is too long"));
        }
    }
}

async fn read_line(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<String> {
    let end = find(stream, buffer, b"\r\n").await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let line: Vec<u8> = buffer.drain(..end + 2).collect();
    Ok(String::from_utf8_lossy(&line[..end]).into_owned())
}

/// Where `mark` begins in the buffer, which is filled until it has one. `None`
/// if the stream ends before its first byte.
async fn find(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    mark: &[u8],
) -> io::Result<Option<usize>> {
    loop {
        if let Some(found) = buffer.windows(mark.len()).position(|bytes| bytes == mark) {
            return Ok(Some(found));
        }
        if buffer.len() > LONGEST_HEAD {
            return Err(broken("a head that is too long"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return if buffer.is_empty() {
                Ok(None)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
    }
}

/// The next `count` bytes.
async fn take(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    count: usize,
) -> io::Result<Vec<u8>> {
    if count > LONGEST_BODY {
        return Err(broken("a body that is too long"));
    }
    while buffer.len() < count {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(buffer.drain(..count).collect())
}

fn usize_of(length: u64) -> io::Result<usize> {
    usize::try_from(length).map_err(|_| broken("Content-Length"))
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not understood as HTTP/1.1: {what}"))
}

#[cfg(test)]
mod tests {
    use super::{Framing, read_answer_head, read_request};

    #[tokio::test]
    async fn requests_of_one_connection_are_told_apart() {
        let text = "PATCH /a?force=true HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc\
                    POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                    4;x=y\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n\
                    GET /c HTTP/1.1\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\n";
        let (mut stream, mut buffer) = (text.as_bytes(), Vec::new());
        let mut forwarded = Vec::new();
        while let Some(request) = read_request(&mut stream, &mut buffer).await.unwrap() {
            forwarded.push(String::from_utf8(request.to_bytes()).unwrap());
        }
        assert_eq!(
            forwarded,
            [
                "PATCH /a?force=true HTTP/1.1\r\nConnection: close\r\nhost: h\r\n\
                 Content-Length: 3\r\n\r\nabc",
                "POST /b HTTP/1.1\r\nConnection: close\r\nContent-Length: 9\r\n\r\nWikipedia",
                "GET /c HTTP/1.1\r\nConnection: close\r\nAccept: */*\r\n\r\n",
            ]
        );
    }

    #[tokio::test]
    async fn a_request_that_breaks_off_is_an_error() {
        for text in ["GET /a", "PATCH /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nab"] {
            read_request(&mut text.as_bytes(), &mut Vec::new()).await.unwrap_err();
        }
    }

    #[tokio::test]
    async fn the_head_of_an_answer_says_where_its_body_ends() {
        for (headers, status, framing) in [
            ("Content-Length: 7\r\n", 200, Framing::Length(7)),
            ("transfer-encoding: chunked\r\n", 200, Framing::Chunked),
            ("", 204, Framing::Length(0)),
            ("", 200, Framing::Connection),
        ] {
            let text = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n{headers}\r\nbody");
            let (mut stream, mut buffer) = (text.as_bytes(), Vec::new());
            let head = read_answer_head(&mut stream, &mut buffer).await.unwrap();
            assert_eq!((head.status, head.framing), (status, framing));
            let closes = String::from_utf8(head.bytes).unwrap().contains("Connection: close");
            assert_eq!((closes, &buffer[..]), (framing == Framing::Connection, &b"body"[..]));
        }
    }
}

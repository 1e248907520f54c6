//! A minimal HTTP client for loopback: one request per connection, in HTTP/1.0,
//! so that the answer ends with the connection. A real client would bring its
//! TLS stack into the build of `cargo xtask`.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A running control plane answers within this time even on an overloaded
/// machine; one that does not is hung.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A blocking client of one control plane, with one key.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) port: u16,
    pub(super) key: String,
}

/// The answer to a request. The body is `Null` if it is not JSON.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Client {
    /// Sends a request and does not read the answer.
    pub fn send(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<TcpStream> {
        let (port, key) = (self.port, &self.key);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(text.as_bytes())?;
        Ok(stream)
    }

    /// Sends a request and reads the answer.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
        let mut stream = self.send(method, path, body)?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text)?;
        parse(&text).ok_or_else(|| io::Error::other("the connection ended before the answer did"))
    }
}

fn parse(text: &[u8]) -> Option<Answer> {
    let end = text.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&text[..end]).ok()?;
    let body = &text[end + 4..];
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    // A control plane that is killed while it answers also closes the connection.
    if length.is_some_and(|length| length != body.len()) {
        return None;
    }
    Some(Answer { status, body: serde_json::from_slice(body).unwrap_or(Value::Null) })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn an_answer_is_taken_apart_and_half_of_one_is_none() {
        let whole = b"HTTP/1.0 202 Accepted\r\ncontent-length: 8\r\n\r\n{\"a\": 1}";
        let answer = parse(whole).unwrap();
        assert_eq!((answer.status, answer.body["a"].as_u64()), (202, Some(1)));
        assert!(parse(&whole[..whole.len() - 1]).is_none());
        assert!(parse(b"HTTP/1.0 202 Acc").is_none());
    }
}

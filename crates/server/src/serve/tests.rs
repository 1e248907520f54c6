//! Raw connections. The clock is paused and advances to the next timer once
//! nothing else can run, so no test waits for a limit.

use std::net::SocketAddr;

use axum::routing::{get, post};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;
use crate::error::Rejection;
use crate::request::read_body;

const SMALL: Limits = Limits { connections: 2, lasting: 1, ..LIMITS };

/// More than the socket buffers of both sides hold.
const LONG: usize = 64 << 20;

/// A server with one route that answers at once and one that reads a body.
async fn started(limits: Limits) -> (SocketAddr, watch::Sender<bool>, JoinHandle<()>) {
    let read = async |request| Ok::<_, Rejection>(read_body(request).await?.len().to_string());
    let router = Router::new()
        .route("/", get(async || "here"))
        .route("/read", post(read))
        .route("/long", get(async || vec![b'x'; LONG]));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, mut stopping) = watch::channel(false);
    let serving = tokio::spawn(serve_within(limits, listener, router, async move {
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }));
    (address, stop, serving)
}

/// Sends `text` and reads to the end; answers the text and how long it took.
async fn say(address: SocketAddr, text: &str) -> (String, Duration) {
    let begun = Instant::now();
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = timeout(Duration::from_secs(60), connection.read_to_string(&mut answer));
    read.await.expect("the connection was left open").unwrap();
    (answer, begun.elapsed())
}

/// Sends a request on a connection that stays open, and reads one answer.
async fn ask(connection: &mut TcpStream) -> String {
    connection.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 1024];
    let length = connection.read(&mut answer).await.unwrap();
    answer.truncate(length);
    String::from_utf8(answer).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_header_that_does_not_end_is_given_up() {
    let (address, _stop, _) = started(LIMITS).await;
    for half in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: x\r\n"] {
        let (answer, waited) = say(address, half).await;
        assert_eq!(answer, "", "{half:?}");
        assert!(waited >= LIMITS.header && waited < LIMITS.header * 2, "{half:?}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_is_408_and_the_end() {
    let (address, _stop, _) = started(LIMITS).await;
    let half = "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf";
    let (answer, waited) = say(address, half).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert!(waited >= Duration::from_secs(10) && waited < Duration::from_secs(20), "{waited:?}");
}

/// A client requests a long answer and does not read it.
#[tokio::test(start_paused = true)]
async fn who_does_not_read_the_answer_is_cut_off() {
    let (address, _stop, _) = started(LIMITS).await;
    let begun = Instant::now();
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(b"GET /long HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    // Only the limit is left to expire.
    tokio::time::sleep(LIMITS.stall * 2).await;
    let mut answer = Vec::new();
    let cut = timeout(Duration::from_secs(60), connection.read_to_end(&mut answer)).await;
    // Closed with bytes in flight, which the other side may see as a reset.
    let whole = cut.expect("the connection was left open").is_ok() && answer.len() >= LONG;
    assert!(!whole, "it was read in full");
    assert!(begun.elapsed() < LIMITS.stall * 4, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_arrives_in_pieces_but_in_time_is_served() {
    let (address, _stop, _) = started(LIMITS).await;
    let mut connection = TcpStream::connect(address).await.unwrap();
    for piece in ["POST /read HTTP/1.1\r\nhost: x\r\n", "content-length: 4\r\n\r\n", "bo", "dy"] {
        connection.write_all(piece.as_bytes()).await.unwrap();
        tokio::time::advance(Duration::from_secs(4)).await;
    }
    let mut answer = vec![0; 1024];
    let length = connection.read(&mut answer).await.unwrap();
    assert!(answer[..length].ends_with(b"\r\n\r\n4"), "{}", String::from_utf8_lossy(&answer));
}

/// Two silent connections take the only slots; the third is served once the
/// limit has closed them, and not before.
#[tokio::test(start_paused = true)]
async fn one_connection_too_many_waits_for_a_place() {
    let (address, _stop, _) = started(SMALL).await;
    let mut silent = Vec::new();
    for _ in 0..SMALL.connections {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let request = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let (answer, waited) = say(address, request).await;
    assert!(answer.ends_with("here"), "{answer}");
    assert!(waited >= SMALL.header, "it had no place before: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn beyond_the_lasting_ones_a_connection_serves_one_request() {
    let (address, _stop, _) = started(SMALL).await;
    let mut lasting = TcpStream::connect(address).await.unwrap();
    for _ in 0..2 {
        assert!(ask(&mut lasting).await.ends_with("here"), "the first one stays open");
    }
    let mut passing = TcpStream::connect(address).await.unwrap();
    let answer = ask(&mut passing).await;
    assert!(answer.contains("connection: close") && answer.ends_with("here"), "{answer}");
    let end = timeout(Duration::from_secs(1), passing.read(&mut [0; 8])).await;
    assert_eq!(end.expect("it was left open").unwrap(), 0, "and is closed");
}

/// At shutdown an idle connection delays nothing, one with half a request
/// delays it no longer than the limit, and no new connection is accepted.
#[tokio::test(start_paused = true)]
async fn a_stop_comes_to_its_end_whoever_is_connected() {
    let (address, stop, serving) = started(LIMITS).await;
    let mut idle = TcpStream::connect(address).await.unwrap();
    ask(&mut idle).await;
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"GET / HT").await.unwrap();
    let begun = Instant::now();
    stop.send_replace(true);
    assert_eq!(idle.read(&mut [0; 8]).await.unwrap(), 0);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    serving.await.unwrap();
    assert!(begun.elapsed() <= LIMITS.drain, "{:?}", begun.elapsed());
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

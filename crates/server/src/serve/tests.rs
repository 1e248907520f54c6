//! Raw connections. The clock is paused and advances to the next timer once
//! nothing else can run, so no test waits for a limit.

use std::net::SocketAddr;

use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::from_fn;
use axum::routing::{get, post};
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;

use super::*;
use crate::error::Rejection;
use crate::request::{BODY_LIMIT, read_body};

const SMALL: Limits = Limits {
    slots: SlotLimits {
        connections: 8,
        connections_of_peer: 4,
        requests_of_peer: 4,
        requests_of_key: 4,
        requests: 8,
    },
    lasting: 1,
    ..LIMITS
};

/// More than the socket buffers of both sides hold.
const LONG: usize = 64 << 20;

/// A server with routes that answer at once, read a body, refuse before they
/// read it, answer for long, and never answer.
async fn started(limits: Limits) -> (SocketAddr, watch::Sender<bool>, JoinHandle<()>) {
    started_with(limits, Listening::default()).await
}

async fn started_with(
    limits: Limits,
    listening: Listening,
) -> (SocketAddr, watch::Sender<bool>, JoinHandle<()>) {
    let read = async |request| Ok::<_, Rejection>(read_body(request).await?.len().to_string());
    let router = Router::new()
        .route("/", get(async || "here"))
        .route("/read", post(read))
        .route("/refuse", post(async || (StatusCode::TOO_MANY_REQUESTS, "later")))
        .route("/long", get(async || vec![b'x'; LONG]))
        .route("/never", get(std::future::pending::<&str>))
        .layer(from_fn(refuse_overload));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, mut stopping) = watch::channel(false);
    let serving = tokio::spawn(serve_within(limits, listener, router, listening, async move {
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }));
    (address, stop, serving)
}

/// Connects from another address of this machine: another peer.
async fn connect_as(number: u8, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, number], 0))).unwrap();
    socket.connect(address).await.unwrap()
}

/// Sends a request from this peer and reads the answer to its end.
async fn asked_as(number: u8, address: SocketAddr) -> String {
    let mut connection = connect_as(number, address).await;
    let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    connection.write_all(request).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Whether the other side closed it, orderly or not.
async fn is_closed(connection: &mut TcpStream) -> bool {
    let end = timeout(Duration::from_secs(1), connection.read(&mut [0; 8])).await;
    matches!(end, Ok(Ok(0) | Err(_)))
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
        assert!(waited >= LIMITS.first && waited < LIMITS.header, "{half:?}: {waited:?}");
    }
    // The second request of a connection.
    let mut connection = TcpStream::connect(address).await.unwrap();
    ask(&mut connection).await;
    let begun = Instant::now();
    connection.write_all(b"GET / HT").await.unwrap();
    assert_eq!(connection.read(&mut [0; 8]).await.unwrap(), 0);
    assert!(begun.elapsed() >= LIMITS.header && begun.elapsed() < LIMITS.header * 2);
}

/// No byte extends the time of a header.
#[tokio::test(start_paused = true)]
async fn a_header_in_single_bytes_is_given_up_too() {
    let (address, _stop, _) = started(LIMITS).await;
    let begun = Instant::now();
    let mut connection = TcpStream::connect(address).await.unwrap();
    let mut sent = 0;
    while connection.write_all(b"x").await.is_ok() && sent < 60 {
        sent += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(sent < 60 && begun.elapsed() < LIMITS.first * 2, "{sent}: {:?}", begun.elapsed());
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

/// Many times more than there is room for, of one peer, with nothing, half a
/// header or half a body: nobody waits, not even another client of that peer.
#[tokio::test(start_paused = true)]
async fn connections_without_a_request_keep_nobody_out() {
    let half_body = "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf";
    for half in ["", "GET / HT", half_body] {
        let (address, _stop, _) = started(SMALL).await;
        let begun = Instant::now();
        let mut flood = Vec::new();
        for number in 0..100 {
            let mut connection = connect_as(1 + number % 2, address).await;
            connection.write_all(half.as_bytes()).await.unwrap();
            flood.push(connection);
            if number % 10 == 0 {
                assert!(asked_as(1, address).await.ends_with("here"), "{half:?} {number}");
                assert!(asked_as(3, address).await.ends_with("here"), "{half:?} {number}");
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(1), "{half:?}: {:?}", begun.elapsed());
        assert!(is_closed(&mut flood[0]).await, "{half:?}: the first had to yield");
    }
}

/// A peer that has all its connections answered gets no further one, and takes
/// none of another.
#[tokio::test(start_paused = true)]
async fn a_peer_with_many_requests_takes_nothing_from_another() {
    let (address, _stop, _) = started(SMALL).await;
    let mut idle = connect_as(2, address).await;
    assert!(ask(&mut idle).await.ends_with("here"));
    let mut asking = Vec::new();
    for _ in 0..SMALL.slots.connections_of_peer {
        let mut connection = connect_as(1, address).await;
        connection.write_all(b"GET /never HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        // Any round trip: the request above was read before.
        assert!(asked_as(3, address).await.ends_with("here"));
        asking.push(connection);
    }
    assert!(is_closed(&mut connect_as(1, address).await).await, "one too many");
    for connection in &mut asking {
        assert!(!is_closed(connection).await, "an answer is awaited");
    }
    assert!(ask(&mut idle).await.ends_with("here"), "the connection of another");
}

/// Behind a proxy all connections are the proxy's; the limit is on requests, by
/// the address that the proxy names.
#[tokio::test(start_paused = true)]
async fn behind_a_proxy_requests_are_limited_by_the_forwarded_peer() {
    let slots = SlotLimits { connections_of_peer: 8, requests_of_peer: 2, ..SMALL.slots };
    let limits = Limits { slots, ..SMALL };
    let listening = Listening { proxy: Some(Proxy::XForwardedFor), tls: None };
    let (address, _stop, _) = started_with(limits, listening).await;
    let request = |path: &str, peer: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 9.9.9.9, {peer}\r\n\
             connection: close\r\n\r\n"
        )
    };
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(request("/never", "10.0.0.1").as_bytes()).await.unwrap();
        waiting.push(connection);
        assert!(say(address, &request("/", "10.0.0.2")).await.0.ends_with("here"));
    }
    let (answer, _) = say(address, &request("/", "10.0.0.1")).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(answer.contains("retry-after: 1"), "{answer}");
    assert!(say(address, &request("/", "10.0.0.2")).await.0.ends_with("here"));
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

/// A client that keeps its connections for a next request sends thousands, each
/// with a body that is not read. It may be told that a connection ends, but
/// never finds one broken.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_pooled_client_never_finds_a_broken_connection_after_a_refusal() {
    let (address, _stop, _) = started(LIMITS).await;
    let clients = (0..8).map(|client| {
        tokio::spawn(async move {
            let mut pooled = None;
            let mut reused = 0;
            for number in 0..500_usize {
                reused += usize::from(pooled.is_some());
                let mut connection = match pooled.take() {
                    Some(connection) => connection,
                    None => TcpStream::connect(address).await.unwrap(),
                };
                connection.set_nodelay(true).unwrap();
                let body = vec![b'x'; 1 + (number * 977 + client * 13) % 60_000];
                let head = format!(
                    "POST /refuse HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                // In pieces, so that the server may answer before it has the body.
                connection.write_all(head.as_bytes()).await.expect("the head is taken");
                tokio::task::yield_now().await;
                for piece in body.chunks(20_000) {
                    connection.write_all(piece).await.expect("the body is taken");
                    tokio::task::yield_now().await;
                }
                let answer = read_answer(&mut connection).await;
                assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
                if !answer.contains("connection: close") {
                    pooled = Some(connection);
                }
            }
            reused
        })
    });
    for client in futures::future::join_all(clients).await {
        let reused = client.expect("no broken connection");
        assert!(reused > 400, "a short body costs no connection: {reused}");
    }
}

/// One answer with `later` as its body, from a connection that may stay open.
async fn read_answer(connection: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"later") {
        let mut bytes = [0; 1024];
        let length = connection.read(&mut bytes).await.expect("an answer");
        assert!(length > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&bytes[..length]);
    }
    String::from_utf8(answer).unwrap()
}

/// A client that sends far more than anybody reads still gets its answer, which
/// says that the connection ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_body_that_is_refused_does_not_destroy_the_answer() {
    let (address, _stop, _) = started(LIMITS).await;
    for path in ["/refuse", "/read"] {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let length = 8 * BODY_LIMIT;
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{CONTENT_LENGTH}: {length}\r\n\r\n");
        connection.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..length / 65_536 {
            connection.write_all(&[b'x'; 65_536]).await.expect("the server goes on reading");
        }
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.expect("an answer and an orderly end");
        assert!(
            answer.starts_with("HTTP/1.1 4") && answer.contains("connection: close"),
            "{answer}"
        );
    }
}

/// A client that asks before it sends its body is not told to send what nobody
/// wants.
#[tokio::test(start_paused = true)]
async fn a_refused_body_that_was_not_sent_is_not_asked_for() {
    let (address, _stop, _) = started(LIMITS).await;
    let request = "POST /refuse HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\
                   expect: 100-continue\r\n\r\n";
    let (answer, waited) = say(address, request).await;
    assert!(
        answer.starts_with("HTTP/1.1 429 ") && answer.contains("connection: close"),
        "{answer}"
    );
    assert!(waited < LIMITS.header, "{waited:?}");
}

/// Half a body that nobody reads is waited for only for a moment.
#[tokio::test(start_paused = true)]
async fn a_refusal_does_not_wait_for_a_body_that_does_not_end() {
    let (address, _stop, _) = started(LIMITS).await;
    let half = "POST /refuse HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf";
    let (answer, waited) = say(address, half).await;
    assert!(
        answer.starts_with("HTTP/1.1 429 ") && answer.contains("connection: close"),
        "{answer}"
    );
    assert!(waited < LIMITS.first, "{waited:?}");
}

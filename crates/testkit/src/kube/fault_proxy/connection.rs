//! One connection of a client: its requests one after the other, each with its
//! fault, each on a connection of its own to the server.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::{client, server};

use super::fault::Fault;
use super::http::{AnswerHead, Framing, Request, read_answer_head, read_request};
use super::proxy::Shared;

/// The room for one read of a body.
const READ: usize = 16 << 10;

/// The end of a chunked body without trailers.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Serves a connection until either side ends it. Whatever goes wrong, the
/// client sees a cut connection, and handles it.
pub(super) async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    let _cut = serve_requests(&shared, stream).await;
}

async fn serve_requests(shared: &Arc<Shared>, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let tls = shared.acceptor.accept(stream).await?;
    let mut client = Client { stream: tls, buffer: Vec::new() };
    loop {
        let received = read_request(&mut client.stream, &mut client.buffer).await?;
        let Some(request) = received else { return Ok(()) };
        let (number, fault) = shared.receive(&request);
        let order = Order { shared: Arc::clone(shared), number, request };
        let complete = match fault {
            None => order.forward().await?.relay(&mut client).await?,
            Some(Fault::Delay(time)) => {
                tokio::time::sleep(time).await;
                order.forward().await?.relay(&mut client).await?
            }
            Some(Fault::Hold) => {
                let released = shared.wait_for_release().await;
                let answer = order.forward().await;
                drop(released);
                answer?.relay(&mut client).await?
            }
            Some(Fault::Duplicate(time)) => {
                let complete = order.forward().await?.relay(&mut client).await;
                shared.spawn(order.land(time));
                complete?
            }
            Some(Fault::Answer(bytes)) => {
                client.stream.write_all(&bytes).await?;
                return client.stream.shutdown().await;
            }
            Some(Fault::Lose) => return Ok(()),
            Some(Fault::DropAnswer) => {
                order.land(Duration::ZERO).await;
                return Ok(());
            }
            Some(Fault::CutThenForward(time)) => {
                drop(client);
                order.land(time).await;
                return Ok(());
            }
            Some(Fault::CutThenHold) => {
                drop(client);
                let released = shared.wait_for_release().await;
                order.land(Duration::ZERO).await;
                drop(released);
                return Ok(());
            }
        };
        if !complete {
            return Ok(());
        }
    }
}

struct Client {
    stream: server::TlsStream<TcpStream>,
    /// Bytes of the next request.
    buffer: Vec<u8>,
}

/// A request that is to be carried out.
struct Order {
    shared: Arc<Shared>,
    /// Of its exchange.
    number: usize,
    request: Request,
}

impl Order {
    /// Sends the request and waits for the head of the answer. From then on the
    /// server has carried it out.
    async fn forward(&self) -> io::Result<Answer> {
        let stream = TcpStream::connect(self.shared.target).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let mut stream = self.shared.connector.connect(name, stream).await?;
        let time = self.shared.forwarding(self.number);
        stream.write_all(&self.request.to_bytes()).await?;
        stream.flush().await?;
        let mut begun = Vec::new();
        let head = read_answer_head(&mut stream, &mut begun).await?;
        self.shared.answered(self.number, time, head.status);
        Ok(Answer { head, begun, stream })
    }

    /// Sends the request after this time, for nobody. The exchange says whether
    /// the server answered.
    async fn land(self, after: Duration) {
        tokio::time::sleep(after).await;
        let _nobody_waits = self.forward().await;
    }
}

/// An answer that the server has begun.
struct Answer {
    head: AnswerHead,
    /// The first bytes of the body.
    begun: Vec<u8>,
    stream: client::TlsStream<TcpStream>,
}

impl Answer {
    /// Streams the answer to the client. Whether the client knows where it ended,
    /// so that its connection can be used again.
    async fn relay(mut self, client: &mut Client) -> io::Result<bool> {
        client.stream.write_all(&self.head.bytes).await?;
        let mut bytes = std::mem::take(&mut self.begun);
        let (mut count, mut end) = (0, Vec::new());
        loop {
            client.stream.write_all(&bytes).await?;
            client.stream.flush().await?;
            count += bytes.len() as u64;
            end.extend_from_slice(&bytes[bytes.len().saturating_sub(LAST_CHUNK.len())..]);
            end.drain(..end.len().saturating_sub(LAST_CHUNK.len()));
            if self.head.framing == Framing::Length(count) {
                return Ok(true);
            }
            bytes.clear();
            bytes.reserve(READ);
            tokio::select! {
                read = self.stream.read_buf(&mut bytes) => if read? == 0 {
                    return Ok(self.head.framing == Framing::Chunked && end == LAST_CHUNK);
                },
                // A client that leaves ends its watch.
                read = client.stream.read_buf(&mut client.buffer) => if read? == 0 {
                    return Ok(false);
                },
            }
        }
    }
}

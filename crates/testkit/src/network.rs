//! Network faults: a relay on loopback between a client and a server, for
//! faults that a real server does not produce on demand.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the relay does with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Everything passes.
    Up,
    /// Everything passes, delayed by this much in each direction.
    Slow(Duration),
    /// The relay closes connections, and new ones as soon as they are made.
    Cut,
    /// Connections stay open and nothing passes: the peer seems slow.
    Silent,
    /// Connections stay open and bytes are lost: the peer is gone without closing.
    Swallowing,
}

/// The relay. It ends on drop.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    line: Arc<watch::Sender<Line>>,
    accepting: JoinHandle<()>,
}

impl Relay {
    /// Relays from a port of its own to `target`.
    pub async fn to(target: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listen")?;
        let address = listener.local_addr().context("read the address")?;
        let line = Arc::new(watch::Sender::new(Line::Up));
        let accepting = tokio::spawn(accept(listener, target, Arc::clone(&line)));
        Ok(Self { address, line, accepting })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection, and every new one, until [`Relay::restore`].
    pub fn cut(&self) {
        self.line.send_replace(Line::Cut);
    }

    /// Keeps connections open and lets nothing pass until [`Relay::restore`];
    /// then the bytes sent meanwhile arrive.
    pub fn silence(&self) {
        self.line.send_replace(Line::Silent);
    }

    /// Keeps connections open and drops the bytes. A connection that lost bytes
    /// stays broken even after [`Relay::restore`]: it is half open, and nothing
    /// arrives on it ever again.
    pub fn swallow(&self) {
        self.line.send_replace(Line::Swallowing);
    }

    /// Delays everything by this much, in each direction.
    pub fn slow_down(&self, delay: Duration) {
        self.line.send_replace(Line::Slow(delay));
    }

    /// Lets everything pass again.
    pub fn restore(&self) {
        self.line.send_replace(Line::Up);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.cut();
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, line: Arc<watch::Sender<Line>>) {
    // Fails only when this process is out of file descriptors; the test notices.
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(relay(client, target, line.subscribe()));
    }
}

/// One connection. Whatever ends it, both sides see a closed connection.
async fn relay(mut client: TcpStream, target: SocketAddr, line: watch::Receiver<Line>) {
    if *line.borrow() == Line::Cut {
        return;
    }
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    // Send small messages at once, as without a relay.
    if client.set_nodelay(true).and(server.set_nodelay(true)).is_err() {
        return;
    }
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::select! {
        () = pump(from_client, to_server, line.clone()) => {}
        () = pump(from_server, to_client, line) => {}
    }
}

/// One direction of a connection, until it is over.
async fn pump(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, mut line: watch::Receiver<Line>) {
    let mut bytes = vec![0; 64 * 1024];
    let mut lost_something = false;
    loop {
        let count = tokio::select! {
            read = from.read(&mut bytes) => match read {
                Ok(count @ 1..) => count,
                _ => return,
            },
            () = until(&mut line, |line| line == Line::Cut) => return,
        };
        // Bytes that arrived during silence wait; nothing after them is read.
        until(&mut line, |line| line != Line::Silent).await;
        let now = *line.borrow();
        lost_something |= now == Line::Swallowing;
        match now {
            Line::Cut => return,
            _ if lost_something => continue,
            Line::Slow(delay) => tokio::time::sleep(delay).await,
            Line::Up | Line::Silent | Line::Swallowing => {}
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// Waits for a state of the line. The end of the relay counts as a cut.
async fn until(line: &mut watch::Receiver<Line>, wanted: impl Fn(Line) -> bool) {
    let _gone = line.wait_for(|line| *line == Line::Cut || wanted(*line)).await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::timeout;

    use super::*;

    /// A server that sends every byte back.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).await.is_ok() {
                        stream.write_all(&byte).await.unwrap();
                    }
                });
            }
        });
        address
    }

    async fn round_trip(stream: &mut TcpStream, byte: u8) -> std::io::Result<u8> {
        stream.write_all(&[byte]).await?;
        let mut answer = [0];
        stream.read_exact(&mut answer).await?;
        Ok(answer[0])
    }

    #[tokio::test]
    async fn a_relay_passes_is_cut_and_passes_again() {
        let relay = Relay::to(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        assert_eq!(round_trip(&mut stream, 7).await.unwrap(), 7);
        relay.cut();
        assert!(round_trip(&mut stream, 8).await.is_err(), "the connection is closed");
        let mut refused = TcpStream::connect(relay.address()).await.unwrap();
        assert!(round_trip(&mut refused, 9).await.is_err(), "a new one does not live");
        relay.restore();
        let mut again = TcpStream::connect(relay.address()).await.unwrap();
        assert_eq!(round_trip(&mut again, 10).await.unwrap(), 10);
    }

    #[tokio::test]
    async fn a_silent_relay_holds_what_was_sent_until_it_is_restored() {
        let relay = Relay::to(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        assert_eq!(round_trip(&mut stream, 1).await.unwrap(), 1);
        relay.silence();
        let waited = timeout(Duration::from_millis(100), round_trip(&mut stream, 2)).await;
        assert!(waited.is_err(), "nothing passes");
        relay.restore();
        let mut answer = [0];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer[0], 2, "what was sent meanwhile arrives");
    }

    #[tokio::test]
    async fn a_connection_that_was_swallowed_stays_half_open() {
        let relay = Relay::to(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        assert_eq!(round_trip(&mut stream, 1).await.unwrap(), 1);
        relay.swallow();
        let lost = async |stream: &mut TcpStream| {
            timeout(Duration::from_millis(100), round_trip(stream, 2)).await.is_err()
        };
        assert!(lost(&mut stream).await);
        relay.restore();
        assert!(lost(&mut stream).await, "neither closed nor alive");
        let mut fresh = TcpStream::connect(relay.address()).await.unwrap();
        assert_eq!(round_trip(&mut fresh, 3).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_slow_relay_delays_both_ways() {
        let relay = Relay::to(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        relay.slow_down(Duration::from_millis(40));
        let asked = tokio::time::Instant::now();
        assert_eq!(round_trip(&mut stream, 1).await.unwrap(), 1);
        assert!(asked.elapsed() >= Duration::from_millis(80), "{:?}", asked.elapsed());
    }
}

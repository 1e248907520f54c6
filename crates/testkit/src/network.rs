//! A stretch of network that a test can cut: a relay on loopback between a
//! client and a server, for faults that a real server does not make on demand.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What happens to what is sent through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Everything passes.
    Up,
    /// Connections are closed, and new ones as soon as they are made.
    Cut,
    /// Connections stay and nothing passes: the peer seems to be thinking.
    Silent,
}

/// The relay. It ends when it is dropped.
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

    /// Closes every connection and lets none live until [`Relay::restore`].
    pub fn cut(&self) {
        self.line.send_replace(Line::Cut);
    }

    /// Lets connections live and nothing pass until [`Relay::restore`].
    pub fn silence(&self) {
        self.line.send_replace(Line::Silent);
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
    // Fails only when this process may open no more files; the test notices.
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(relay(client, target, line.subscribe()));
    }
}

/// One connection. Whatever ends it, both sides see a closed connection.
async fn relay(mut client: TcpStream, target: SocketAddr, mut line: watch::Receiver<Line>) {
    if *line.borrow() == Line::Cut {
        return;
    }
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    loop {
        let now = *line.borrow_and_update();
        match now {
            Line::Cut => return,
            // The sender lives as long as the relay; its end is a cut.
            Line::Silent if line.changed().await.is_err() => return,
            Line::Silent => {}
            Line::Up => {
                tokio::select! {
                    // Done or broken: both mean that this connection is over.
                    _ended = copy_bidirectional(&mut client, &mut server) => return,
                    changed = line.changed() => if changed.is_err() { return },
                }
            }
        }
    }
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
}

//! The network of a soak: each control plane has one line to its database and
//! one from its agents. Each line goes through a relay that can inject faults.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context as _;
use slipway_testkit::network::Relay;
use tokio::runtime::{Builder, Runtime};

use super::schedule::{Line, Spoil};

#[derive(Debug)]
pub(super) struct Lines {
    // Dropped before the runtime that runs them.
    databases: Vec<Relay>,
    agents: Vec<Relay>,
    _runtime: Runtime,
}

impl Lines {
    /// A pair of relays for each port of a control plane. `database` is the
    /// server's address; without one there is no database line.
    pub(super) fn new(ports: &[u16], database: Option<SocketAddr>) -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("cannot start the relays")?;
        let relay = |target| runtime.block_on(Relay::to(target));
        let databases =
            ports.iter().filter_map(|_| database).map(relay).collect::<anyhow::Result<_>>()?;
        let agents = ports
            .iter()
            .map(|port| relay(SocketAddr::from((Ipv4Addr::LOCALHOST, *port))))
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { databases, agents, _runtime: runtime })
    }

    /// `url` with the server's address replaced by the relay of this control plane.
    pub(super) fn database_url(&self, plane: usize, url: &str) -> String {
        let Some(relay) = self.databases.get(plane) else { return url.to_owned() };
        match address_in(url) {
            Some(address) => url.replacen(address, &relay.address().to_string(), 1),
            None => url.to_owned(),
        }
    }

    /// The address at which agents reach a control plane.
    pub(super) fn public_url(&self, plane: usize) -> String {
        format!("http://{}", self.agents[plane].address())
    }

    /// Injects a fault into a line; false if the line does not exist.
    pub(super) fn spoil(&self, line: Line, how: Spoil) -> bool {
        let Some(relay) = self.relay(line) else { return false };
        match how {
            Spoil::Cut => relay.cut(),
            Spoil::Silence => relay.silence(),
            Spoil::Swallow => relay.swallow(),
            Spoil::Slow => relay.slow_down(Duration::from_millis(60)),
        }
        true
    }

    pub(super) fn restore(&self, line: Line) {
        if let Some(relay) = self.relay(line) {
            relay.restore();
        }
    }

    fn relay(&self, line: Line) -> Option<&Relay> {
        match line {
            Line::Database(plane) => self.databases.get(plane),
            Line::Agents(plane) => self.agents.get(plane),
        }
    }
}

/// `HOST:PORT` of `postgres://USER@HOST:PORT/NAME`.
pub(super) fn address_in(url: &str) -> Option<&str> {
    let (_, place) = url.split_once("://")?;
    let (host, _) = place.split_once('/')?;
    Some(host.rsplit_once('@').map_or(host, |(_, host)| host))
}

#[cfg(test)]
mod tests {
    use super::address_in;

    #[test]
    fn the_address_is_found_in_a_url() {
        assert_eq!(address_in("postgres://me@127.0.0.1:5432/x?a=b"), Some("127.0.0.1:5432"));
        assert_eq!(address_in("postgres://db:1/x"), Some("db:1"));
        assert_eq!(address_in("sqlite:x"), None);
    }
}

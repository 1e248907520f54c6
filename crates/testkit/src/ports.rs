//! Free ports on the loopback address.
//!
//! Must not: be used for a server of ours that starts only once. Those listen
//! on port 0 and report the port they got. This module is for external programs
//! that need a port number in advance, and for servers that restart on the same
//! port.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// A port of 127.0.0.1 that nobody listened on a moment ago.
///
/// *Caveat:* the port is released again before it is returned, so another
/// process may take it first. The order in which the kernel assigns ephemeral
/// ports makes this rare, not impossible: a caller that starts a program on it
/// must detect that the program fails to listen, and retry with another port.
pub fn free_loopback_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// A port of 127.0.0.1 that stays free while nobody listens on it, for a server
/// that is killed and restarted.
///
/// It is below the range of ephemeral ports. Otherwise a client that keeps
/// reconnecting to its dead server would sooner or later get that very port as
/// its own source port, connect to itself, and block the port for the server:
/// one in 14,000 attempts, and a test makes thousands.
pub fn lasting_loopback_port() -> io::Result<u16> {
    const LOWEST: u16 = 10_000;
    // Never return the same port twice in one process, even if it is still free.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|text| text.parse::<u16>().ok());
    let room = first.unwrap_or(32_768).max(LOWEST + 1_000) - LOWEST;
    // Concurrent processes start at different offsets: their ids may be
    // consecutive, and a binary with many environments uses a few hundred
    // ports.
    let begin = (std::process::id().wrapping_mul(4_099) % u32::from(room)) as u16;
    for _ in 0..room {
        let offset = NEXT.fetch_add(1, Ordering::Relaxed) % room;
        let port = LOWEST + ((u32::from(begin) + u32::from(offset)) % u32::from(room)) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "no port below the ephemeral ones is free"))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::{free_loopback_port, lasting_loopback_port};

    #[test]
    fn a_lasting_port_is_below_those_of_connections_and_given_once() {
        let (first, second) = (lasting_loopback_port().unwrap(), lasting_loopback_port().unwrap());
        assert_ne!(first, second);
        let of_a_connection = free_loopback_port().unwrap();
        assert!(first < of_a_connection && second < of_a_connection);
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, first)).is_ok());
    }

    #[test]
    fn a_free_port_can_be_listened_on() {
        // Several attempts, because of the caveat above.
        let listened = (0..5).any(|_| {
            let port = free_loopback_port().unwrap();
            assert_ne!(port, 0);
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        });
        assert!(listened, "none of five ports called free could be listened on");
    }

    #[test]
    fn a_port_in_use_is_not_called_free() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let taken = held.local_addr().unwrap().port();
        for _ in 0..100 {
            assert_ne!(free_loopback_port().unwrap(), taken);
        }
    }
}

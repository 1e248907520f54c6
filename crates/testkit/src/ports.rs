//! Free ports on the loopback address.
//!
//! Must not: be used for a server of ours. Those listen on port 0 and say which
//! port they got; this is for outside programs that insist on being told one.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// A port of 127.0.0.1 that nobody listened on a moment ago.
///
/// *Caveat:* the port is released again before it is returned, so another
/// process may take it first. The kernel hands out ephemeral ports in an order
/// that makes this rare, not impossible: whoever starts a program on it must
/// see the program fail to listen and try again with another port.
pub fn free_loopback_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::free_loopback_port;

    #[test]
    fn a_free_port_can_be_listened_on() {
        // Tried a few times because of the caveat above.
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

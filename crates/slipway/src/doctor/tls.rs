//! Checks what protects the listener: the certificate, its key, and whether
//! anything does.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use slipway_core::Timestamp;
use slipway_server::TlsError;

use super::finding::{Area, Finding};
use crate::config::{Config, ProxyHeader};

const DAY: Duration = Duration::from_secs(86_400);
/// Renewals usually come a month before the end; with less, one has failed.
const SOON: Duration = Duration::from_secs(14 * 86_400);

pub(super) fn inspect(config: &Config, now: Timestamp) -> Vec<Finding> {
    let mut area = Area::new("tls");
    listener(&mut area, config);
    if let Some(files) = &config.tls {
        certificate(&mut area, files.check(), now);
        match std::fs::metadata(&files.key) {
            Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
                let shown = files.key.display();
                let mode = metadata.permissions().mode() & 0o777;
                area.warning(
                    "key_file",
                    format!("others may read {shown} (mode {mode:o})"),
                    format!("chmod 600 {shown}"),
                );
            }
            Ok(_) => area.ok("key_file", "only its owner can read it"),
            // The check of the certificate reports it.
            Err(_) => {}
        }
    }
    area.into_findings()
}

/// Settings with a listener that nothing protects are refused before.
fn listener(area: &mut Area, config: &Config) {
    let listen = config.listen;
    match (&config.tls, config.behind_proxy.map(ProxyHeader::as_str)) {
        (Some(_), None) => area.ok("listener", format!("{listen} with TLS")),
        (Some(_), Some(header)) => {
            area.ok("listener", format!("{listen} with TLS, for a proxy that sends {header}"));
        }
        (None, _) if listen.ip().to_canonical().is_loopback() => {
            area.ok("listener", format!("{listen}, which only this machine reaches"));
        }
        (None, _) => area.warning(
            "listener",
            format!("{listen} in plain HTTP, for a proxy that ends TLS"),
            "make sure that only the proxy can reach the port, or give `tls_cert` and `tls_key`",
        ),
    }
}

fn certificate(area: &mut Area, checked: Result<Timestamp, TlsError>, now: Timestamp) {
    let renew = "renew it; a new pair in the same files is used without a restart";
    match checked {
        Ok(end) if end <= now => {
            area.problem("certificate", format!("it ended at {end}"), renew);
        }
        Ok(end) => {
            let left = end.since(now);
            let detail = format!("valid until {end}, {} days", left.as_secs() / DAY.as_secs());
            if left < SOON {
                area.warning("certificate", detail, renew);
            } else {
                area.ok("certificate", detail);
            }
        }
        Err(error) => {
            let remedy = match &error {
                TlsError::Unreadable { .. } => "let the user of the control plane read it",
                TlsError::Mismatch { .. } => "name the key that the certificate was made for",
                _ => "write both anew, in PEM",
            };
            area.problem("certificate", error.to_string(), remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::*;

    #[test]
    fn a_certificate_is_reported_before_it_ends() {
        let at = |days: i64| Timestamp::from_micros(days * 86_400_000_000);
        for (end, status) in
            [(100, Status::Ok), (15, Status::Ok), (13, Status::Warning), (0, Status::Problem)]
        {
            let mut area = Area::new("tls");
            certificate(&mut area, Ok(at(1_000 + end)), at(1_000));
            let found = area.into_findings();
            assert_eq!(found[0].status, status, "{end}: {found:?}");
        }
    }
}

//! Until when a certificate is valid. rustls checks that of others and shows
//! nobody its dates; a whole parser for one field would be ten more crates.

use slipway_core::time::Timestamp;

const SEQUENCE: u8 = 0x30;
/// `[0]`, the version, which the oldest certificates do not have.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `notAfter` of a certificate in DER (RFC 5280, 4.1). `None` if it is none.
pub(super) fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        (_, fields) = split(fields)?;
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        (_, fields) = split(fields)?;
    }
    let (validity, _) = element(fields, SEQUENCE)?;
    let (_, not_after) = split(validity)?;
    time(not_after)
}

fn time(element: &[u8]) -> Option<Timestamp> {
    let tag = *element.first()?;
    let (content, _) = split(element)?;
    let digits = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
    if !digits.is_ascii() {
        return None;
    }
    let (year, rest) = match tag {
        GENERALIZED_TIME => (digits.get(..4)?.to_owned(), digits.get(4..)?),
        UTC_TIME => {
            let year = digits.get(..2)?;
            // 50 to 99 are of the last century.
            let century = if year < "50" { "20" } else { "19" };
            (format!("{century}{year}"), digits.get(2..)?)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2);
    let (month, day, hour) = (part(0)?, part(2)?, part(4)?);
    let (minute, second) = (part(6)?, part(8)?);
    format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse().ok()
}

/// The content of the first element, which has this tag, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    (bytes.first() == Some(&tag)).then(|| split(bytes))?
}

/// The content of the first element, and what follows it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.get(1..)?.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        // A certificate is shorter than 64 KiB, so its lengths have two bytes at most.
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn the_end_of_a_certificate_is_read_in_both_notations() {
        for (year, shown) in [(2031, "2031-03-09T00:00:00Z"), (2077, "2077-03-09T00:00:00Z")] {
            let mut parameters = CertificateParams::new(["localhost".to_owned()]).unwrap();
            parameters.not_after = date_time_ymd(year, 3, 9);
            let key = KeyPair::generate().unwrap();
            let certificate = parameters.self_signed(&key).unwrap();
            assert_eq!(not_after(certificate.der()), Some(shown.parse().unwrap()));
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        let mut parameters = CertificateParams::new(["localhost".to_owned()]).unwrap();
        parameters.not_after = date_time_ymd(2031, 3, 9);
        let certificate = parameters.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let der = certificate.der();
        for length in 0..100 {
            assert_eq!(not_after(&der[..length]), None, "{length}");
        }
        assert_eq!(not_after(b"no certificate"), None);
    }
}

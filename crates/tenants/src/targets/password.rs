//! Passwords: made here, handed to the sink, and known to the server as a SCRAM verifier only.
//!
//! The verifier is what PostgreSQL would compute from the password itself. It is sent in its
//! stead so that no statement, and so no log of the server, ever has the password.

use std::num::NonZeroU32;

use data_encoding::BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};

use super::secret::Secret;
use crate::StepError;

/// PostgreSQL's own default.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4_096).expect("it is not zero");

/// 32 letters out of 64: 192 bits. None needs quoting or escaping anywhere.
pub(crate) fn generate() -> Result<Secret, StepError> {
    let mut bytes = [0; 24];
    fill(&mut bytes)?;
    Ok(Secret::new(data_encoding::BASE64URL_NOPAD.encode(&bytes)))
}

/// A name that nothing else has: 16 hexadecimal digits.
pub(crate) fn random_name() -> Result<String, StepError> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}

/// What the server stores of a password.
pub(crate) fn verifier(password: &Secret) -> Result<String, StepError> {
    let mut salt = [0; 16];
    fill(&mut salt)?;
    Ok(with_salt(password, &salt, ITERATIONS))
}

/// RFC 5802 with SHA-256. A password of our own has only letters that SASLprep keeps.
fn with_salt(password: &Secret, salt: &[u8], iterations: NonZeroU32) -> String {
    let mut salted = [0; digest::SHA256_OUTPUT_LEN];
    let text = password.expose().as_bytes();
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, text, &mut salted);
    let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
    let client = hmac::sign(&key, b"Client Key");
    let stored = digest::digest(&digest::SHA256, client.as_ref());
    let server = hmac::sign(&key, b"Server Key");
    let (salt, stored) = (BASE64.encode(salt), BASE64.encode(stored.as_ref()));
    let server = BASE64.encode(server.as_ref());
    format!("SCRAM-SHA-256${iterations}:{salt}${stored}:{server}")
}

fn fill(bytes: &mut [u8]) -> Result<(), StepError> {
    let filled = SystemRandom::new().fill(bytes);
    filled.map_err(|_| StepError::transient("the system has no random numbers now"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3: user `user`, password `pencil`.
    #[test]
    fn the_verifier_is_that_of_the_standard() {
        let salt = BASE64.decode(b"W22ZaJ0SNY7soEsUEjb6gQ==").expect("base64");
        let verifier = with_salt(&Secret::new("pencil"), &salt, ITERATIONS);
        let expected = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$\
                        WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:\
                        wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
        assert_eq!(verifier, expected);
    }

    #[test]
    fn no_two_passwords_are_the_same_and_none_is_shown() {
        let (one, two) = (generate().expect("one"), generate().expect("two"));
        assert!(one != two && one.expose().len() == 32);
        assert_eq!(format!("{one:?}"), "***");
    }
}

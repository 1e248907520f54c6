//! Long-lived keys: the API keys of people and programs, and the key that a
//! node speaks with after it enrolled. Only hashes are stored.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use uuid::Uuid;

use crate::ids::NodeId;
use crate::nodes::token::SecretHash;
use crate::secret::Secret;

/// `slipway_<short>_<long>`: `short` finds the row, `long` is the secret.
#[derive(Debug, Clone)]
pub struct ApiKeyText {
    pub short: String,
    pub hash: SecretHash,
}

impl ApiKeyText {
    const PREFIX: &'static str = "slipway";
    const SHORT: usize = 8;

    /// Takes random bytes: 6 for the short part, 24 for the secret.
    pub fn mint(short: [u8; 6], long: [u8; 24]) -> Secret {
        let mut short = bs58::encode(short).into_string();
        // Base58 drops length with leading zeroes; pad to the fixed width.
        while short.len() < Self::SHORT {
            short.insert(0, '1');
        }
        short.truncate(Self::SHORT);
        Secret::new(format!("{}_{short}_{}", Self::PREFIX, bs58::encode(long).into_string()))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '_');
        let (prefix, short, long) = (parts.next()?, parts.next()?, parts.next()?);
        let base58 = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric());
        let valid = prefix == Self::PREFIX
            && short.len() == Self::SHORT
            && (20..=64).contains(&long.len())
            && base58(short)
            && base58(long);
        valid.then(|| Self { short: short.to_owned(), hash: SecretHash::of(long.as_bytes()) })
    }
}

/// `nsk_<env>_<base64url(node id ‖ 32 bytes)>`: names its node, so that a
/// lookup needs no index over secrets.
#[derive(Debug, Clone)]
pub struct NodeKeyText {
    pub node_id: NodeId,
    pub hash: SecretHash,
}

impl NodeKeyText {
    pub fn mint(environment: &str, node_id: NodeId, key: &[u8; 32]) -> Secret {
        let mut bytes = node_id.as_uuid().as_bytes().to_vec();
        bytes.extend_from_slice(key);
        Secret::new(format!("nsk_{environment}_{}", BASE64URL_NOPAD.encode(&bytes)))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '_');
        let (prefix, environment, encoded) = (parts.next()?, parts.next()?, parts.next()?);
        if prefix != "nsk" || environment.is_empty() {
            return None;
        }
        let bytes = BASE64URL_NOPAD.decode(encoded.as_bytes()).ok()?;
        let (node, key) = bytes.split_at_checked(16)?;
        let node = Uuid::from_slice(node).ok().filter(|uuid| !uuid.is_nil())?;
        (key.len() == 32).then(|| Self { node_id: NodeId::new(node), hash: SecretHash::of(key) })
    }
}

/// Reads a node's public key: 32 bytes of base64, not all zero.
pub fn parse_public_key(text: &str) -> Option<[u8; 32]> {
    let bytes: [u8; 32] = BASE64.decode(text.as_bytes()).ok()?.try_into().ok()?;
    (bytes != [0; 32]).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_key_parses_back() {
        for short in [[0; 6], [255; 6], [1, 2, 3, 4, 5, 6]] {
            let key = ApiKeyText::mint(short, [9; 24]);
            let parsed = ApiKeyText::parse(key.expose()).unwrap();
            assert_eq!(parsed.short.len(), 8);
        }
        for bad in ["", "slipway", "slipway_a_b", "brokkr_12345678_aaaaaaaaaaaaaaaaaaaaaaaa"] {
            assert!(ApiKeyText::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_node_key_names_its_node() {
        let node = NodeId::new(Uuid::from_u128(42));
        let text = NodeKeyText::mint("live", node, &[3; 32]);
        let parsed = NodeKeyText::parse(text.expose()).unwrap();
        assert_eq!(parsed.node_id, node);
        assert_eq!(parsed.hash, SecretHash::of(&[3; 32]));
        // A bare key is not enough.
        assert!(NodeKeyText::parse(&BASE64.encode(&[3; 32])).is_none());
    }

    #[test]
    fn public_keys_are_32_bytes_and_not_zero() {
        assert!(parse_public_key(&BASE64.encode(&[1; 32])).is_some());
        assert!(parse_public_key(&BASE64.encode(&[0; 32])).is_none());
        assert!(parse_public_key(&BASE64.encode(&[1; 31])).is_none());
        assert!(parse_public_key("no base64!").is_none());
    }
}

//! Bootstrap tokens: their text, their record, and [`decide_token`], which says
//! whether the token of a waiting resource is kept, extended or minted anew.
//!
//! A token is single use and bound to one ProvisionedResource. Its text exists
//! only in the composite it was injected into, or with the person who issued it by
//! hand; the record keeps a hash. It is
//! *in place* if it is unexpired, unconsumed, unrevoked, and the live object
//! carries its id and a value with its hash.

use std::fmt;
use std::time::Duration;

use data_encoding::{BASE32_NOPAD, Encoding};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::blocker::BlockerCode;
use crate::broker::phase::NodeFact;
use crate::closed_set::closed_set;
use crate::ids::{BootstrapTokenId, NodeId, ProjectId, ProvisionedResourceId};
use crate::secret::Secret;
use crate::time::Timestamp;

closed_set!(
    /// What a token lets enrol.
    TokenKind {
        Node => "node",
        Bridge => "bridge",
    }
);

/// SHA-256 of a secret. Compared in constant time.
#[derive(Clone, Copy)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for SecretHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SecretHash {}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(..)")
    }
}

/// The text `psb_<env>_<project, base32>_<node|bridge>_<random, base32>`,
/// parsed. The format is plexd's and is checked before any lookup.
#[derive(Debug, Clone)]
pub struct TokenText {
    pub project_id: ProjectId,
    pub kind: TokenKind,
    pub hash: SecretHash,
}

/// A text that is not shaped like a bootstrap token. Does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bootstrap token is malformed: expected psb_<env>_<project>_<node|bridge>_<random>")]
pub struct MalformedToken;

impl TokenText {
    const PREFIX: &'static str = "psb";
    /// plexd's own lower bound for the random part.
    const MIN_RANDOM: usize = 20;
    const MAX_LENGTH: usize = 256;

    /// Writes a new token. `random` is 32 fresh bytes: 256 bits, 52 characters.
    pub fn mint(
        environment: &str,
        project_id: ProjectId,
        kind: TokenKind,
        random: &[u8; 32],
    ) -> Secret {
        let base32 = |bytes: &[u8]| BASE32_NOPAD.encode(bytes).to_ascii_lowercase();
        Secret::new(format!(
            "{}_{environment}_{}_{kind}_{}",
            Self::PREFIX,
            base32(project_id.as_uuid().as_bytes()),
            base32(random),
        ))
    }

    pub fn parse(text: &str) -> Result<Self, MalformedToken> {
        if text.len() > Self::MAX_LENGTH {
            return Err(MalformedToken);
        }
        let parts: Vec<&str> = text.split('_').collect();
        let [prefix, environment, project, kind, random] = parts[..] else {
            return Err(MalformedToken);
        };
        let lower = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase());
        let base32 = |text: &str| text.chars().all(|c| matches!(c, 'a'..='z' | '2'..='7'));
        if prefix != Self::PREFIX
            || !lower(environment)
            || !base32(random)
            || random.len() < Self::MIN_RANDOM
        {
            return Err(MalformedToken);
        }
        let kind = TokenKind::parse(kind).ok_or(MalformedToken)?;
        let project = decode(&BASE32_NOPAD, &project.to_ascii_uppercase())
            .and_then(|bytes| uuid::Uuid::from_slice(&bytes).ok())
            .filter(|uuid| !uuid.is_nil())
            .ok_or(MalformedToken)?;
        Ok(Self {
            project_id: ProjectId::new(project),
            kind,
            hash: SecretHash::of(text.as_bytes()),
        })
    }
}

fn decode(encoding: &Encoding, text: &str) -> Option<Vec<u8>> {
    encoding.decode(text.as_bytes()).ok()
}

/// The enrolment that used a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumption {
    pub at: Timestamp,
    pub nonce: Option<String>,
    pub node_id: NodeId,
    pub public_key: [u8; 32],
}

/// The record of an issued token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootstrapToken {
    pub id: BootstrapTokenId,
    pub project_id: ProjectId,
    pub provisioned_resource_id: ProvisionedResourceId,
    pub kind: TokenKind,
    pub hash: SecretHash,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    /// No extension goes beyond this. A token that replaces this one for the
    /// same object inherits it, so that re-minting cannot outrun the cap.
    pub hard_expires_at: Timestamp,
    pub consumed: Option<Consumption>,
    pub revoked_at: Option<Timestamp>,
    /// The person who issued it by hand. Only they have it: the live object
    /// does not carry it and is not expected to.
    pub issued_by: Option<String>,
}

impl BootstrapToken {
    /// A token that had expired before another replaced it stays expired: that is why it
    /// was not used.
    pub fn state(&self, now: Timestamp) -> TokenState {
        match (&self.consumed, self.revoked_at) {
            (Some(_), _) => TokenState::Consumed,
            (None, Some(at)) if at < self.expires_at => TokenState::Revoked,
            (None, None) if now < self.expires_at => TokenState::Usable,
            (None, _) => TokenState::Expired,
        }
    }

    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.state(now) == TokenState::Usable
    }
}

closed_set!(
    /// What a token is good for.
    TokenState {
        Usable => "usable",
        Consumed => "consumed",
        Revoked => "revoked",
        Expired => "expired",
    }
);

/// What the live object says about the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// There is no object.
    NoObject,
    /// There is one, without a recognisable token.
    Nothing,
    Token {
        id: BootstrapTokenId,
        hash: SecretHash,
    },
}

/// How long tokens live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenLifetimes {
    /// From mint to expiry, and the length of each extension.
    pub ttl: Duration,
    /// From the first mint for an object to the last possible expiry.
    pub cap: Duration,
}

impl Default for TokenLifetimes {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(3_600), cap: Duration::from_secs(24 * 3_600) }
    }
}

/// What to do about the token before an apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenDecision {
    /// Re-apply verbatim what the object carries (or nothing, if standalone).
    Keep,
    /// In place and past half of its life: extend the record.
    Slide { expires_at: Timestamp },
    /// Issue a new one, revoke the old one in the same transaction.
    Mint { expires_at: Timestamp, hard_expires_at: Timestamp },
    /// No token would help; a person must decide.
    Hold(BlockerCode),
}

/// Decides what happens to the token of a resource about to be applied.
///
/// Mints only where no token can be in use: there is none, the object is absent, the
/// token has expired or was revoked, or the object carries something else than the
/// record says (a crash between mint and apply). A token issued by hand counts as in
/// use until it expires or is revoked.
pub fn decide_token(
    token: Option<&BootstrapToken>,
    carried: Carried,
    node: NodeFact,
    lifetimes: TokenLifetimes,
    now: Timestamp,
) -> TokenDecision {
    if node == NodeFact::NotExpected {
        return TokenDecision::Keep;
    }
    let fresh = TokenDecision::Mint {
        expires_at: now.plus(lifetimes.ttl),
        hard_expires_at: now.plus(lifetimes.cap),
    };
    let Some(token) = token else { return fresh };
    if carried == Carried::NoObject {
        // A new object gets a new cap: nothing that could enrol has existed.
        return fresh;
    }
    if token.consumed.is_some() {
        return match node {
            NodeFact::Absent => TokenDecision::Hold(BlockerCode::NodeLeft),
            NodeFact::Registered | NodeFact::NotExpected => TokenDecision::Keep,
        };
    }
    if now >= token.hard_expires_at {
        return TokenDecision::Hold(BlockerCode::TokenCapReached);
    }
    // A person has it and was told how long it is valid; a token minted for the
    // object would revoke it.
    if token.issued_by.is_some() && token.is_usable(now) {
        return TokenDecision::Keep;
    }
    let reach = now.plus(lifetimes.ttl).min(token.hard_expires_at);
    if !token.is_usable(now) || carried != (Carried::Token { id: token.id, hash: token.hash }) {
        return TokenDecision::Mint { expires_at: reach, hard_expires_at: token.hard_expires_at };
    }
    if token.expires_at.since(now) < lifetimes.ttl / 2 && reach > token.expires_at {
        TokenDecision::Slide { expires_at: reach }
    } else {
        TokenDecision::Keep
    }
}

/// The same where a person brings the token to the machine: the loop mints none.
pub fn decide_token_by_hand(token: Option<&BootstrapToken>, node: NodeFact) -> TokenDecision {
    let used = token.is_some_and(|token| token.consumed.is_some());
    match node {
        NodeFact::Absent if used => TokenDecision::Hold(BlockerCode::NodeLeft),
        NodeFact::Absent | NodeFact::Registered | NodeFact::NotExpected => TokenDecision::Keep,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::fixtures::{at, mk_token};

    const LIFETIMES: TokenLifetimes =
        TokenLifetimes { ttl: Duration::from_secs(100), cap: Duration::from_secs(1_000) };

    fn consumed(token: &BootstrapToken) -> BootstrapToken {
        let (at, node_id) = (at(1_010), NodeId::new(Uuid::from_u128(5)));
        let consumed = Some(Consumption { at, nonce: None, node_id, public_key: [1; 32] });
        BootstrapToken { consumed, ..token.clone() }
    }

    #[test]
    fn a_minted_text_parses_back_and_has_the_published_shape() {
        let project = ProjectId::new(Uuid::from_u128(77));
        let text = TokenText::mint("live", project, TokenKind::Node, &[7; 32]);
        let parsed = TokenText::parse(text.expose()).unwrap();
        assert_eq!((parsed.project_id, parsed.kind), (project, TokenKind::Node));
        assert_eq!(parsed.hash, SecretHash::of(text.expose().as_bytes()));
        assert!(text.expose().starts_with("psb_live_"));
    }

    #[test]
    fn malformed_texts_are_refused() {
        let good =
            TokenText::mint("live", ProjectId::new(Uuid::from_u128(7)), TokenKind::Node, &[1; 32]);
        let good = good.expose();
        let bad = [
            String::new(),
            "psb".to_owned(),
            good.replace("psb_", "psx_"),
            good.replace("_live_", "_LIVE_"),
            good.replace("_node_", "_pet_"),
            good.to_ascii_uppercase(),
            good[..good.len() - 40].to_owned(),
            format!("{good}_x"),
            format!("{good}1"),
            format!("{good}{}", "a".repeat(300)),
        ];
        for text in bad {
            assert_eq!(TokenText::parse(&text).unwrap_err(), MalformedToken, "{text}");
        }
    }

    /// Invariants 9 and 10, as one table. Times in seconds; the token was
    /// issued at 1000, expires at 1100, hard cap 2000.
    #[test]
    fn the_token_rules_hold_in_every_situation() {
        let token = mk_token(1_000, 1_100, 2_000);
        let consumed = consumed(&token);
        let revoked = BootstrapToken { revoked_at: Some(at(1_010)), ..token.clone() };
        let by_hand = BootstrapToken { issued_by: Some("key:ann".to_owned()), ..token.clone() };
        let carries = Carried::Token { id: token.id, hash: token.hash };
        let other_value = Carried::Token { id: token.id, hash: SecretHash::of(b"other") };
        let other_id =
            Carried::Token { id: BootstrapTokenId::new(Uuid::from_u128(99)), hash: token.hash };
        let fresh = |now: i64| TokenDecision::Mint {
            expires_at: at(now + 100),
            hard_expires_at: at(now + 1_000),
        };
        let again = |now: i64| TokenDecision::Mint {
            expires_at: at(now + 100),
            hard_expires_at: at(2_000),
        };
        let absent = NodeFact::Absent;

        let table = [
            (
                "standalone",
                None,
                Carried::NoObject,
                NodeFact::NotExpected,
                1_020,
                TokenDecision::Keep,
            ),
            ("first apply", None, Carried::NoObject, absent, 1_020, fresh(1_020)),
            ("object without record", None, Carried::Nothing, absent, 1_020, fresh(1_020)),
            ("crash after mint", Some(&token), Carried::NoObject, absent, 1_020, fresh(1_020)),
            ("object lost later", Some(&consumed), Carried::NoObject, absent, 1_500, fresh(1_500)),
            (
                "object lost, node up",
                Some(&consumed),
                Carried::NoObject,
                NodeFact::Registered,
                1_500,
                fresh(1_500),
            ),
            ("in place, young", Some(&token), carries, absent, 1_020, TokenDecision::Keep),
            (
                "in place, half gone",
                Some(&token),
                carries,
                absent,
                1_060,
                TokenDecision::Slide { expires_at: at(1_160) },
            ),
            ("expired below the cap", Some(&token), carries, absent, 1_200, again(1_200)),
            ("revoked", Some(&revoked), carries, absent, 1_020, again(1_020)),
            ("not carried", Some(&token), Carried::Nothing, absent, 1_020, again(1_020)),
            ("another value", Some(&token), other_value, absent, 1_020, again(1_020)),
            ("another id", Some(&token), other_id, absent, 1_020, again(1_020)),
            ("by hand", Some(&by_hand), carries, absent, 1_090, TokenDecision::Keep),
            ("by hand, not carried", Some(&by_hand), other_id, absent, 1_020, TokenDecision::Keep),
            ("by hand, expired", Some(&by_hand), other_id, absent, 1_200, again(1_200)),
            (
                "by hand, object lost",
                Some(&by_hand),
                Carried::NoObject,
                absent,
                1_020,
                fresh(1_020),
            ),
            (
                "cap reached",
                Some(&token),
                carries,
                absent,
                2_000,
                TokenDecision::Hold(BlockerCode::TokenCapReached),
            ),
            (
                "consumed, node up",
                Some(&consumed),
                carries,
                NodeFact::Registered,
                1_500,
                TokenDecision::Keep,
            ),
            (
                "consumed, node left",
                Some(&consumed),
                carries,
                absent,
                1_500,
                TokenDecision::Hold(BlockerCode::NodeLeft),
            ),
        ];
        for (name, token, carried, node, now, expected) in table {
            assert_eq!(decide_token(token, carried, node, LIFETIMES, at(now)), expected, "{name}");
        }
    }

    #[test]
    fn a_token_that_expired_first_stays_expired() {
        let token = mk_token(1_000, 1_100, 2_000);
        let revoked = |seconds| BootstrapToken { revoked_at: Some(at(seconds)), ..token.clone() };
        for (token, now, expected) in [
            (token.clone(), 1_099, TokenState::Usable),
            (token.clone(), 1_100, TokenState::Expired),
            (revoked(1_099), 1_099, TokenState::Revoked),
            (revoked(1_099), 1_200, TokenState::Revoked),
            (revoked(1_100), 1_200, TokenState::Expired),
            // The clock went back.
            (revoked(1_100), 1_050, TokenState::Expired),
        ] {
            assert_eq!(token.state(at(now)), expected, "{token:?} at {now}");
        }
    }

    #[test]
    fn the_loop_mints_nothing_that_a_person_brings() {
        let token = mk_token(1_000, 1_100, 2_000);
        let used = consumed(&token);
        for token in [None, Some(&token)] {
            assert_eq!(decide_token_by_hand(token, NodeFact::Absent), TokenDecision::Keep);
        }
        let left = TokenDecision::Hold(BlockerCode::NodeLeft);
        assert_eq!(decide_token_by_hand(Some(&used), NodeFact::Absent), left);
        assert_eq!(decide_token_by_hand(Some(&used), NodeFact::Registered), TokenDecision::Keep);
    }

    #[test]
    fn sliding_stops_at_the_cap() {
        let token = mk_token(1_000, 1_950, 2_000);
        let carries = Carried::Token { id: token.id, hash: token.hash };
        let decide_at =
            |now| decide_token(Some(&token), carries, NodeFact::Absent, LIFETIMES, at(now));
        assert_eq!(decide_at(1_940), TokenDecision::Slide { expires_at: at(2_000) });
    }
}

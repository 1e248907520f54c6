//! A cloud: an account of a provider, reached by credentials.

use serde_json::{Map, Value, json};

use crate::access::audit::Actor;
use crate::catalog::{CatalogWrite, Name};
use crate::commit::Commit;
use crate::deletion::request::Deletable;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{CloudId, DeletionId, Revision};
use crate::kind::{about, audited, existing, free, kind};
use crate::precondition::Expected;
use crate::text::InvalidText;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq)]
pub struct Cloud {
    pub id: CloudId,
    /// Unique among the not deleted.
    pub name: Name,
    /// What blueprints name as their provider kind.
    pub provider: String,
    pub endpoint: Endpoint,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Cloud, CloudId, CloudNotFound);

/// How the provider is reached: names with plain values, such as a region or a
/// URL. Nested values are refused, so that nothing hides in them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Endpoint(Map<String, Value>);

impl Endpoint {
    const MAX_COUNT: usize = 32;
    const MAX_VALUE: usize = 1_024;
    /// Words that name a secret. Credentials are stored in the vault; an
    /// endpoint that contains one is refused before it can be stored.
    const SECRET_WORDS: [&'static str; 6] =
        ["password", "secret", "token", "credential", "private_key", "access_key"];

    pub fn parse(endpoint: Map<String, Value>) -> Result<Self, InvalidText> {
        if endpoint.len() > Self::MAX_COUNT {
            return Err(InvalidText::new("endpoint", "must have at most 32 entries"));
        }
        for (key, value) in &endpoint {
            let shown: String = key.chars().filter(|c| !c.is_control()).take(63).collect();
            let field = format!("endpoint.{shown}");
            let valid_key = (1..=63).contains(&key.len())
                && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
            if !valid_key {
                let problem = "must have a key of 1 to 63 letters, digits or - _ .";
                return Err(InvalidText::new(field, problem));
            }
            let plain = key.to_ascii_lowercase().replace(['-', '.'], "_");
            if Self::SECRET_WORDS.iter().any(|word| plain.contains(word)) {
                let problem = "names a secret, and no secret is stored here; keep it in the vault";
                return Err(InvalidText::new(field, problem));
            }
            let valid_value = match value {
                Value::String(text) => text.len() <= Self::MAX_VALUE && !text.contains('\0'),
                Value::Bool(_) => true,
                Value::Number(number) => number.is_i64(),
                Value::Null | Value::Array(_) | Value::Object(_) => false,
            };
            if !valid_value {
                let problem =
                    "must be a text of at most 1024 bytes without U+0000, an integer or a boolean";
                return Err(InvalidText::new(field, problem));
            }
        }
        Ok(Self(endpoint))
    }

    /// For rows: they were checked when written.
    pub const fn from_stored(endpoint: Map<String, Value>) -> Self {
        Self(endpoint)
    }

    pub const fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

/// A cloud, its row locked.
#[derive(Debug, Clone)]
pub struct CloudSnapshot {
    pub now: Timestamp,
    pub cloud: Option<Cloud>,
    /// Credentials of it that are not deleted.
    pub credentials: i64,
}

#[derive(Debug, Clone)]
pub struct NewCloud {
    pub id: CloudId,
    pub name: Name,
    pub provider: Name,
    pub endpoint: Endpoint,
}

pub fn create(snapshot: &CloudSnapshot, new: &NewCloud, actor: &Actor) -> Result<Commit, Refusal> {
    free(&snapshot.cloud, "name", new.name.as_str())?;
    let cloud = Cloud {
        id: new.id,
        name: new.name.clone(),
        provider: new.provider.to_string(),
        endpoint: new.endpoint.clone(),
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "name": cloud.name, "provider": cloud.provider });
    let about = about(&cloud);
    let write = CatalogWrite::CloudInsert(cloud);
    Ok(audited(write, "cloud.create", about, actor, snapshot.now, details))
}

/// Changes only the endpoint: the provider determines which blueprints fit, and
/// resources of the cloud were checked against it.
pub fn update(
    snapshot: &CloudSnapshot,
    endpoint: &Endpoint,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let cloud = existing(&snapshot.cloud, expected)?;
    let details = json!({ "before": cloud.endpoint.as_map(), "after": endpoint.as_map() });
    let write = CatalogWrite::CloudUpdate(Cloud { endpoint: endpoint.clone(), ..cloud.clone() });
    Ok(audited(write, "cloud.update", about(cloud), actor, snapshot.now, details))
}

impl Deletable for Cloud {
    type Snapshot = CloudSnapshot;
    const DELETE: &'static str = "cloud.delete";

    fn found(snapshot: &CloudSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.cloud, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn free(&self, snapshot: &CloudSnapshot, _cascade: bool) -> Result<(), Refusal> {
        if snapshot.credentials == 0 {
            return Ok(());
        }
        let message = format!(
            "cloud `{}` still has {} credential(s); delete them first",
            self.name, snapshot.credentials
        );
        let details = json!({ "credentials": snapshot.credentials });
        Err(Refusal::new(ErrorKind::CloudInUse, message).with(details))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deletion::door::Door;
    use crate::deletion::request::request;
    use crate::fixtures::catalog::{mk_ask, mk_cloud};
    use crate::fixtures::{at, mk_actor};

    fn parse(value: &Value) -> Result<Endpoint, InvalidText> {
        Endpoint::parse(value.as_object().unwrap().clone())
    }

    #[test]
    fn an_endpoint_is_flat_and_holds_no_secret() {
        assert!(parse(&json!({"region": "eu-1", "insecure": false, "port": 443})).is_ok());
        let table = [
            (json!({"a b": "x"}), "endpoint.a b"),
            (json!({"a": {"b": 1}}), "endpoint.a"),
            (json!({"a": null}), "endpoint.a"),
            (json!({"a": "x\u{0}"}), "endpoint.a"),
            (json!({"a": 1.5}), "endpoint.a"),
            (json!({"apiToken": "x"}), "endpoint.apiToken"),
            (json!({"Access-Key": "x"}), "endpoint.Access-Key"),
        ];
        for (value, field) in table {
            assert_eq!(parse(&value).unwrap_err().field, field, "{value}");
        }
    }

    #[test]
    fn a_cloud_stays_while_credentials_refer_to_it() {
        let used = CloudSnapshot { now: at(1_000), cloud: Some(mk_cloud()), credentials: 2 };
        let delete = |snapshot: &CloudSnapshot| {
            request::<Cloud>(snapshot, &Door::default(), &mk_ask(), &mk_actor())
        };
        assert_eq!(delete(&used).unwrap_err().kind, ErrorKind::CloudInUse);
        let unused = CloudSnapshot { credentials: 0, ..used.clone() };
        assert_eq!(delete(&unused).unwrap().commit.writes.len(), 2);
        let gone = CloudSnapshot { cloud: None, ..used };
        let refusal = delete(&gone).unwrap_err();
        assert_eq!((refusal.kind, refusal.field), (ErrorKind::CloudNotFound, None));
    }
}

//! Creating, changing and deleting a cloud.

use serde_json::json;

use crate::access::audit::Actor;
use crate::catalog::cloud::{Cloud, Endpoint};
use crate::catalog::rules::common::{About, Removal, audited, name_taken, removed, unknown};
use crate::catalog::snapshot::CloudSnapshot;
use crate::catalog::{CatalogWrite, Name};
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{CloudId, Revision};
use crate::precondition::Expected;

#[derive(Debug, Clone)]
pub struct NewCloud {
    pub id: CloudId,
    pub name: Name,
    pub provider: Name,
    pub endpoint: Endpoint,
}

pub fn create(snapshot: &CloudSnapshot, new: &NewCloud, actor: &Actor) -> Result<Commit, Refusal> {
    if let Some(holder) = &snapshot.cloud {
        return Err(name_taken("name", "cloud", new.name.as_str(), holder.id.as_uuid()));
    }
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
    let write = CatalogWrite::CloudInsert(cloud);
    Ok(audited(write, "cloud.create", about(new.id), actor, snapshot.now, details))
}

/// Changes only the endpoint: the provider determines which blueprints fit, and
/// resources of the cloud were checked against it.
pub fn update(
    snapshot: &CloudSnapshot,
    endpoint: &Endpoint,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let cloud = existing(snapshot)?;
    expected.check("cloud", cloud.revision)?;
    let details = json!({ "before": cloud.endpoint.as_map(), "after": endpoint.as_map() });
    let write = CatalogWrite::CloudUpdate(Cloud { endpoint: endpoint.clone(), ..cloud.clone() });
    Ok(audited(write, "cloud.update", about(cloud.id), actor, snapshot.now, details))
}

pub fn delete(
    snapshot: &CloudSnapshot,
    removal: &Removal,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let cloud = existing(snapshot)?;
    removal.expected.check("cloud", cloud.revision)?;
    if snapshot.credentials > 0 {
        return Err(Refusal::new(
            ErrorKind::CloudInUse,
            format!(
                "cloud `{}` still has {} credential(s); delete them first",
                cloud.name, snapshot.credentials
            ),
        )
        .with(json!({ "credentials": snapshot.credentials })));
    }
    let write = CatalogWrite::CloudUpdate(Cloud {
        deletion_id: Some(removal.deletion_id),
        deleted_at: Some(snapshot.now),
        ..cloud.clone()
    });
    Ok(removed(write, "cloud.delete", about(cloud.id), actor, snapshot.now, removal))
}

fn existing(snapshot: &CloudSnapshot) -> Result<&Cloud, Refusal> {
    snapshot.cloud.as_ref().ok_or_else(|| unknown(ErrorKind::CloudNotFound, "cloud"))
}

fn about(id: CloudId) -> About {
    About::new(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::catalog::{mk_cloud, mk_removal};
    use crate::fixtures::{at, mk_actor};

    #[test]
    fn a_cloud_stays_while_credentials_refer_to_it() {
        let used = CloudSnapshot { now: at(1_000), cloud: Some(mk_cloud()), credentials: 2 };
        let refusal = delete(&used, &mk_removal(), &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::CloudInUse);
        let unused = CloudSnapshot { credentials: 0, ..used.clone() };
        assert_eq!(delete(&unused, &mk_removal(), &mk_actor()).unwrap().writes.len(), 2);
        let gone = CloudSnapshot { cloud: None, ..used };
        let refusal = delete(&gone, &mk_removal(), &mk_actor()).unwrap_err();
        assert_eq!((refusal.kind, refusal.field), (ErrorKind::CloudNotFound, None));
    }
}

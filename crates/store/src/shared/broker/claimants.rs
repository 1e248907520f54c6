//! What the rows of attempts say about their objects outside, for the leak scan.

use slipway_app::ports::store::Page;
use slipway_core::Phase;
use slipway_core::deletion::leak::{Claimant, ObjectRef};
use slipway_core::deletion::orphans::EXPECTING;
use slipway_core::ids::{ClusterId, ProvisionedResourceId};
use sqlx::Row as _;

use super::page::after;
use super::{Connection, Row};
use crate::failure::Failure;
use crate::id_list::IdList;

/// An attempt stays on the cluster it was made for. The namespace is its project's, while
/// the project is placed there.
macro_rules! claimant_columns {
    () => {
        "SELECT a.id, a.status, a.xr_name, a.partition, p.namespace \
         FROM provisioned_resources a "
    };
}

pub(crate) async fn load(
    connection: &mut Connection,
    attempts: &[ProvisionedResourceId],
) -> Result<Vec<Claimant>, Failure> {
    if attempts.is_empty() {
        return Ok(Vec::new());
    }
    let list: IdList = IdList(attempts.iter().map(|id| id.as_uuid()).collect());
    let found = sqlx::query(concat!(
        claimant_columns!(),
        "LEFT JOIN cluster_assignments p ON p.project_id = a.project_id \
         AND p.cluster_id = a.partition WHERE a.id ",
        sql!((one_of "$1"))
    ))
    .bind(list)
    .fetch_all(connection)
    .await?;
    Ok(found.iter().map(claimant).collect::<Result<_, _>>()?)
}

pub(crate) async fn expecting(
    connection: &mut Connection,
    (cluster, page): (ClusterId, Page<ProvisionedResourceId>),
) -> Result<Vec<Claimant>, Failure> {
    let [first, second] = EXPECTING.map(Phase::as_str);
    let found = sqlx::query(concat!(
        claimant_columns!(),
        "JOIN cluster_assignments p ON p.project_id = a.project_id \
         WHERE a.partition = $1 AND a.status IN ($2, $3) \
         AND a.id > $4 ORDER BY a.id LIMIT $5"
    ))
    .bind(cluster.as_uuid())
    .bind(first)
    .bind(second)
    .bind(after(page))
    .bind(i64::from(page.limit))
    .fetch_all(&mut *connection)
    .await?;
    Ok(found.iter().map(claimant).collect::<Result<_, _>>()?)
}

fn claimant(row: &Row) -> Result<Claimant, sqlx::Error> {
    let cluster = ClusterId::new(row.try_get("partition")?);
    let namespace: Option<String> = row.try_get("namespace")?;
    let name: String = row.try_get("xr_name")?;
    Ok(Claimant {
        id: ProvisionedResourceId::new(row.try_get("id")?),
        phase: Phase::parse(row.try_get("status")?),
        home: namespace.map(|namespace| (cluster, ObjectRef { namespace, name })),
    })
}

//! Clusters, and the placement of projects on them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::json;
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::Terms;
use slipway_core::ids::ProjectId;
use slipway_core::placement::cluster::Cluster;
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;
use uuid::Uuid;

use super::rows::spec;
use crate::Error;
use crate::access::authorise::{Operation, authorise};
use crate::files::kind::{Applier, Desired, Document, FileKind, Live};
use crate::placement::clusters;

pub(in crate::files) struct Clusters;

#[async_trait]
impl FileKind for Clusters {
    fn missing(&self) -> ErrorKind {
        ErrorKind::ClusterNotFound
    }

    fn terms(&self) -> Terms {
        Terms {
            computed: &["spec.namespacePrefix", "spec.access"],
            fixed: &["spec.engine"],
            ..Terms::default()
        }
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        by.rows(wanted, |cluster: Cluster| {
            let fields = spec([
                ("engine", json!(cluster.engine)),
                ("namespacePrefix", json!(cluster.namespace_prefix.as_str())),
                ("region", json!(cluster.region.as_ref().map(|region| region.as_str()))),
                ("access", json!(cluster.access.as_ref().map(ToString::to_string))),
            ]);
            Live::row(DocumentKind::Cluster, cluster.name.as_str(), &cluster, fields)
                .leaving(cluster.deletion_id)
        })
        .await
    }

    async fn create(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
    ) -> Result<Option<Secret>, Error> {
        let wanted = clusters::ClusterRequest {
            name: &document.address.name,
            engine: document.text("engine").unwrap_or_default(),
            namespace_prefix: document.text("namespacePrefix"),
            region: document.text("region"),
            access: document.text("access"),
            protected: false,
        };
        clusters::create(context, caller, wanted, None).await?;
        Ok(None)
    }

    async fn change(
        &self,
        Applier { context, caller }: Applier<'_>,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let change = clusters::ClusterChangeRequest {
            region: wanted.text("region"),
            access: wanted.text("access"),
            namespace_prefix: wanted.text("namespacePrefix"),
        };
        clusters::update(context, caller, &wanted.id(), change, wanted.live.expected()).await
    }
}

pub(in crate::files) struct Placements;

#[async_trait]
impl FileKind for Placements {
    fn missing(&self) -> ErrorKind {
        ErrorKind::AssignmentNotFound
    }

    /// A project placed by its region is on a cluster of it, and the other way round.
    fn terms(&self) -> Terms {
        Terms { computed: &["spec.cluster", "spec.region"], ..Terms::default() }
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        let project = Address::new(DocumentKind::Project, &document.address.name);
        let cluster = document.text("cluster");
        let cluster = cluster.map(|cluster| Address::new(DocumentKind::Cluster, cluster));
        std::iter::once(project).chain(cluster).collect()
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        authorise(by.caller, Operation::ClusterReadAssigned)?;
        let projects = by.projects(wanted).await?;
        let ids: Vec<ProjectId> = projects.values().copied().collect();
        let stores = &by.context.stores;
        let placed = stores.placement.cluster_assignments_of(&ids).await?;
        let clusters: Vec<Uuid> = placed.iter().map(|one| one.cluster_id.as_uuid()).collect();
        let names = stores.access.names(&clusters).await?;
        let clusters = by.named::<Cluster>(names.values().cloned()).await?;
        let clusters: BTreeMap<_, _> = clusters.into_iter().map(|one| (one.id, one)).collect();
        let live = |address: &Address| {
            let project = *projects.get(&address.name)?;
            let placed = placed.iter().find(|one| one.project_id == project)?;
            let cluster = clusters.get(&placed.cluster_id)?;
            let fields = spec([
                ("cluster", json!(cluster.name.as_str())),
                ("region", json!(cluster.region.as_ref().map(|region| region.as_str()))),
            ]);
            let live = Live::of_project(address, project, fields);
            let leaving = placed.withdrawn_at.is_some();
            Some(Live { revision: Some(placed.revision), leaving, ..live })
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(&self, by: Applier<'_>, document: &Document) -> Result<Option<Secret>, Error> {
        assign(by, document, Expected::Any).await?;
        Ok(None)
    }

    async fn change(&self, by: Applier<'_>, wanted: Desired<'_>) -> Result<(), Error> {
        assign(by, wanted.document, wanted.live.expected()).await
    }
}

async fn assign(by: Applier<'_>, document: &Document, expected: Expected) -> Result<(), Error> {
    let (cluster, region) = (document.text("cluster"), document.text("region"));
    let name = &document.address.name;
    clusters::assign(by.context, by.caller, name, cluster, region, expected).await
}

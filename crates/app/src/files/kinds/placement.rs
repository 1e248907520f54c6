//! Clusters, and the placement of projects on them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::json;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::Terms;
use slipway_core::ids::ProjectId;
use slipway_core::placement::cluster::Cluster;
use uuid::Uuid;

use super::rows::{named, names, projects, spec};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::files::kind::{Created, Desired, Document, FileKind, Live, text};
use crate::placement::clusters;
use crate::{Context, Error};

pub(in crate::files) struct Clusters;

#[async_trait]
impl FileKind for Clusters {
    fn terms(&self) -> Terms {
        Terms {
            computed: &["spec.namespacePrefix", "spec.access"],
            fixed: &["spec.engine"],
            ..Terms::default()
        }
    }

    fn needs(&self, _document: &Document) -> Vec<Address> {
        Vec::new()
    }

    async fn live(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: &[Address],
    ) -> Result<Vec<Live>, Error> {
        let found = named::<Cluster>(context, caller, names(wanted)).await?;
        let live = |cluster: Cluster| Live {
            address: Address::new(DocumentKind::Cluster, cluster.name.as_str()),
            subject_id: cluster.id.as_uuid(),
            project_id: None,
            revision: Some(cluster.revision),
            fields: spec([
                ("engine", Some(json!(cluster.engine))),
                ("namespacePrefix", Some(json!(cluster.namespace_prefix.as_str()))),
                ("region", cluster.region.map(|region| json!(region.as_str()))),
                ("access", cluster.access.map(|access| json!(access.to_string()))),
            ]),
            versions: Vec::new(),
            leaving: cluster.deletion_id.is_some(),
        };
        Ok(found.into_iter().map(live).collect())
    }

    async fn create(
        &self,
        context: &Context,
        caller: &Caller,
        document: &Document,
    ) -> Result<Created, Error> {
        let (prefix, region) = (document.text("namespacePrefix"), document.text("region"));
        let (engine, access) = (document.required("engine"), document.text("access"));
        let wanted = clusters::ClusterRequest {
            name: &document.address.name,
            engine: &engine,
            namespace_prefix: prefix.as_deref(),
            region: region.as_deref(),
            access: access.as_deref(),
            protected: false,
        };
        clusters::create(context, caller, wanted, None).await?;
        Ok(Created::default())
    }

    async fn change(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let reference = wanted.live.subject_id.to_string();
        let change = clusters::ClusterChangeRequest {
            region: wanted.text("region"),
            access: wanted.text("access"),
            namespace_prefix: wanted.text("namespacePrefix"),
        };
        clusters::update(context, caller, &reference, change, wanted.live.expected()).await
    }
}

pub(in crate::files) struct Placements;

#[async_trait]
impl FileKind for Placements {
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

    async fn live(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: &[Address],
    ) -> Result<Vec<Live>, Error> {
        authorise(caller, Operation::ClusterReadAssigned)?;
        let projects = projects(context, caller, wanted).await?;
        let ids: Vec<ProjectId> = projects.values().copied().collect();
        let placed = context.stores.placement.cluster_assignments_of(&ids).await?;
        let clusters: Vec<Uuid> = placed.iter().map(|one| one.cluster_id.as_uuid()).collect();
        let names = context.stores.access.names(&clusters).await?;
        let clusters = named::<Cluster>(context, caller, names.values().cloned()).await?;
        let clusters: BTreeMap<_, _> = clusters.into_iter().map(|one| (one.id, one)).collect();
        let live = |address: &Address| {
            let project = *projects.get(&address.name)?;
            let placed = placed.iter().find(|one| one.project_id == project)?;
            let cluster = clusters.get(&placed.cluster_id)?;
            Some(Live {
                address: address.clone(),
                subject_id: project.as_uuid(),
                project_id: Some(project),
                revision: Some(placed.revision),
                fields: spec([
                    ("cluster", Some(json!(cluster.name.as_str()))),
                    ("region", cluster.region.as_ref().map(|region| json!(region.as_str()))),
                ]),
                versions: Vec::new(),
                leaving: placed.withdrawn_at.is_some(),
            })
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(
        &self,
        context: &Context,
        caller: &Caller,
        document: &Document,
    ) -> Result<Created, Error> {
        let (cluster, region) = (document.text("cluster"), document.text("region"));
        let (cluster, region) = (cluster.as_deref(), region.as_deref());
        let name = &document.address.name;
        let expected = slipway_core::precondition::Expected::Any;
        clusters::assign(context, caller, name, cluster, region, expected).await?;
        Ok(Created::default())
    }

    async fn change(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let fields = wanted.document.fields();
        let (cluster, region) = (text(&fields, "cluster"), text(&fields, "region"));
        let name = &wanted.live.address.name;
        clusters::assign(context, caller, name, cluster, region, wanted.live.expected()).await
    }
}

//! The whole installation at a glance.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_core::placement::cluster::Cluster;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::deletion::leaks;
use crate::deletion::port::Scheduled;
use crate::files::port::SourceFaults;
use crate::kind::ShowDeleted;
use crate::operations::port::Counts;
use crate::ports::store::Page;
use crate::{Context, Error};

#[derive(Debug, Clone)]
pub struct Status {
    pub counts: Counts,
    /// Open leaks by kind.
    pub leaks: BTreeMap<String, u64>,
    /// Keys that the deletion brake stopped, by name.
    pub brakes: Vec<String>,
    /// Sources whose last apply could not apply everything, and how much.
    pub file_faults: Vec<SourceFaults>,
    pub scheduled: Scheduled,
    /// Each with the wait of its longest due row.
    pub clusters: Vec<(Cluster, Option<Duration>)>,
}

/// More clusters are not shown; `slipway cluster list` has all.
const CLUSTERS: u32 = 200;
/// `slipway source list` has all.
const SOURCES: u32 = 20;
/// `slipway brake list` has all.
const BRAKES: u32 = 20;

pub async fn status(context: &Context, caller: &Caller) -> Result<Status, Error> {
    authorise(caller, Operation::LoopRead)?;
    let stores = &context.stores;
    let page = Page { after: None, limit: CLUSTERS };
    let clusters = stores.kind::<Cluster>().page(&ShowDeleted(false), page).await?;
    let page = Page { after: None, limit: BRAKES };
    let brakes = stores.deletion.brake_list(page).await?;
    let overdue = stores.broker.partition_list_overdue().await?;
    let lag = |cluster: &Cluster| {
        let mut found = overdue.iter().filter(|found| found.partition == cluster.id.into());
        found.next().map(|found| found.overdue)
    };
    Ok(Status {
        counts: stores.operations.counts(context.settings.claimed_within).await?,
        leaks: leaks::open_counts(context).await?,
        brakes: brakes.into_iter().map(|brake| brake.name).collect(),
        file_faults: stores.files.faults_list(SOURCES).await?,
        scheduled: stores.deletion.deletion_scheduled().await?,
        clusters: clusters
            .items
            .into_iter()
            .map(|cluster| (cluster.clone(), lag(&cluster)))
            .collect(),
    })
}

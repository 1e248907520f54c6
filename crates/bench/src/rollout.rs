//! A roll-out over many members against declaring as many anew, on the instant substrate.
//! Both end when the last one is Ready.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use slipway_app::broker::declare::{Declare, declare};
use slipway_app::catalog::blueprints;
use slipway_app::rollouts::read;
use slipway_app::rollouts::upgrade::{self, Upgrade};
use slipway_controller::resources::Batching;
use slipway_core::catalog::blueprint::SubmittedContent;
use slipway_core::rollouts::record::{MemberState, RolloutState, Strategy};
use slipway_testkit::postgres::Postgres;

use crate::database::{Database, Kind, Pool};
use crate::plane::{Plane, SWEEP, operator};
use crate::report::Report;
use crate::substrate::{self, Memory};

const BLUEPRINT: &str = "local-node";
/// How many members are in work at once.
const PARALLEL: u32 = 100;
const TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) async fn measure(
    kind: Kind,
    server: &Postgres,
    members: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let database = Database::new(kind, server).await?;
    let substrate = Arc::new(substrate::Instant::new(Memory::Everything));
    let plane = Plane::open("bench", &database, &substrate).await?;
    let pool = database.pool().await?;
    for version in ["standalone-1", "standalone-2"] {
        publish(&plane, version).await?;
    }
    let running = plane.start(Batching::default(), SWEEP).with_rollouts(&plane);
    let begun = Instant::now();
    for number in 0..members {
        let input = Declare {
            handle: format!("member-{number:04}"),
            blueprint: BLUEPRINT.to_owned(),
            version: Some("standalone-1".to_owned()),
            ..Declare::default()
        };
        declare(&plane.context, &operator(), input).await?;
    }
    until_ready(&pool, members, begun).await?;
    let declared = begun.elapsed();

    let begun = Instant::now();
    let input = Upgrade {
        blueprint: BLUEPRINT.to_owned(),
        to: "standalone-2".to_owned(),
        strategy: Strategy { parallel: PARALLEL, ..Strategy::default() },
        ..Upgrade::default()
    };
    let id = upgrade::start(&plane.context, &operator(), &input).await?;
    loop {
        let (rollout, progress) = read::rollout(&plane.context, &operator(), id).await?;
        match rollout.state {
            RolloutState::Running => {}
            RolloutState::Done => {
                let healthy = progress.of(MemberState::Healthy);
                ensure!(healthy == u64::try_from(members)?, "{healthy} are healthy");
                break;
            }
            state => anyhow::bail!("the roll-out is {state}: {:?}", rollout.message),
        }
        ensure!(begun.elapsed() < TIMEOUT, "the roll-out does not end: {progress:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let rolled_out = begun.elapsed();
    running.stop().await?;
    let how = format!("{members} members in {rolled_out:.2?}, declared in {declared:.2?}");
    let ratio = rolled_out.as_secs_f64() / declared.as_secs_f64();
    report.note(&format!("rollout_vs_declare_{}", kind.name()), ratio, &how);
    Ok(())
}

/// A version whose resources expect no node, so that they become Ready by themselves.
pub(crate) async fn publish(plane: &Plane, version: &str) -> anyhow::Result<()> {
    let content = SubmittedContent {
        version: version.to_owned(),
        xrd: String::new(),
        composition: String::new(),
        parameters: Some(json!({ "parameters": [] })),
        injection_strategy: "cloud-init-user-data".to_owned(),
        mesh_role: Some("standalone".to_owned()),
        provider_kinds: vec!["local".to_owned()],
        install_definitions: false,
        surge: false,
    };
    blueprints::publish(&plane.context, &operator(), BLUEPRINT, content, None)
        .await
        .context("publishing a version")?;
    Ok(())
}

async fn until_ready(pool: &Pool, members: usize, begun: Instant) -> anyhow::Result<()> {
    let ready = "SELECT count(*) FROM provisioned_resources WHERE status = 'Ready'";
    while pool.count(ready).await? < i64::try_from(members)? {
        ensure!(begun.elapsed() < TIMEOUT, "they do not become Ready");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

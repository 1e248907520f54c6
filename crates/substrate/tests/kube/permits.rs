//! The engine asks for a permit immediately before each request that changes
//! something, also if the installation was frozen during the action.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use slipway_app::permits::{ActionPermits, Permits};
use slipway_app::ports::substrate::{Error, Substrate};
use slipway_app::ports::{Definitions, Management};
use slipway_core::access::audit::Actor;
use slipway_core::operations::control;
use slipway_core::placement::definitions::DefinitionState;
use slipway_core::text::Reason;
use slipway_store::StoreConfig;
use slipway_substrate::crossplane::CrossplaneSubstrate;
use slipway_testkit::kube::{Fault, Rule};
use slipway_testkit::wait::until;

use crate::late::Late;
use crate::shared_objects::{PROVIDER, mk_late, provider_config, removal, role};
use crate::support::{NO_SWEEP, TIMEOUT, compare_mark, loose, mk_engine};

/// An engine behind a proxy, whose permits depend on the mode of this store.
struct World {
    late: Late,
    engine: CrossplaneSubstrate,
    permits: ActionPermits,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new(test: &str) -> Option<Self> {
        let late = mk_late(test).await?;
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("slipway.db").display());
        let stores = slipway_store::open(StoreConfig::new(&url)).await.unwrap();
        let permits = ActionPermits { permits: Arc::<Permits>::default(), stores };
        let engine = mk_engine(&late.bench.kubeconfig, late.bench.installation, NO_SWEEP)
            .with_permits(permits.clone());
        compare_mark(&engine).await;
        engine.survey(None, &BTreeSet::from([PROVIDER.to_owned()])).await.unwrap();
        Some(Self { late, engine, permits, _folder: folder })
    }

    /// Freezes or unfreezes, and reads the mode as the next heartbeat does.
    async fn freeze(&self, freeze: bool) {
        let ActionPermits { permits, stores } = &self.permits;
        let (reason, actor) = (Reason::parse("test").unwrap(), Actor::new("test"));
        let hour = Duration::from_secs(3_600);
        let mut rule = |locked: &control::LockedControl| {
            let control = &locked.control;
            Ok(Some(match freeze {
                true => control::freeze(control, hour, &reason, &actor)?,
                false => control::unfreeze(control, &reason, &actor)?,
            }))
        };
        stores.operations.control_decide(&mut rule).await.unwrap();
        permits.read(stores).await.unwrap();
    }

    /// The requests of the engine so far that change something.
    fn changes(&self) -> usize {
        let exchanges = self.late.proxy.exchanges();
        exchanges.iter().filter(|one| ["PATCH", "DELETE"].contains(&&*one.method)).count()
    }
}

/// The definition was read before the freeze, and would be written after it.
#[tokio::test]
async fn a_freeze_while_a_definition_is_written_withholds_the_write() {
    const NAME: &str = "a_freeze_while_a_definition_is_written_withholds_the_write";
    let Some(world) = World::new(NAME).await else { return };
    let proxy = &world.late.proxy;
    // First it is created, then updated.
    for version in ["v1", "v2"] {
        let role = role(&world.late.bench, version);
        let read = Rule::new(Fault::Hold).method("GET").path("clusterroles").path(&role.key.name);
        proxy.add(read.times(1));
        let sent = world.changes();
        let freeze = async {
            until(TIMEOUT, "the definition is being read", async || proxy.waiting() == 1).await;
            world.freeze(true).await;
            assert_eq!(proxy.release().await, 1);
        };
        let (defined, ()) = futures::future::join(world.engine.define(&role), freeze).await;
        assert_eq!(defined.unwrap_err(), Error::Withheld);
        assert_eq!(world.changes(), sent, "nothing was sent");
        world.freeze(false).await;
        let DefinitionState::Seen(found) = world.engine.define(&role).await.unwrap() else {
            panic!("it is there");
        };
        assert_eq!(found.version.as_deref(), Some(version));
    }
}

#[tokio::test]
async fn no_request_that_changes_something_goes_without_a_permit() {
    const NAME: &str = "no_request_that_changes_something_goes_without_a_permit";
    let Some(world) = World::new(NAME).await else { return };
    let (engine, bench) = (&world.engine, &world.late.bench);
    let (fresh, there, leaving) =
        (bench.composite(loose()), bench.composite(loose()), bench.composite(loose()));
    let mut uids = Vec::new();
    for composite in [&there, &leaving] {
        let report = engine.apply(&composite.rendered()).await.unwrap();
        uids.push(report.live().unwrap().uid.clone());
    }
    // Somebody else deletes this one: only our finalizer holds it.
    bench.objects(&leaving).delete(&leaving.name(), &Default::default()).await.unwrap();
    let object = provider_config(bench, 0);
    let seen = engine.put(&object).await.unwrap();
    world.freeze(true).await;
    let sent = world.changes();
    let changed = crate::support::Composite { busy_seconds: 9, ..there.clone() };
    for answer in [
        engine.apply(&fresh.rendered()).await.map(|_| ()),
        engine.apply(&changed.rendered()).await.map(|_| ()),
        engine.delete(&there.address(), &uids[0]).await,
        engine.delete(&leaving.address(), &uids[1]).await,
        engine.put(&provider_config(bench, 1)).await.map(|_| ()),
        engine.remove(&removal(&object, &seen)).await,
        engine.define(&role(bench, "v1")).await.map(|_| ()),
    ] {
        assert_eq!(answer, Err(Error::Withheld));
    }
    assert_eq!(world.changes(), sent, "nothing was sent");
}

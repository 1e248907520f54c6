//! A provider with an engine on it, and composites as the renderer makes them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use slipway_app::ports::substrate::{Address, Error, Substrate};
use slipway_core::broker::attempt::{ProvisionedResource, StoredAttempt, derive_xr_name};
use slipway_core::broker::observation::{CompositeReport, LiveComposite};
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint_version::{BlueprintVersion, Engine};
use slipway_core::catalog::parameters::{ParameterSchema, ParameterValues};
use slipway_core::fixtures::{mk_blueprint, mk_snapshot, mk_stored_attempt};
use slipway_core::ids::{BootstrapTokenId, ClaimToken, InstallationId, ProvisionedResourceId};
use slipway_core::secret::Secret;
use slipway_core::topology::owner::Owner;
use slipway_render::{Injection, NodeSettings, RenderedComposite, hetzner};
use slipway_standin::hetzner::{Provider, ProviderOptions, ServerView};
use slipway_substrate::hetzner::{
    Endpoint, HetznerConfig, HetznerSubstrate, ProjectAccess, TokenFile,
};
use uuid::Uuid;

const TIMEOUT: Duration = Duration::from_secs(20);
pub(crate) const NAMESPACE: &str = "slipway-project-1";
pub(crate) const OURS: u128 = 1;
/// So many requests an hour that the engine may list every few milliseconds.
const PLENTY: u32 = 3_600_000;

pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) provider: Provider,
    pub(crate) engine: HetznerSubstrate,
    pub(crate) uid: String,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let options = ProviderOptions {
            tokens: [("token-main", "main"), ("token-other", "other")]
                .map(|(token, project)| (token.to_owned(), project.to_owned()))
                .into(),
            limit: PLENTY,
            ..ProviderOptions::new("token-main")
        };
        let provider = Provider::start(options).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "token-main\n").unwrap();
        let engine = engine_of(&provider, folder.path().join("token"), OURS);
        let uid = engine.verify(None).await.unwrap();
        let bench = Self { folder, provider, engine, uid };
        bench.compare(&bench.engine).await;
        bench
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    /// Another replica, or this one after a restart.
    pub(crate) async fn another_engine(&self) -> HetznerSubstrate {
        let engine = engine_of(&self.provider, self.token_file(), OURS);
        self.compare(&engine).await;
        engine
    }

    pub(crate) fn engine_of(&self, installation: u128) -> HetznerSubstrate {
        engine_of(&self.provider, self.token_file(), installation)
    }

    /// As a heartbeat does.
    pub(crate) async fn compare(&self, engine: &HetznerSubstrate) {
        engine.high_water_mark_read(true).await.unwrap();
        engine.high_water_mark_compared().await;
    }

    pub(crate) async fn report(&self) -> CompositeReport {
        self.engine.observe(&[self.address(10)]).await.remove(0)
    }

    pub(crate) fn address(&self, id: u128) -> Address {
        Address { substrate_uid: Some(self.uid.clone()), ..address(id) }
    }

    pub(crate) fn composite(&self) -> Composite {
        Composite {
            id: 10,
            claim_token: 3,
            installation: OURS,
            owner: None,
            parameters: json!({
                "server_type": "cx22", "location": "nbg1", "image": "ubuntu-24.04",
            }),
            injection: token(20),
            substrate_uid: Some(self.uid.clone()),
        }
    }

    pub(crate) async fn apply(&self, composite: &Composite) -> Result<CompositeReport, Error> {
        self.engine.apply(&composite.rendered()).await
    }

    /// Applies as a loop does, until the server is ready and nothing differs.
    pub(crate) async fn up(&self, composite: &Composite) -> LiveComposite {
        let rendered = composite.rendered();
        self.until("up", async || {
            self.engine.apply(&rendered).await.map_err(|error| error.to_string())?;
            match self.engine.observe(&[self.address(composite.id)]).await.remove(0) {
                CompositeReport::Present(live)
                    if live.ready && live.owned_hash == rendered.owned_hash() =>
                {
                    Ok(*live)
                }
                other => Err(format!("{other:?}")),
            }
        })
        .await
    }

    /// Deletes as a loop does, until the server is proven absent.
    pub(crate) async fn down(&self, uid: &str) {
        let address = self.address(10);
        self.until("down", async || {
            match self.report().await {
                CompositeReport::Absent => return Ok(()),
                CompositeReport::Present(live) if !live.terminating => {
                    let deleted = self.engine.delete(&address, uid).await;
                    deleted.map_err(|error| error.to_string())?;
                }
                _ => {}
            }
            Err("it is still there".to_owned())
        })
        .await;
    }

    pub(crate) async fn until<T>(
        &self,
        what: &str,
        condition: impl AsyncFn() -> Result<T, String>,
    ) -> T {
        let began = Instant::now();
        loop {
            match condition().await {
                Ok(found) => return found,
                Err(seen) if began.elapsed() > TIMEOUT => {
                    panic!("not {what} within {TIMEOUT:?}: {seen}")
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    pub(crate) fn servers(&self) -> Vec<ServerView> {
        self.provider.servers("main")
    }

    pub(crate) fn server(&self) -> ServerView {
        let servers = self.servers();
        assert_eq!(servers.len(), 1, "{servers:?}");
        servers[0].clone()
    }

    /// How many requests there were that begin like this.
    pub(crate) fn requests(&self, like: &str) -> usize {
        self.provider.requests().iter().filter(|request| request.starts_with(like)).count()
    }

    /// Every request and every answer fit the schemas.
    pub(crate) fn assert_fits(&self) {
        assert_eq!(self.provider.violations(), Vec::<String>::new());
    }
}

fn engine_of(provider: &Provider, token: PathBuf, installation: u128) -> HetznerSubstrate {
    let config = HetznerConfig {
        access: ProjectAccess {
            endpoint: Endpoint::parse(&provider.url()).unwrap(),
            token: TokenFile::new(token),
        },
        installation: InstallationId::new(Uuid::from_u128(installation)),
    };
    let engine = HetznerSubstrate::new(config).unwrap();
    engine.with_waits(Duration::ZERO, Duration::from_secs(60))
}

fn address(id: u128) -> Address {
    let id = ProvisionedResourceId::new(Uuid::from_u128(id));
    Address {
        provisioned_resource_id: id,
        namespace: NAMESPACE.to_owned(),
        name: derive_xr_name(id),
        composite_type: None,
        substrate_uid: None,
    }
}

pub(crate) fn token(id: u128) -> Injection {
    let text = format!("psb_test_aaaa_node_{}", "b".repeat(20 + usize::try_from(id).unwrap()));
    Injection::Fresh { id: BootstrapTokenId::new(Uuid::from_u128(id)), token: Secret::new(text) }
}

/// A composite whose fields a test may change.
#[derive(Clone)]
pub(crate) struct Composite {
    pub(crate) id: u128,
    pub(crate) claim_token: i64,
    pub(crate) installation: u128,
    /// The group that it is a server of.
    pub(crate) owner: Option<Owner>,
    pub(crate) parameters: Value,
    pub(crate) injection: Injection,
    pub(crate) substrate_uid: Option<String>,
}

impl Composite {
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.parameters[name] = value;
        self
    }

    pub(crate) fn rendered(&self) -> RenderedComposite {
        let settings = NodeSettings {
            installation: InstallationId::new(Uuid::from_u128(self.installation)),
            public_url: "http://127.0.0.1:1".to_owned(),
            heartbeat_interval_ms: 1_000,
            orphan_after_ms: 600_000,
            node_image: None,
            authorities: None,
        };
        let claim = ClaimToken(self.claim_token);
        let snapshot = self.snapshot();
        hetzner::render(&snapshot, NAMESPACE, &settings, claim, &self.injection).unwrap()
    }

    fn snapshot(&self) -> ResourceSnapshot {
        let values: BTreeMap<String, Value> =
            serde_json::from_value(self.parameters.clone()).unwrap();
        let schema = json!({ "type": "object", "additionalProperties": true });
        let id = address(self.id).provisioned_resource_id;
        let stored = StoredAttempt {
            id,
            xr_name: derive_xr_name(id),
            parameter_values: ParameterValues::from_stored(values),
            ..mk_stored_attempt(Phase::Pending)
        };
        let mut snapshot = mk_snapshot(Phase::Pending);
        if let Some(placement) = &mut snapshot.placement {
            placement.substrate_uid.clone_from(&self.substrate_uid);
        }
        snapshot.resource.owner.clone_from(&self.owner);
        ResourceSnapshot {
            attempt: ProvisionedResource::hydrate(stored).unwrap(),
            blueprint: Arc::new(BlueprintVersion {
                engine: Engine::Hetzner,
                parameter_schema: ParameterSchema::read(schema).unwrap(),
                ..mk_blueprint()
            }),
            ..snapshot
        }
    }
}

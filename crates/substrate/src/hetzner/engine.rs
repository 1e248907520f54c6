//! Implements the substrate port on a project of the provider. This file has the engine's
//! state, its proofs and its permits; `observe`, `act` and `inventory` do the work.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::permits::{ActionPermits, Permit};
use slipway_app::ports::substrate::{
    Address, Error, HighWaterMark as Answer, InventoryPage, InventoryRequest, Substrate,
};
use slipway_core::broker::observation::{CompositeReport, LiveComposite};
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{GroupId, InstallationId};
use slipway_render::RenderedComposite;
use slipway_render::composite::LABEL_INSTALLATION;

use super::budget::Purpose;
use super::capacity::Exhausted;
use super::client::{Client, ProjectAccess, Session};
use super::error::{ApiError, Reason, failed, not_written};
use super::high_water_mark::HighWaterMark;
use super::identity::{self, Marker, Verified};
use super::servers::{AskedAbout, Creation, Known, Servers};
use super::shapes::Server;
use super::{act, inventory, labels, observe};

/// Greatest age of the identity that a write relies on.
const RECENT: Duration = Duration::from_secs(20);

/// A provider that does not answer must not delay the heartbeat, by which replicas show that
/// they live. Shorter than a heartbeat interval of two seconds and a lease of three seconds
/// together allow.
const MARK_TIMEOUT: Duration = Duration::from_millis(1_500);

#[derive(Debug, Clone)]
pub struct HetznerConfig {
    pub access: ProjectAccess,
    /// The engine touches only servers that carry this installation.
    pub installation: InstallationId,
}

/// The engine on one project of the provider.
#[derive(Debug)]
pub struct HetznerSubstrate {
    client: RwLock<Client>,
    pub(super) installation: String,
    pub(super) servers: Servers,
    pub(super) asked: AskedAbout,
    pub(super) exhausted: Exhausted,
    verified: Verified,
    mark: HighWaterMark,
    /// Without them every request is permitted; for tests.
    permits: Option<ActionPermits>,
}

impl HetznerSubstrate {
    /// Sends no request and reads no file: what is unreachable must not keep a process from
    /// starting.
    pub fn new(config: HetznerConfig) -> Result<Self, Error> {
        Ok(Self {
            client: RwLock::new(Client::new(config.access).map_err(failed)?),
            installation: config.installation.to_string(),
            servers: Servers::default(),
            asked: AskedAbout::default(),
            exhausted: Exhausted::default(),
            verified: Verified::default(),
            mark: HighWaterMark::default(),
            permits: None,
        })
    }

    /// Asks for a permit before each request that changes something.
    #[must_use]
    pub fn with_permits(mut self, permits: ActionPermits) -> Self {
        self.permits = Some(permits);
        self
    }

    /// Reads and raises the mark so often, and asks again for what was exhausted after so long;
    /// for tests.
    #[must_use]
    pub fn with_waits(mut self, mark: Duration, exhausted: Duration) -> Self {
        self.mark = HighWaterMark::every(mark);
        self.exhausted = Exhausted::lasting(exhausted);
        self
    }

    /// Reaches the project by another way from the next request on. What was known about the
    /// one before is forgotten.
    pub async fn reach_by(&self, access: ProjectAccess) -> Result<(), Error> {
        let client = Client::new(access).map_err(failed)?;
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = client;
        self.verified.forget();
        self.servers.forget();
        self.mark.forget().await;
        Ok(())
    }

    /// The identity of the project. Where none was registered yet, it gets one.
    ///
    /// *Expected flow:* find the object that stands for the project → make it, if the project
    /// was never registered → look again, since another replica may have made one too → keep
    /// the one with the lowest id and remove one that we made in vain.
    pub async fn verify(&self, registered: Option<&str>) -> Result<String, Error> {
        let session = self.session(Purpose::Observe).await?;
        if let Some(found) = self.marker(&session).await? {
            return match registered.filter(|uid| *uid != found.uid) {
                None => {
                    self.mark.found().await;
                    Ok(found.uid)
                }
                Some(uid) => Err(identity::another(&found.uid, uid)),
            };
        }
        if let Some(uid) = registered {
            return Err(identity::lost(&self.installation, uid));
        }
        let fresh = identity::fresh(&self.installation, &fresh_uid()?);
        let made = self
            .permitted(&session, async |session| session.placement_group_create(&fresh).await)
            .await;
        let made = match made {
            Ok(made) => Some(made.id),
            Err(error) if error.reason == Reason::NotUnique => None,
            Err(error) => return Err(not_written(error)),
        };
        let found = self.marker(&session).await?;
        let found = found.ok_or_else(|| {
            let problem = "the object that stands for the project is not listed yet";
            Error::Failed(problem.to_owned())
        })?;
        if let Some(made) = made.filter(|made| *made != found.id) {
            let remove = async |session: &Session| session.placement_group_delete(made).await;
            self.permitted(&session, remove).await.map_err(not_written)?;
        }
        self.mark.found().await;
        Ok(found.uid)
    }

    pub(super) fn client(&self) -> Client {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn session(&self, purpose: Purpose) -> Result<Session, Error> {
        self.client().session(purpose).await.map_err(failed)
    }

    pub(super) fn selector(&self) -> String {
        format!("{LABEL_INSTALLATION}={}", self.installation)
    }

    /// Asks the provider now which project this is.
    pub(super) async fn marker(&self, session: &Session) -> Result<Option<Marker>, Error> {
        let found = identity::find(session, &self.installation).await?;
        match &found {
            Some(marker) => self.verified.note(session, &marker.uid),
            None => self.verified.forget(),
        }
        Ok(found)
    }

    /// Asks the provider now whether this is the registered project.
    pub(super) async fn same_project(
        &self,
        session: &Session,
        registered: Option<&str>,
    ) -> Result<(), Error> {
        let registered = registered.ok_or_else(unverified)?;
        match self.marker(session).await? {
            Some(found) if found.uid == registered => Ok(()),
            Some(found) => Err(identity::another(&found.uid, registered)),
            None => Err(identity::lost(&self.installation, registered)),
        }
    }

    /// The same, if the token showed it a moment ago.
    pub(super) async fn recently_same_project(
        &self,
        session: &Session,
        registered: Option<&str>,
    ) -> Result<(), Error> {
        let known = self.verified.within(session, RECENT);
        if known.is_some() && known.as_deref() == registered {
            return Ok(());
        }
        self.same_project(session, registered).await
    }

    /// Sends one request that changes something.
    ///
    /// *Guarantees:* the mode permits the request. The permit lasts until the answer; without
    /// one, for as long as the request may land.
    pub(super) async fn permitted<T>(
        &self,
        session: &Session,
        request: impl AsyncFnOnce(&Session) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let permit = RequestPermit(match &self.permits {
            None => None,
            Some(permits) => Some(permits.enter().await.map_err(|error| match error {
                Error::Withheld => ApiError::new(Reason::Withheld, error.to_string()),
                error => ApiError::new(Reason::Refused, error.to_string()),
            })?),
        });
        let answer = request(session).await;
        if !answer.as_ref().is_err_and(ApiError::may_land) {
            permit.answered();
        }
        answer
    }

    /// The reason to leave the server alone, if another installation owns it.
    pub(super) fn foreign(&self, server: &Server) -> Option<String> {
        let found = labels::installation(&server.labels);
        (found != Some(&*self.installation)).then(|| {
            format!(
                "the server {} ({}) belongs to the installation {} and not to {}; it is left alone",
                server.name,
                server.id,
                found.unwrap_or("(none)"),
                self.installation,
            )
        })
    }

    /// The same, also if another provisioned resource owns it.
    pub(super) fn another(&self, server: &Server, address: &Address) -> Option<String> {
        self.foreign(server).or_else(|| {
            let (found, owner) = (labels::owner(&server.labels), address.provisioned_resource_id);
            (found != Some(owner)).then(|| {
                let found = found.map_or_else(|| "(none)".to_owned(), |id| id.to_string());
                format!(
                    "the server {} ({}) belongs to the provisioned resource {found} and not to {owner}; it is left alone",
                    server.name, server.id
                )
            })
        })
    }

    pub(super) fn report(&self, known: &Known, address: &Address) -> CompositeReport {
        match self.another(&known.server, address) {
            Some(reason) => CompositeReport::Foreign { reason },
            None => CompositeReport::Present(Box::new(live(known))),
        }
    }

    /// What a server of this name or resource is, as far as it is known.
    pub(super) async fn known(
        &self,
        session: &Session,
        address: &Address,
    ) -> Result<Option<Known>, Error> {
        let Some(known) = self.servers.find(address) else { return Ok(None) };
        self.servers.confirm(session, known, &self.asked).await.map(Some).map_err(failed)
    }

    pub(super) fn require_compared(&self, project: Option<&str>) -> Result<(), Error> {
        self.mark.require_compared(project.ok_or_else(unverified)?)
    }
}

fn unverified() -> Error {
    let problem = "the project at the provider was not verified yet; `slipway cluster get` shows why, if it cannot be";
    Error::Failed(problem.to_owned())
}

/// The facts about a server that decisions need. Its user data cannot be read back, so there is
/// nothing to apply again verbatim.
pub(super) fn live(Known { server, creation }: &Known) -> LiveComposite {
    let failure = match creation {
        Creation::Failed(said) => Some(format!("the provider could not make the server: {said}")),
        Creation::Unknown | Creation::Running { .. } | Creation::Done => None,
    };
    let is_made = matches!(creation, Creation::Unknown | Creation::Done);
    LiveComposite {
        uid: server.id.to_string(),
        ready: server.status == Server::RUNNING && is_made,
        failure,
        terminating: server.status == Server::DELETING,
        owned_hash: labels::owned_hash(&server.labels, server.protection.delete),
        carried: labels::carried(&server.labels),
        injected: None,
        evidence: evidence(server),
    }
}

pub(super) fn evidence(server: &Server) -> serde_json::Value {
    let ip = |ip: &Option<super::shapes::Ip>| ip.as_ref().map(|ip| ip.ip.clone());
    serde_json::json!({
        "server_id": server.id,
        "status": server.status,
        "server_type": server.server_type.name,
        "location": server.location.as_ref().map(|location| &location.name),
        "placement_group": server.placement_group.as_ref().map(|group| &group.name),
        "protected": server.protection.delete,
        "ipv4": ip(&server.public_net.ipv4),
        "ipv6": ip(&server.public_net.ipv6),
        "created": server.created,
    })
}

fn fresh_uid() -> Result<String, Error> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|error| Error::Failed(format!("no random identity: {error}")))?;
    Ok(uuid::Builder::from_random_bytes(random).into_uuid().to_string())
}

/// The permit for one request. Dropped without an answer, also because its sender gave up, it
/// counts on.
#[derive(Debug)]
struct RequestPermit(Option<Permit>);

impl RequestPermit {
    fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        if let Some(permit) = self.0.take() {
            permit.unanswered();
        }
    }
}

/// Limits what the heartbeat waits for.
async fn within<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let limit = MARK_TIMEOUT.as_millis();
    tokio::time::timeout(MARK_TIMEOUT, work).await.unwrap_or_else(|_| {
        let problem = format!("high-water mark: the provider did not answer within {limit} ms");
        Err(Error::Unanswered(problem))
    })
}

#[async_trait]
impl Substrate for HetznerSubstrate {
    fn engine(&self) -> Engine {
        Engine::Hetzner
    }

    async fn identity(&self) -> Result<String, Error> {
        let session = self.session(Purpose::Urgent).await?;
        let found = self.marker(&session).await?;
        found.map(|marker| marker.uid).ok_or_else(unverified)
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        observe::observe(self, addresses).await
    }

    async fn apply(&self, rendered: &RenderedComposite) -> Result<CompositeReport, Error> {
        let session = self.session(Purpose::Apply).await?;
        self.recently_same_project(&session, rendered.substrate_uid()).await?;
        self.require_compared(rendered.substrate_uid())?;
        act::apply(self, &session, rendered).await
    }

    async fn high_water_mark_read(&self, _fresh: bool) -> Result<Answer, Error> {
        if let Some(known) = self.mark.known().await {
            return known;
        }
        let found = within(async {
            let session = self.session(Purpose::Observe).await?;
            self.marker(&session).await
        });
        match found.await {
            Ok(Some(marker)) => self.mark.read(marker).await,
            // Every action is refused for the identity of the project.
            Ok(None) => {
                self.mark.unread(Ok(())).await;
                Ok(Answer { value: None, fresh: false })
            }
            Err(error) => {
                self.mark.unread(Err(error.clone())).await;
                Err(error)
            }
        }
    }

    async fn high_water_mark_compared(&self) {
        self.mark.compared().await;
    }

    async fn high_water_mark_write(&self, heartbeat: i64) -> Result<(), Error> {
        within(async {
            let session = self.session(Purpose::Observe).await?;
            self.mark.raise(&session, heartbeat).await
        })
        .await
    }

    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error> {
        let session = self.session(Purpose::Urgent).await?;
        let registered = address.substrate_uid.as_deref();
        self.recently_same_project(&session, registered).await?;
        self.require_compared(registered)?;
        act::delete(self, &session, address, uid).await
    }

    async fn inventory(&self, request: &InventoryRequest) -> Result<InventoryPage, Error> {
        inventory::page(self, request).await
    }

    async fn group_inventory(
        &self,
        group: GroupId,
        request: &InventoryRequest,
    ) -> Result<InventoryPage, Error> {
        inventory::group_page(self, group, request).await
    }
}

//! One resource in each phase, kept there by the stand-in's scripts, and the
//! records about them: of the API server, the machines, the history.

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use slipway_testkit::kube::{ADMIN, AuditRecord, OTHER_ADMIN};
use slipway_testkit::wait;

use crate::control_plane::TIMEOUT;
use crate::world::World;

/// The ids, by the phase that each waits in.
pub(crate) struct Cast {
    pub(crate) provisioning: String,
    pub(crate) enrolling: String,
    pub(crate) ready: String,
    /// Its node works and does not finish.
    pub(crate) deregistering: String,
    /// Crossplane keeps its finalizer.
    pub(crate) deprovisioning: String,
    pub(crate) failed: String,
}

impl Cast {
    /// Brings each of them into its phase; handles begin with `prefix`.
    pub(crate) async fn gather(world: &World, prefix: &str) -> Self {
        let declare = async |name: &str, script: &str| {
            world.declare(&format!("{prefix}-{name}"), script).await
        };
        let cast = Self {
            provisioning: declare("provisioning", "never-ready").await,
            enrolling: declare("enrolling", "no-node").await,
            ready: declare("ready", "").await,
            deregistering: declare("deregistering", "busy").await,
            deprovisioning: declare("deprovisioning", "keep-finalizer").await,
            failed: declare("failed", "fail=no room").await,
        };
        for id in [&cast.deregistering, &cast.deprovisioning] {
            world.plane.wait_for_phase(id, "Ready").await;
            world.plane.delete(id).await;
        }
        cast.wait_until_placed(world).await;
        cast
    }

    pub(crate) const fn all(&self) -> [(&String, &'static str); 6] {
        [
            (&self.provisioning, "Provisioning"),
            (&self.enrolling, "Enrolling"),
            (&self.ready, "Ready"),
            (&self.deregistering, "Deregistering"),
            (&self.deprovisioning, "Deprovisioning"),
            (&self.failed, "Failed"),
        ]
    }

    pub(crate) async fn wait_until_placed(&self, world: &World) {
        for (id, phase) in self.all() {
            world.plane.wait_for_phase(id, phase).await;
        }
    }

    /// Ends what keeps them in their phases: some come up, the others end.
    pub(crate) async fn release(&self, world: &World) {
        for (id, word) in [
            // First those that end: others may have to wait for them.
            (&self.deregistering, "busy"),
            (&self.deprovisioning, "keep-finalizer"),
            (&self.provisioning, "never-ready"),
            (&self.enrolling, "no-node"),
        ] {
            world.tell(id, word, "false").await;
        }
    }

    /// Waits for the phases that follow.
    pub(crate) async fn wait_released(&self, world: &World) {
        for id in [&self.provisioning, &self.enrolling, &self.ready] {
            world.wait_well(id).await;
        }
        for id in [&self.deregistering, &self.deprovisioning] {
            world.plane.wait_for_phase(id, "Deleted").await;
        }
    }
}

impl World {
    /// A client under another user than the control plane, for the API server's audit log.
    pub(crate) async fn hand(&self) -> Client {
        self.kubernetes.client(OTHER_ADMIN).await.unwrap()
    }

    /// Changes the script of a composite, once it exists.
    pub(crate) async fn tell(&self, id: &str, word: &str, value: &str) {
        let (composites, name) = (self.composites().await, self.xr_name(id).await);
        let word = format!("standin.slipway.dev/{word}");
        let patch = json!({ "metadata": { "annotations": { word: value } } });
        wait::until(TIMEOUT, &format!("{name} to be told"), async || {
            composites.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await
        })
        .await;
    }

    /// Waits until it is Ready without blockers.
    pub(crate) async fn wait_well(&self, id: &str) -> Value {
        let well = |seen: &Value| seen["phase"] == "Ready" && seen["blockers"] == json!([]);
        self.plane.wait_for(id, "Ready without a blocker", well).await
    }

    /// Waits for a blocker with this code and text; returns the resource.
    pub(crate) async fn wait_blocked(&self, id: &str, code: &str, text: &str) -> Value {
        let says = |blocker: &Value| {
            blocker["code"] == code && blocker["message"].as_str().unwrap().contains(text)
        };
        self.plane
            .wait_for(id, &format!("blocked by {code}: {text}"), |seen| {
                seen["blockers"].as_array().unwrap().iter().any(says)
            })
            .await
    }

    /// Every transition, oldest first.
    pub(crate) async fn walk(&self, id: &str) -> Vec<String> {
        let resource = self.plane.resource(id).await;
        let history = resource["history"].as_array().unwrap().iter().rev();
        history.map(|entry| entry["to"].as_str().unwrap().to_owned()).collect()
    }

    /// It never returned to an earlier phase.
    pub(crate) async fn assert_straight(&self, id: &str) {
        const ORDER: [&str; 7] = [
            "Pending",
            "Provisioning",
            "Enrolling",
            "Ready",
            "Deregistering",
            "Deprovisioning",
            "Deleted",
        ];
        let walk = self.walk(id).await;
        let positions: Vec<_> = walk
            .iter()
            .map(|phase| ORDER.iter().position(|known| known == phase).unwrap())
            .collect();
        assert!(positions.is_sorted_by(|one, next| one < next), "{id} went {walk:?}");
    }

    /// The API server's records about one composite, oldest first.
    pub(crate) fn asked(&self, name: &str) -> Vec<AuditRecord> {
        let records = self.kubernetes.audit().unwrap();
        let named =
            |record: &AuditRecord| record.object.as_ref().is_some_and(|object| object.name == name);
        let about_it = |record: &&AuditRecord| record.is_about("xservers") && named(record);
        records.iter().filter(about_it).cloned().collect()
    }

    /// The user of each creation of a composite, by the API server's log. A
    /// killed API server may have made one without a record.
    pub(crate) fn makers(&self, name: &str) -> Vec<String> {
        let asked = self.asked(name).into_iter();
        let made = asked.filter(|record| record.verb == "patch" && record.code == Some(201));
        made.map(|record| record.user).collect()
    }

    pub(crate) fn made(&self, name: &str) -> usize {
        self.makers(name).len()
    }

    /// How many machines it had: the stand-in boots one for each composite.
    pub(crate) fn booted(&self, name: &str) -> usize {
        let journal = self.journal();
        journal
            .iter()
            .filter(|line| line["composite"] == *name && line["entry"] == "booted")
            .count()
    }

    /// The control plane deleted it, and only after its node was gone.
    pub(crate) async fn assert_node_went_first(&self, id: &str) {
        let name = self.xr_name(id).await;
        let deletes = self.deletes(&name);
        assert!(!deletes.is_empty(), "{name} was deleted by nobody: {:?}", self.asked(&name));
        self.assert_after_its_node(id, &deletes).await;
    }

    pub(crate) async fn assert_after_its_node(&self, id: &str, deletes: &[AuditRecord]) {
        let gone = self.plane.resource(id).await;
        let Some(deregistered) = gone["node"]["deregistered_at"].as_str() else {
            assert!(gone["node"].is_null(), "{gone}");
            return;
        };
        let deregistered: Timestamp = deregistered.parse().unwrap();
        for delete in deletes {
            assert!(delete.received > deregistered, "{delete:?} before {deregistered}");
        }
    }

    /// The deletions that the control plane requested.
    pub(crate) fn deletes(&self, name: &str) -> Vec<AuditRecord> {
        let mut asked = self.all_deletes(name);
        asked.retain(|record| record.user == ADMIN);
        asked
    }

    /// The deletions by other users, too.
    pub(crate) fn all_deletes(&self, name: &str) -> Vec<AuditRecord> {
        let mut asked = self.asked(name);
        asked.retain(|record| record.verb == "delete");
        asked
    }

    /// The machine ran until its node had finished its work.
    pub(crate) fn assert_drained_before_it_stopped(&self, name: &str) {
        let journal = self.journal();
        let of = |action_name: &str| {
            journal
                .iter()
                .rposition(|line| line["composite"] == *name && line["entry"] == action_name)
        };
        let (left, stopped) = (of("leaving"), of("stopped"));
        assert!(left.is_some() && left < stopped, "{name}: {left:?}, {stopped:?}");
    }

    /// Nothing of ours is left on the cluster, and no leak is open.
    pub(crate) async fn assert_nothing_left(&self) {
        let left = self.composites().await.list(&Default::default()).await.unwrap().items;
        let names: Vec<_> = left.iter().map(|found| &found.metadata.name).collect();
        assert!(left.is_empty(), "{names:?}");
        let servers = crate::world::resource("standin.slipway.dev/v1alpha1", "Server", "servers");
        let servers = Api::<DynamicObject>::all_with(self.client.clone(), &servers);
        let left = servers.list(&Default::default()).await.unwrap().items;
        assert!(left.is_empty(), "machines: {left:?}");
        assert_eq!(self.plane.get("/api/v1/leaks").await, json!([]));
    }
}

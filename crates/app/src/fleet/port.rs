//! The store of Fleet. The four things with a name are kinds; the rest hangs on them.
//!
//! Locks are taken in the order project, agent, generator, stack, template.

use std::collections::BTreeSet;
use std::time::Duration;

use slipway_core::fleet::agent::{Agent, ClusterHealth};
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::links::{Registration, RegistrationSnapshot, Target, TargetSnapshot};
use slipway_core::fleet::object::{DeploymentObject, ObjectSnapshot};
use slipway_core::fleet::offer::{Delivery, HeldOffer, OfferSnapshot};
use slipway_core::fleet::overview::{AgentOverview, ObjectHealthCount};
use slipway_core::fleet::per_agent::RenderSnapshot;
use slipway_core::fleet::progress::{Pair, StackCounts};
use slipway_core::fleet::prune::{PruneRefusal, PruneSnapshot, RefusedPrune};
use slipway_core::fleet::report::{NewReport, ObjectHealth, Report};
use slipway_core::fleet::rollout::MemberFact;
use slipway_core::fleet::stack::Stack;
use slipway_core::fleet::tags::{Annotation, Label, TagSnapshot};
use slipway_core::fleet::template::Template;
use slipway_core::ids::{
    AgentId, DeletionId, DeploymentObjectId, GeneratorId, ProjectId, StackId, TemplateId,
};
use slipway_core::subject::Subject;
use slipway_core::time::Timestamp;
use uuid::Uuid;

use crate::ports::store::{Error, Page, Rule};

/// Which generator a decision is about.
#[derive(Debug, Clone)]
pub enum GeneratorKey {
    /// A new one: its project by reference, and its name.
    New {
        project: String,
        name: String,
    },
    Existing(GeneratorId),
}

/// Which stack a decision is about.
#[derive(Debug, Clone)]
pub enum StackKey {
    New { generator: GeneratorId, name: String },
    Existing(StackId),
}

/// What a new template belongs to.
#[derive(Debug, Clone)]
pub enum TemplateOwner {
    Generator(GeneratorId),
    /// By reference.
    Project(String),
}

/// Which template a decision is about.
#[derive(Debug, Clone)]
pub enum TemplateKey {
    New { owner: TemplateOwner, name: String },
    Existing(TemplateId),
}

/// Which agent a decision is about.
#[derive(Debug, Clone)]
pub enum AgentKey {
    New {
        project: String,
        name: String,
        cluster_name: String,
        /// Those that it registers with, in the order of their ids.
        generators: BTreeSet<GeneratorId>,
    },
    Existing(AgentId),
    /// Also loads what it holds.
    Leaving(AgentId),
}

/// Which things to list; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetFilter {
    pub project: Option<ProjectId>,
    /// Of stacks and templates their owner, of agents one that they are registered with.
    pub generator: Option<GeneratorId>,
    pub name: Option<String>,
    /// Of agents.
    pub cluster_name: Option<String>,
    pub show_deleted: bool,
}

/// Superseded objects that were removed, and the stack after which to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrunedObjects {
    pub removed: u64,
    pub next: Option<StackId>,
}

/// A registration or a target, by the name of the generator or the stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkName {
    pub agent_id: AgentId,
    pub is_target: bool,
    pub name: String,
}

/// The newest object of a stack, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectHead {
    pub stack_id: StackId,
    pub object_id: DeploymentObjectId,
    pub checksum: String,
    pub bytes: usize,
    pub is_marker: bool,
}

/// Whose pairs of agent and stack are listed.
#[derive(Debug, Clone, Copy)]
pub enum PairsOf {
    Agent(AgentId),
    Stack(StackId),
}

port! {
/// Everything about Fleet.
pub trait FleetStore of (Generator, Stack, Template, Agent), intercepted by FleetIntercept {
    /// The stack locked, with the addressed object if there is one.
    async fn decide_object(
        &self,
        stack: StackId,
        object: Option<DeploymentObjectId>,
        rule: &mut Rule<'_, ObjectSnapshot>,
    ) -> Result<(), Error>;

    /// Also of a deleted stack.
    async fn object_fetch(&self, id: DeploymentObjectId) -> Result<Option<DeploymentObject>, Error>;

    /// The objects of a stack for all agents that nobody withdrew, in the order of their
    /// numbers.
    async fn object_list(&self, stack: StackId, page: Page<i64>) -> Result<Vec<DeploymentObject>, Error>;

    /// These objects, the highest number first.
    async fn objects_fetch(&self, ids: &[DeploymentObjectId]) -> Result<Vec<DeploymentObject>, Error>;

    /// The owner locked against deletion.
    async fn decide_label(
        &self,
        owner: Subject,
        label: &str,
        rule: &mut Rule<'_, TagSnapshot<Label>>,
    ) -> Result<(), Error>;

    /// The same by its key.
    async fn decide_annotation(
        &self,
        owner: Subject,
        key: &str,
        rule: &mut Rule<'_, TagSnapshot<Annotation>>,
    ) -> Result<(), Error>;

    async fn label_list(&self, owner: Subject) -> Result<Vec<Label>, Error>;

    async fn annotation_list(&self, owner: Subject) -> Result<Vec<Annotation>, Error>;

    /// Agent and generator locked against deletion.
    async fn decide_registration(
        &self,
        agent: AgentId,
        generator: GeneratorId,
        rule: &mut Rule<'_, RegistrationSnapshot>,
    ) -> Result<(), Error>;

    /// Of an agent, of a generator, or both; of live ones only.
    async fn registration_list(
        &self,
        agent: Option<AgentId>,
        generator: Option<GeneratorId>,
        page: Page<Uuid>,
    ) -> Result<Vec<Registration>, Error>;

    /// Agent and stack locked against deletion.
    async fn decide_target(
        &self,
        agent: AgentId,
        stack: StackId,
        rule: &mut Rule<'_, TargetSnapshot>,
    ) -> Result<(), Error>;

    /// Those of live stacks.
    async fn target_list(&self, agent: AgentId, page: Page<Uuid>) -> Result<Vec<Target>, Error>;

    /// What an agent holds, and whether that is what it should have; one statement, which
    /// reads no object.
    async fn offer_held(&self, agent: AgentId) -> Result<HeldOffer, Error>;

    /// What an agent is connected with and holds, by one statement and without a lock.
    async fn offer_read(&self, agent: AgentId) -> Result<OfferSnapshot, Error>;

    /// The same with the agent locked, and every stack whose holding would change locked
    /// against deletion.
    async fn decide_offer(
        &self,
        agent: AgentId,
        rule: &mut Rule<'_, OfferSnapshot>,
    ) -> Result<(), Error>;

    /// The agent locked, with objects of live stacks, which are locked against deletion.
    async fn decide_renderings(
        &self,
        agent: AgentId,
        bases: &[DeploymentObjectId],
        rule: &mut Rule<'_, RenderSnapshot>,
    ) -> Result<(), Error>;

    /// What is known of agents about the newest object of a stack, and the time.
    async fn rollout_facts(
        &self,
        stack: StackId,
        agents: &[AgentId],
    ) -> Result<(Timestamp, Vec<MemberFact>), Error>;

    /// Records a report about an object that the agent was offered, and ends the holding if
    /// the agent carried out the marker that it was offered last. `None` if it was not offered
    /// the object.
    async fn report_record(&self, report: &NewReport) -> Result<Option<Report>, Error>;

    /// Newest first; of one agent, of those of a project, or of all.
    async fn report_list(
        &self,
        agent: Option<AgentId>,
        project: Option<ProjectId>,
        limit: u32,
    ) -> Result<Vec<Report>, Error>;

    /// One report, unless its agent is outside this project or deleted.
    async fn report_fetch(
        &self,
        id: Uuid,
        within: Option<ProjectId>,
    ) -> Result<Option<Report>, Error>;

    /// Replaces the health of objects that their agent was offered; the others are left out.
    /// Answers how many there were.
    async fn health_record(&self, health: &[ObjectHealth]) -> Result<u64, Error>;

    async fn health_list(&self, object: DeploymentObjectId) -> Result<Vec<ObjectHealth>, Error>;

    /// `false` if there is no such live agent. What it can do is what it said last.
    async fn heartbeat_record(
        &self,
        agent: AgentId,
        cluster: Option<ClusterHealth>,
        can_keep: bool,
    ) -> Result<bool, Error>;

    /// The labels of all of these.
    async fn labels_of(&self, owners: &[Uuid]) -> Result<Vec<Label>, Error>;

    async fn annotations_of(&self, owners: &[Uuid]) -> Result<Vec<Annotation>, Error>;

    /// The registrations and targets of these agents, of live generators and stacks.
    async fn links_of(&self, agents: &[Uuid]) -> Result<Vec<LinkName>, Error>;

    /// The newest object of each of these stacks for all agents that nobody withdrew.
    async fn heads_of(&self, stacks: &[Uuid]) -> Result<Vec<ObjectHead>, Error>;

    /// Every stack that an agent is connected with or holds, or every live agent that holds a
    /// stack or that anything connects with it, the registration alone included.
    async fn pair_list(&self, of: PairsOf, limit: u32) -> Result<Vec<Pair>, Error>;

    /// The live stacks of a generator, and the deleted ones that somebody holds.
    async fn stack_counts(&self, of: GeneratorId, limit: u32) -> Result<Vec<StackCounts>, Error>;

    /// The live agents of a project, one of them, or all, with what each still has to do.
    async fn agent_overview(
        &self,
        project: Option<ProjectId>,
        agent: Option<AgentId>,
    ) -> Result<Vec<AgentOverview>, Error>;

    /// The live stacks that an agent is to have.
    async fn agent_stacks(&self, agent: AgentId) -> Result<Vec<Stack>, Error>;

    /// The objects of a stack that agents see, the newest first.
    async fn stack_health(&self, stack: StackId) -> Result<Vec<ObjectHealthCount>, Error>;

    /// Records what an agent would remove and did not; `false` if there is no such live agent.
    async fn prune_refuse(&self, agent: AgentId, refusal: &PruneRefusal) -> Result<bool, Error>;

    async fn prune_fetch(&self, agent: AgentId) -> Result<Option<RefusedPrune>, Error>;

    /// The agent locked, with what it refused last.
    async fn decide_prune(
        &self,
        agent: AgentId,
        rule: &mut Rule<'_, PruneSnapshot>,
    ) -> Result<(), Error>;

    /// Removes superseded objects of the next `limit` live stacks after this one, with what
    /// agents said about them; the `keep` newest of each stack stay, and what is needed.
    async fn object_prune(
        &self,
        keep: u32,
        after: Option<StackId>,
        limit: u32,
    ) -> Result<PrunedObjects, Error>;

    /// Removes reports that were last repeated longer than `keep` ago, `limit` at most.
    async fn report_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error>;

    /// How far agents are with the removal of the stacks of a deletion.
    async fn delivery_list(&self, deletion: DeletionId, limit: u32) -> Result<Vec<Delivery>, Error>;
}
}

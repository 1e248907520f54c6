//! The store of Fleet. The four things with a name are kinds; the rest hangs on them.
//!
//! Locks are taken in the order project, agent, generator, stack, template.

use slipway_core::fleet::agent::{Agent, ClusterHealth};
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::links::{Registration, RegistrationSnapshot, Target, TargetSnapshot};
use slipway_core::fleet::object::{DeploymentObject, ObjectSnapshot};
use slipway_core::fleet::offer::{Delivery, OfferSnapshot};
use slipway_core::fleet::report::{NewReport, ObjectHealth, Report};
use slipway_core::fleet::stack::Stack;
use slipway_core::fleet::tags::{Annotation, Label, TagSnapshot};
use slipway_core::fleet::template::Template;
use slipway_core::ids::{
    AgentId, DeletionId, DeploymentObjectId, GeneratorId, ProjectId, StackId, TemplateId,
};
use slipway_core::subject::Subject;
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
    /// Also locks and loads what goes with it.
    Leaving(GeneratorId),
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

    /// What an agent is connected with and holds, by one statement and without a lock.
    async fn offer_read(&self, agent: AgentId) -> Result<OfferSnapshot, Error>;

    /// The same with the agent locked, and every stack whose holding would change locked
    /// against deletion.
    async fn decide_offer(
        &self,
        agent: AgentId,
        rule: &mut Rule<'_, OfferSnapshot>,
    ) -> Result<(), Error>;

    /// Records a report about an object that the agent was offered, and ends the holding if
    /// the agent carried out the marker that it was offered last. `None` if it was not offered
    /// the object.
    async fn report_record(&self, report: &NewReport) -> Result<Option<Report>, Error>;

    /// Newest first.
    async fn report_list(&self, agent: Option<AgentId>, limit: u32) -> Result<Vec<Report>, Error>;

    /// Replaces the health of objects that their agent was offered; the others are left out.
    /// Answers how many there were.
    async fn health_record(&self, health: &[ObjectHealth]) -> Result<u64, Error>;

    async fn health_list(&self, object: DeploymentObjectId) -> Result<Vec<ObjectHealth>, Error>;

    /// `false` if there is no such live agent.
    async fn heartbeat_record(
        &self,
        agent: AgentId,
        cluster: Option<ClusterHealth>,
    ) -> Result<bool, Error>;

    /// How far agents are with the removal of the stacks of a deletion.
    async fn delivery_list(&self, deletion: DeletionId, limit: u32) -> Result<Vec<Delivery>, Error>;
}
}

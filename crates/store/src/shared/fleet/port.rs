//! Implements what the port `FleetStore` has beside the rows of its kinds.

use std::time::Duration;

use slipway_app::fleet::port::{FleetStore, LinkName, ObjectHead, PairsOf, PrunedObjects};
use slipway_app::ports::store::{Error, Page, Rule};
use slipway_core::Timestamp;
use slipway_core::fleet::agent::ClusterHealth;
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
use slipway_core::ids::{AgentId, DeletionId, DeploymentObjectId, GeneratorId, ProjectId, StackId};
use slipway_core::subject::Subject;
use uuid::Uuid;

use super::{
    Backend, agent, declared, links, objects, offers, overview, progress, prunes, renderings,
    reports, rolling, tags,
};

port! {
    FleetStore {
        read object_fetch(id: DeploymentObjectId) -> Option<DeploymentObject> = objects::fetch;
        read object_list(stack: StackId, page: Page<i64>)
            -> Vec<DeploymentObject> = objects::list;
        read objects_fetch(ids: &[DeploymentObjectId])
            -> Vec<DeploymentObject> = objects::fetch_all;
        read label_list(owner: Subject) -> Vec<Label> = tags::labels;
        read annotation_list(owner: Subject) -> Vec<Annotation> = tags::annotations;
        read registration_list(
            agent: Option<AgentId>,
            generator: Option<GeneratorId>,
            page: Page<Uuid>,
        ) -> Vec<Registration> = links::registrations;
        read target_list(agent: AgentId, page: Page<Uuid>) -> Vec<Target> = links::targets;
        read offer_held(agent: AgentId) -> HeldOffer = offers::holdings;
        read offer_read(agent: AgentId) -> OfferSnapshot = offers::read;
        read rollout_facts(stack: StackId, agents: &[AgentId])
            -> (Timestamp, Vec<MemberFact>) = rolling::facts;
        write report_record(report: &NewReport) -> Option<Report> = reports::record;
        read report_list(agent: Option<AgentId>, project: Option<ProjectId>, limit: u32)
            -> Vec<Report> = reports::list;
        read report_fetch(id: Uuid, within: Option<ProjectId>)
            -> Option<Report> = reports::fetch;
        read agent_overview(project: Option<ProjectId>, agent: Option<AgentId>)
            -> Vec<AgentOverview> = overview::agents;
        read agent_stacks(agent: AgentId) -> Vec<Stack> = overview::stacks;
        read stack_health(stack: StackId) -> Vec<ObjectHealthCount> = overview::health;
        statement prune_refuse(agent: AgentId, refusal: &PruneRefusal)
            -> bool = prunes::refuse;
        read prune_fetch(agent: AgentId) -> Option<RefusedPrune> = prunes::fetch;
        write health_record(health: &[ObjectHealth]) -> u64 = reports::health;
        read health_list(object: DeploymentObjectId) -> Vec<ObjectHealth> = reports::health_list;
        statement heartbeat_record(
            agent: AgentId,
            cluster: Option<ClusterHealth>,
            can_keep: bool,
        ) -> bool = agent::heartbeat;
        write object_prune(keep: u32, after: Option<StackId>, limit: u32)
            -> PrunedObjects = objects::prune;
        write report_prune(keep: Duration, limit: u32) -> u64 = reports::prune;
        read labels_of(owners: &[Uuid]) -> Vec<Label> = declared::labels;
        read annotations_of(owners: &[Uuid]) -> Vec<Annotation> = declared::annotations;
        read links_of(agents: &[Uuid]) -> Vec<LinkName> = declared::links;
        read heads_of(stacks: &[Uuid]) -> Vec<ObjectHead> = declared::heads;
        read pair_list(of: PairsOf, limit: u32) -> Vec<Pair> = progress::pairs;
        read stack_counts(of: GeneratorId, limit: u32) -> Vec<StackCounts> = progress::counts;
        read delivery_list(deletion: DeletionId, limit: u32)
            -> Vec<Delivery> = offers::deliveries;
    }
    by_hand {
        async fn decide_object(
            &self,
            stack: StackId,
            object: Option<DeploymentObjectId>,
            rule: &mut Rule<'_, ObjectSnapshot>,
        ) -> Result<(), Error> {
            self.decided(objects::ObjectOf { stack, object }, rule).await
        }

        async fn decide_label(
            &self,
            owner: Subject,
            label: &str,
            rule: &mut Rule<'_, TagSnapshot<Label>>,
        ) -> Result<(), Error> {
            self.decided(tags::LabelOf(owner, label), rule).await
        }

        async fn decide_annotation(
            &self,
            owner: Subject,
            key: &str,
            rule: &mut Rule<'_, TagSnapshot<Annotation>>,
        ) -> Result<(), Error> {
            self.decided(tags::AnnotationOf(owner, key), rule).await
        }

        async fn decide_registration(
            &self,
            agent: AgentId,
            generator: GeneratorId,
            rule: &mut Rule<'_, RegistrationSnapshot>,
        ) -> Result<(), Error> {
            self.decided(links::RegistrationOf(agent, generator), rule).await
        }

        async fn decide_target(
            &self,
            agent: AgentId,
            stack: StackId,
            rule: &mut Rule<'_, TargetSnapshot>,
        ) -> Result<(), Error> {
            self.decided(links::TargetOf(agent, stack), rule).await
        }

        async fn decide_offer(
            &self,
            agent: AgentId,
            rule: &mut Rule<'_, OfferSnapshot>,
        ) -> Result<(), Error> {
            self.decided(offers::OfferOf(agent), rule).await
        }

        async fn decide_renderings(
            &self,
            agent: AgentId,
            bases: &[DeploymentObjectId],
            rule: &mut Rule<'_, RenderSnapshot>,
        ) -> Result<(), Error> {
            self.decided(renderings::RenderingsOf { agent, bases }, rule).await
        }

        async fn decide_prune(
            &self,
            agent: AgentId,
            rule: &mut Rule<'_, PruneSnapshot>,
        ) -> Result<(), Error> {
            self.decided(prunes::PruneOf(agent), rule).await
        }
    }
}

//! Implements what the port `FleetStore` has beside the rows of its kinds.

use slipway_app::fleet::port::FleetStore;
use slipway_app::ports::store::{Error, Page, Rule};
use slipway_core::fleet::agent::ClusterHealth;
use slipway_core::fleet::links::{Registration, RegistrationSnapshot, Target, TargetSnapshot};
use slipway_core::fleet::object::{DeploymentObject, ObjectSnapshot};
use slipway_core::fleet::offer::{Delivery, OfferSnapshot};
use slipway_core::fleet::report::{NewReport, ObjectHealth, Report};
use slipway_core::fleet::tags::{Annotation, Label, TagSnapshot};
use slipway_core::ids::{AgentId, DeletionId, DeploymentObjectId, GeneratorId, StackId};
use slipway_core::subject::Subject;
use uuid::Uuid;

use super::{Backend, agent, links, objects, offers, reports, tags};

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
        read_snapshot offer_read(agent: AgentId) -> OfferSnapshot = offers::read;
        write report_record(report: &NewReport) -> Option<Report> = reports::record;
        read report_list(agent: Option<AgentId>, limit: u32) -> Vec<Report> = reports::list;
        write health_record(health: &[ObjectHealth]) -> u64 = reports::health;
        read health_list(object: DeploymentObjectId) -> Vec<ObjectHealth> = reports::health_list;
        statement heartbeat_record(agent: AgentId, cluster: Option<ClusterHealth>)
            -> bool = agent::heartbeat;
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
    }
}

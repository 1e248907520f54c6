//! The order of the catalog's part.

use std::sync::Arc;

use super::{
    cluster_races, composites, definitions, idempotency, labels, parameters, placement, placements,
    races as raced, restores, sequential,
};
use crate::testing::world::World;

pub(in crate::testing) async fn conformance(world: &World) {
    sequential::a_project_is_made_changed_and_deleted(world).await;
    sequential::a_project_that_owns_something_stays(world).await;
    sequential::nothing_is_declared_into_a_deleted_project(world).await;
    sequential::clouds_and_credentials_hold_each_other(world).await;
    sequential::a_deleted_credential_is_not_found_by_declarations(world).await;
    sequential::an_assignment_stays_while_it_is_used(world).await;
    sequential::a_version_comes_back_as_it_was_published(world).await;
    parameters::any_value_comes_back_and_is_rendered(world).await;
    composites::what_a_version_is_made_into_comes_back(world).await;
    composites::the_facts_of_a_cloud_are_those_in_effect(world).await;
    composites::a_second_credential_of_a_provider_is_refused(world).await;
    composites::a_credential_has_a_provider_config_of_its_own(world).await;
    sequential::a_retired_version_is_not_declared_from(world).await;
    sequential::a_blueprint_is_deleted_while_nothing_is_made_from_it(world).await;
    sequential::a_label_is_defined_once(world).await;
    sequential::pages_give_each_row_once(world).await;
    placements::a_project_moves_only_while_it_is_empty(world).await;
    placements::a_cluster_is_taken_on_by_who_serves_it(world).await;
    placements::a_lost_cluster_lets_its_project_go(world).await;
    placements::a_cluster_is_changed_and_deleted_while_nothing_is_on_it(world).await;
    placement::a_namespace_is_kept_and_cleared(world).await;
    placement::a_cluster_keeps_the_identity_that_it_showed_first(world).await;
    placement::a_region_offers_its_usable_clusters(world).await;
    definitions::the_newest_version_is_demanded_and_its_progress_kept(world).await;
    definitions::what_is_published_or_in_use_goes_on_being_served(world).await;
    definitions::a_composite_names_the_composition_of_its_version(world).await;
    definitions::a_deleted_blueprint_or_cluster_demands_nothing(world).await;
    placements::labels_in_effect_and_blockers_select(world).await;
    labels::a_relabelled_project_makes_its_resources_due(world).await;
    labels::a_changed_definition_makes_what_has_the_label_due(world).await;
    restores::every_kind_comes_back(world).await;
    restores::a_taken_name_is_a_conflict(world).await;
    restores::a_project_needs_its_cluster(world).await;
    restores::a_cluster_that_is_registered_again_stays_deleted(world).await;
    restores::a_project_comes_back_with_its_members(world).await;
    restores::a_resource_comes_back_as_a_new_attempt(world).await;
    restores::deletions_are_filtered(world).await;
    idempotency::a_key_is_bound_with_what_it_made(world).await;
    idempotency::the_first_answer_is_kept(world).await;
}

pub(in crate::testing) async fn races(world: &Arc<World>) {
    raced::create_with_create_of_the_same_name(world).await;
    raced::nothing_is_inserted_under_a_parent_that_leaves(world).await;
    raced::withdraw_with_declare(world).await;
    raced::move_with_declare(world).await;
    raced::publish_with_publish(world).await;
    raced::retire_with_declare(world).await;
    raced::publish_with_delete(world).await;
    composites::two_credentials_of_a_provider_at_once(world).await;
    composites::two_retries_with_two_credentials_at_once(world).await;
    cluster_races::delete_with_a_pass(world).await;
    cluster_races::update_with_a_pass(world).await;
    cluster_races::delete_with_the_end_of_a_namespace(world).await;
    restores::restore_with_create_of_the_same_name(world).await;
    restores::restore_with_restore(world).await;
    restores::restore_with_delete(world).await;
    restores::restore_with_delete_of_its_project(world).await;
    restores::restore_with_declare_of_the_handle(world).await;
    raced::two_requests_with_one_key(world).await;
    raced::two_answers_of_one_key(world).await;
}

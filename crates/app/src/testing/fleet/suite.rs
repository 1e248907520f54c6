//! All cases of Fleet, in the order in which they run.

use super::client::Client;
use super::{deleting, differing, explaining, leaving, offering, races, rolling, things};
use crate::ports::Stores;
use crate::testing::world::World;

/// The sequential half.
pub async fn fleet(stores: Stores) {
    let client = Client::new(&World::new(stores).await);
    things::things_are_made_changed_and_listed(&client).await;
    things::names_are_of_a_project_and_free_again_after_a_deletion(&client).await;
    things::templates_have_versions(&client).await;
    things::objects_are_numbered_and_never_change(&client).await;
    things::a_withdrawn_object_is_followed_by_the_newest_that_remains(&client).await;
    things::every_principal_sees_its_own(&client).await;
    offering::an_agent_is_offered_what_it_is_connected_with(&client).await;
    offering::what_is_taken_from_an_agent_is_owed_until_it_says_so(&client).await;
    offering::reports_are_coalesced_and_about_what_was_offered(&client).await;
    Box::pin(offering::offers_are_what_the_rule_says(&client)).await;
    deleting::a_marker_goes_to_every_agent_that_holds_the_stack(&client).await;
    deleting::a_generator_goes_and_comes_back_with_what_it_owns(&client).await;
    deleting::an_agent_leaves_leaks_and_takes_them_back(&client).await;
    deleting::nothing_is_purged_while_a_marker_is_owed(&client).await;
    deleting::a_plan_names_everything_and_protection_holds(&client).await;
    leaving::a_kept_stack_is_let_go_of(&client).await;
    leaving::keep_waits_with_the_grace(&client).await;
    Box::pin(leaving::a_purge_at_once_leaves_the_marker(&client)).await;
    leaving::a_generator_is_purged_with_everything_under_it(&client).await;
    leaving::retention_is_of_the_generator_and_many_are_purged_at_once(&client).await;
    Box::pin(leaving::a_project_goes_and_comes_back_with_its_fleet(&client)).await;
    leaving::the_brake_counts_stacks(&client).await;
    leaving::superseded_objects_are_pruned(&client).await;
    Box::pin(rolling::an_object_reaches_agents_in_waves(&client)).await;
    Box::pin(rolling::a_failure_pauses_it_and_it_goes_back(&client)).await;
    Box::pin(rolling::what_ends_a_rollout(&client)).await;
    rolling::members_that_leave_or_fail_later(&client).await;
    Box::pin(differing::each_agent_is_offered_its_own_rendering(&client)).await;
    Box::pin(differing::renderings_go_and_come_back_with_their_object(&client)).await;
    Box::pin(differing::a_rollout_stops_where_nothing_can_be_rendered(&client)).await;
    leaving::a_restored_database_lifts_numbers(&client).await;
    Box::pin(explaining::an_explanation_says_who_has_what_and_why_not(&client)).await;
    offering::while_frozen_an_agent_is_offered_what_it_has(&client).await;
}

/// The race half.
pub async fn fleet_races(stores: Stores, rounds: u32) {
    let client = Client::new(&World::new(stores).await);
    for _ in 0..rounds {
        races::submit_with_delete(&client).await;
        races::submit_with_submit(&client).await;
        races::delete_with_delete(&client).await;
        races::create_with_delete_of_its_generator(&client).await;
        races::restore_with_create_of_the_same_name(&client).await;
        races::poll_with_delete(&client).await;
        races::poll_with_poll(&client).await;
        races::poll_with_untarget(&client).await;
        leaving::poll_with_purge_at_once(&client).await;
        leaving::create_with_delete_of_the_project(&client).await;
        leaving::poll_with_delete_that_keeps(&client).await;
        rolling::submit_with_pass(&client).await;
        rolling::poll_with_abort(&client).await;
    }
}

//! The order of the sequential half.

use super::{
    abandon, aborts, approvals, batches, brakes, claims, control, counts, decisions, declarations,
    deletions, events, explain, holding, leaks, lifecycle, lists, plans, proofs, records, renewals,
    retries, tasks,
};
use crate::ports::Stores;
use crate::testing::world::{World, apart};
use crate::testing::{access, catalog, installed_keys, mesh, purges, rollouts, surges, updates};

/// Runs the sequential half.
pub async fn conformance(store: Stores) {
    let world = World::new(store).await;
    lists::the_database_answers_and_knows_its_installation(&world).await;
    lists::a_seed_is_written_once(&world).await;
    apart(|| installed_keys::conformance(&world)).await;

    declarations::a_declaration_is_there_as_it_was_declared(&world).await;
    declarations::what_is_missing_is_refused_by_name(&world).await;
    declarations::references_go_by_name_or_id(&world).await;
    declarations::a_taken_handle_is_refused_and_nothing_is_written(&world).await;

    decisions::unknown_keys_are_not_found(&world).await;
    decisions::a_refusal_writes_nothing(&world).await;
    decisions::what_was_read_before_another_write_is_refused_whole(&world).await;
    decisions::an_empty_commit_changes_nothing(&world).await;
    decisions::blockers_keep_their_age_and_go_away(&world).await;

    Box::pin(deletions::a_deletion_waits_for_its_grace_and_can_be_cancelled(&world)).await;
    deletions::a_deletion_begins_when_its_grace_ends(&world).await;
    deletions::a_row_is_deleted_when_its_grace_ends_if_nothing_needs_it(&world).await;
    deletions::a_project_is_deleted_with_what_is_in_it(&world).await;
    deletions::what_is_protected_stays(&world).await;
    deletions::what_is_deleted_protects_no_project(&world).await;
    apart(|| purges::conformance(&world)).await;

    brakes::a_caller_that_deletes_too_much_is_stopped(&world).await;
    brakes::a_caller_that_deletes_half_of_a_project_is_stopped(&world).await;
    approvals::a_second_person_approves(&world).await;
    approvals::the_two_people_are_two_at_the_door(&world).await;
    plans::a_plan_shows_what_goes_and_becomes_one_deletion(&world).await;
    plans::a_resource_is_planned_with_its_node(&world).await;
    plans::a_plan_of_a_blueprint_names_its_versions_and_users(&world).await;
    plans::a_moved_world_is_refused_with_the_difference(&world).await;
    plans::a_plan_is_used_once_and_expires(&world).await;
    holding::what_is_kept_outside_is_recorded_first_and_stays_on_record(&world).await;
    holding::a_report_has_everything_once_and_in_one_order(&world).await;

    apart(|| rollouts::conformance(&world)).await;

    counts::what_is_made_is_counted_once_where_it_stands(&world).await;

    batches::nothing_and_nobody_are_no_errors(&world).await;
    batches::a_batch_walks_to_ready_and_out_again(&world).await;
    batches::a_refused_row_takes_no_other_with_it(&world).await;
    batches::what_no_rule_foresees_is_found_row_by_row(&world).await;
    batches::a_batch_gives_claims_back_as_releases_do(&world).await;

    claims::a_claimed_attempt_is_not_claimed_again(&world).await;
    claims::a_partition_is_claimed_by_itself(&world).await;
    claims::a_clock_that_went_back_leaves_nothing_lying(&world).await;
    claims::a_claim_takes_no_more_than_it_was_asked_for(&world).await;
    claims::a_lease_that_is_over_is_claimed_anew_and_fences_the_old_one(&world).await;
    claims::a_wake_during_a_claim_makes_it_due_again(&world).await;
    claims::a_release_sets_when_it_is_due_and_counts_failures(&world).await;
    claims::a_quarantined_row_has_a_blocker_and_is_released(&world).await;
    claims::waking_all_wakes_what_is_not_settled(&world).await;
    claims::a_restart_takes_back_local_claims_and_leaves_remote_ones_to_lapse(&world).await;

    renewals::a_renewed_claim_lasts_longer(&world).await;
    renewals::a_stale_claim_is_not_renewed(&world).await;
    renewals::a_claim_given_back_is_not_renewed(&world).await;
    renewals::a_wake_outlives_a_renewal(&world).await;

    records::a_history_has_quiet_and_announced_changes_in_order(&world).await;
    records::a_record_is_written_whole_and_gives_the_claim_back(&world).await;
    records::a_record_misses_whatever_it_did_not_see(&world).await;
    records::a_record_that_misses_takes_no_other_with_it(&world).await;
    records::nobody_claims_what_is_being_decided(&world).await;
    control::a_freeze_is_read_back_lifted_and_wakes(&world).await;
    control::a_heartbeat_counts_and_names_its_replica(&world).await;
    control::each_mark_has_a_counter_of_its_own(&world).await;
    control::a_registry_write_is_refused_under_another_mode(&world).await;
    control::a_mark_ahead_lifts_every_claim(&world).await;
    control::withheld_shows_what_is_withheld_and_what_is_unknown(&world).await;

    Box::pin(lifecycle::a_resource_walks_to_ready_and_out_again(&world)).await;
    lifecycle::a_lost_answer_to_register_is_given_again(&world).await;
    lifecycle::a_lost_substrate_gets_a_new_token_and_a_new_node(&world).await;
    lifecycle::force_revokes_the_key(&world).await;
    lifecycle::a_machine_enrols_again(&world).await;
    lifecycle::a_machine_is_there_until_somebody_says_it_is_gone(&world).await;
    lifecycle::a_revoked_token_enrols_nobody(&world).await;

    proofs::absence_is_proven_again_one_lease_after_deleted(&world).await;
    proofs::absence_is_proven_in_batches(&world).await;
    proofs::an_old_attempt_is_proven_gone_while_its_successor_lives(&world).await;
    retries::a_failure_stays_on_record_and_a_retry_corrects_it(&world).await;
    apart(|| updates::conformance(&world)).await;
    apart(|| surges::conformance(&world)).await;
    proofs::a_flapping_window_has_one_start(&world).await;
    abandon::an_abandoned_resource_is_deleted_with_records_of_what_may_be_left(&world).await;
    abandon::what_comes_back_after_it_was_abandoned_is_a_leak_and_ends(&world).await;

    mesh::addresses_are_dense_given_back_and_run_out(&world).await;
    mesh::a_nonce_registers_once_in_a_project(&world).await;
    mesh::a_public_key_has_one_registered_node_in_a_project(&world).await;
    mesh::a_mesh_moves_only_while_nobody_lives_in_it(&world).await;
    mesh::a_node_sees_its_live_peers_and_is_shown_as_it_says(&world).await;

    apart(|| catalog::conformance(&world)).await;
    apart(|| access::conformance(&world)).await;

    aborts::a_caller_that_goes_away_leaves_nothing_open(&world).await;

    leaks::rows_say_where_their_objects_belong(&world).await;
    leaks::a_woken_attempt_is_due(&world).await;
    leaks::a_finding_counts_when_it_lasts_and_is_one_leak(&world).await;
    leaks::a_scan_ends_what_it_did_not_find_and_nothing_else(&world).await;
    leaks::a_leak_that_ended_and_is_seen_again_is_another(&world).await;
    leaks::a_removal_is_kept_until_it_is_done(&world).await;
    leaks::a_claimed_object_is_not_removed(&world).await;
    leaks::leaks_are_listed_and_counted(&world).await;
    leaks::concurrent_scans_agree(&world).await;

    tasks::a_task_is_due_when_it_was_said_and_sooner_if_asked(&world).await;
    tasks::a_task_has_one_holder_and_late_ones_are_fenced(&world).await;
    tasks::a_task_loses_no_wake(&world).await;
    tasks::a_restart_takes_back_its_tasks_or_leaves_them_to_lapse(&world).await;

    explain::a_line_says_what_the_row_says(&world).await;
    explain::attempts_are_counted_by_phase(&world).await;

    lists::pages_give_each_row_once_and_in_order(&world).await;
    lists::resources_are_filtered(&world).await;

    events::a_subscription_is_opened_once_and_claimed_by_one(&world).await;
    events::a_late_worker_does_not_move_the_cursor(&world).await;
    events::a_failure_is_shown_and_waited_out(&world).await;
    events::an_event_without_a_project_is_for_readers_of_all(&world).await;
    // From here on events are pruned, which the tests above do not expect.
    events::pruning_stops_at_subscribers_and_is_remembered(&world).await;
    events::history_and_audit_of_what_is_there_are_kept(&world).await;
    abandon::what_may_still_exist_is_not_forgotten(&world).await;
    events::a_history_is_paged_and_keeps_its_first_and_newest_lines(&world).await;
}

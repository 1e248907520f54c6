//! A model of the claim protocol, and a checker that visits every state that it can
//! reach. Compiled for tests only: it proves the rules of this crate and does not ship.
//! [`late`] is a second model, of writes that take effect after the end of their lease.
//!
//! One row, two workers, a requester, an outside world and a clock. Every atomic
//! step of the product (a statement, a transaction, the start of an outside
//! action) is one transition. A worker that is not scheduled is paused, for as
//! long as the others and the clock go on. A late write therefore needs no
//! transition of its own: it is a worker that is scheduled again after its lease.
//!
//! # What each transition models
//!
//! | transition | code that it models |
//! |---|---|
//! | `Tick` | the database's clock and every monotonic clock move on by one; they run at the same rate and do not jump |
//! | `Request` | a person's decision (`broker::delete`): the row changes, its revision moves, and `wake_assignments!` in the same transaction |
//! | `Fact` | a fact beside the row changes that decisions depend on (an enrolment, an acknowledged drain): `wake_assignments!` without a new revision |
//! | `Ask` | the driver reads its clock before it sends the claim, `Lease::new` |
//! | `Claim` | `Table::claim` |
//! | `Load` | `attempt_load`, and dropping a row whose claim moved since |
//! | `Observe` | `converge::observe` and the pure decision |
//! | `Fence`, `Intend` | `broker::prepare`: `fence` compares claim token and revision, the commit names the revision; before an apply, not before a delete. The store locks the row between the two, so that no claim comes between: the model then takes both as one `Intend`. Without `intent_keeps_claims_out` they are two steps |
//! | `Start` | `Lease::allows` with the action's deadline, then the action; if the lease does not allow it, the tick goes on without the action |
//! | `Finish`, `Fail` | the outside action ends, with or without effect; by when, see [`config::Landing`] |
//! | `Abandon` | the timeout around the action, or a connection that was cut: the worker goes on, and so may the action (only if actions need not end by their deadline). The worker then records without a release (`Outcome::Unanswered`), and its claim lapses |
//! | `Record` | `broker::record` in one transaction with the release: names revision, claim token and that the claim was not released before, compares `wake` with `claimed_wake`. A record without a lock (`attempt_record`) is this step if `wake` has not moved, and no step at all if it has |
//! | `RecordUnanswered` | the same, but the answer is lost, and the worker releases a claim that it no longer has |
//! | `Release` | `Table::release` without a record (nothing changed, or overtaken): names the claim token, and that the claim was not released before |
//! | `AskRenewal` | the lease renewer of a batch reads its clock before it sends the renewal, at any moment between claim and record |
//! | `Renew` | `Table::renew`: names the claim token and its holder; may arrive arbitrarily late, even after its worker's death |
//! | `HearRenewal` | the lease renewer takes over the longer lease of the renewed claim, counted from its clock reading |
//! | `Crash`, `Restart` | the worker forgets everything; a new life starts |
//! | `Reclaim` | a new life that first ends the claims of its earlier one: `Table::reclaim_in`, which moves the claim token; only where `Actions::earlier_claims` says so |
//!
//! A settled row is released without a due time, as the product does for
//! terminal phases. The sweep of the other rows is left out on purpose: it
//! would heal a lost wake, and so hide it.
//!
//! # Why the space is finite and complete
//!
//! Times are stored as the time left, and the three counters are renamed to
//! their ranks after each step (see [`state::State::canonical`]). Requests,
//! crashes, pauses and claims are thereby unbounded: the checker exhausts the
//! protocol without a limit of depth.
//!
//! # Assumptions
//!
//! [`config::Assumptions`] lists them, and the tests show for each that a
//! property breaks without it.

mod checker;
mod config;
mod late;
mod machine;
mod properties;
mod renewal;
mod state;
mod tests;
mod transition;

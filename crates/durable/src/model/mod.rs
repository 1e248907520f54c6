//! A model of the claim protocol, and a checker that visits every state it can
//! get into. Compiled for tests only: it proves the rules of this crate and is
//! no part of what ships.
//!
//! One row, two workers, a requester, an outside world and a clock. Every step
//! of the product that is atomic (a statement, a transaction, the start of an
//! outside action) is one transition; whoever is not scheduled is paused, for
//! as long as the others and the clock please. A late write is therefore
//! nothing special: it is a worker that is scheduled again after its lease.
//!
//! # What stands for what
//!
//! | transition | code it stands for |
//! |---|---|
//! | `Tick` | the database's clock and every monotonic clock move on by one; they run at the same rate and do not jump |
//! | `Request` | a decision for a person (`rules::delete`): the row changes, its revision moves, and `wake_assignments!` in the same transaction |
//! | `Fact` | something that is decided on changes beside the row (an enrolment, a drain acknowledged): `wake_assignments!` without a new revision |
//! | `Ask` | the driver reads its clock before it sends the claim, `Lease::new` |
//! | `Claim` | `claim_sql!` |
//! | `Load` | `attempt_load`, and letting go of a row whose claim moved since |
//! | `Observe` | `converge::observe` and the pure decision |
//! | `Fence`, `Intend` | `rules::prepare`: `fence` compares claim token and revision, the commit names the revision; before an apply, not before a delete. The store locks the row from the one to the other, so that no claim comes between; the model lets one come |
//! | `Start` | `Lease::allows` with the action's deadline, then the action; or none, and the tick is recorded as held |
//! | `Finish`, `Fail` | the outside action ends, with or without effect, within its deadline |
//! | `Abandon` | the timeout around the action: the worker goes on, the action may too (only if actions need not end by their deadline) |
//! | `Record` | `rules::record` in one transaction with `release_sql!`: names revision and claim token, compares `wake` with `claimed_wake`. A record without a lock (`attempt_record`) is this step where `wake` has not moved, and no step at all where it has |
//! | `RecordUnanswered` | the same, but the answer is lost, and the worker gives back what it no longer has |
//! | `Release` | `release_sql!` without a record (nothing changed, or overtaken): names the claim token only |
//! | `AskRenewal` | the keeper of a batch reads its clock before it sends the renewal, at any moment between claim and record |
//! | `Renew` | the store's renewal: names the claim token and its holder; may be as late as it likes, also after its worker's death |
//! | `HearRenewal` | the keeper takes the longer lease for what was renewed, counted from the reading |
//! | `Crash`, `Restart` | the worker forgets everything; a new life starts |
//! | `Reclaim` | a new life that first ends the claims of its earlier one: the store's reclaim, which moves the claim token |
//!
//! A settled row is given back without a due time, as the product does for
//! terminal phases. The sweep of the others is left out on purpose: it would
//! heal a lost wake, and hide it.
//!
//! # Why the space is finite and nothing is cut off
//!
//! Times are kept as what is left of them, and the three counters are renamed
//! to their ranks after each step (see [`state::State::canonical`]). Requests,
//! crashes, pauses and claims are thereby unbounded: what is exhausted is the
//! protocol for ever, not up to some depth.
//!
//! # What is taken for granted
//!
//! [`config::Assumptions`] says it, and the tests show of each that the promise
//! falls without it.

mod checker;
mod config;
mod machine;
mod properties;
mod renewal;
mod state;
mod tests;
mod transition;

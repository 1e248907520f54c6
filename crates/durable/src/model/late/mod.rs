//! A model of writes that take effect late: one object on a cluster, its row, two
//! workers, and requests that go on without their sender.
//!
//! The model of claims beside this one assumes that a request is over when the lease
//! that it was sent under has ended. This one assumes nothing of the kind. A request
//! takes effect at any later time, or twice, or never: after its worker gave up or
//! died, after its claim lapsed, after newer claims have acted. What holds then, holds
//! by the conditions that every write names. So there is no clock here. A lease may end
//! at any moment, and only the database knows.
//!
//! # What is guaranteed
//!
//! - *A composite.* No write replaces what a newer claim wrote. Where a row is settled,
//!   the object carries the token that the registry has. Nothing that is wanted is
//!   deleted. One thing remains. A newer claim may settle without a write, because the
//!   object is gone or already as it should be, and the request of an older claim then
//!   finds exactly what it names: its create makes the object again, or its update
//!   changes the version that it read. Deletion verification, the scan or the watch
//!   finds that, and the next tick corrects it. The model of claims shows that this needs
//!   a request that takes longer than its lease, because the lease is waited for after a
//!   death and after a request without an answer.
//! - *A shared object.* Nothing is deleted that somebody was admitted to, and what
//!   somebody was admitted to is there.
//! - *Both.* From every state the undisturbed loop comes to rest, with object and row
//!   in agreement.
//!
//! # What each transition models
//!
//! | transition | code that it models |
//! |---|---|
//! | `Change` | composite: a decision that changes what the object should carry (a token by hand, `nodes::token`; a new version of the blueprint) |
//! | `ChangeBack` | composite: what the object should carry is again what it carries, without a write |
//! | `Delete` | composite: `broker::delete`; nobody takes it back |
//! | `Declare`, `Undeclare` | shared: the first declaration that needs the object; the last resource that needed it is gone |
//! | `Vanish` | somebody deletes the object; the watch wakes the row |
//! | `Verify` | composite: deletion verification, the scan for orphans or the watch finds that the object is not as it was settled. Shared: the next pass of the placement loop |
//! | `Lapse` | the lease of a claim has ended |
//! | `Land`, `LandAgain`, `Lose` | the API server carries out a request, carries it out and will do so once more, or never hears of it. `CrossplaneSubstrate` sends it: `crossplane/act.rs` for composites, `crossplane/management.rs` for shared objects, with the conditions of [`config::Conditions`] |
//! | `Claim` | `attempt_claim` or `task_claim`, load and observation |
//! | `Act` | the decision and its commit. Composite: `decide`, `prepare` under the fence (it mints), the request; or the record that settles the row. Shared: `decide_project_namespace` under the project's lock, on an observation of any age and the row as it is now; the count of removals is in `placement::rules::namespace`; then, under a lease, the request |
//! | `Reread` | the retry inside an apply after a conflict: reads the object and writes again, unless a newer claim wrote it (`may_write`) |
//! | `Record` | the record after an answer. A shared object is decided about once more, on what the answer said |
//! | `GiveUp` | the timeout around the action, or a connection that was cut: the request goes on; the claim lapses |
//! | `Crash`, `Restart` | the worker forgets everything, and its claim stays, or a new life ends it, see `Actions::earlier_claims`. A worker that stays away is one that is not scheduled |
//!
//! # Bounds
//!
//! Two workers, and at most [`state::REQUESTS`] requests under way at once: a worker
//! sends nothing while there are as many. Everything else is unbounded: see
//! [`state`] for how the counters become finite, so that requests, crashes, deletions
//! and claims may come in any number, and the search has no limit of depth. An object is
//! gone at once when its deletion takes effect: nobody writes one that terminates.

mod config;
mod machine;
mod state;
mod tests;

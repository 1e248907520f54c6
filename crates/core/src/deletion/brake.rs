//! The brake: a caller that deletes many resources or stacks in a short time is stopped, until an
//! admin says that it is meant. It stops a script that runs over its target before the
//! first fifty are gone, and somebody who is in the wrong terminal.
//!
//! It counts at the door, with everything that a request would take down. The request that
//! goes too far trips it: that one is refused, nothing of it is recorded, and so is every
//! later one of the caller, until the brake is released.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::event::{BRAKE_RELEASED, BRAKE_TRIPPED};
use crate::error::{ErrorKind, Refusal};
use crate::event::{Event, EventType};
use crate::ids::{ApiKeyId, EventId, Revision};
use crate::text::Reason;
use crate::time::Timestamp;

/// A caller that takes half of a project trips the brake, if that is so many.
pub const HALF_LEAST: i64 = 5;

/// The longest time that a brake may be released for.
pub const RELEASE_MAX: Duration = Duration::from_secs(3_600);

/// When a brake trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many resources and stacks one caller may delete within the window; 0 means that there is
    /// no brake.
    pub resources: i64,
    pub window: Duration,
}

impl Limits {
    pub const OFF: Self = Self { resources: 0, window: Duration::ZERO };
}

impl Default for Limits {
    fn default() -> Self {
        Self { resources: 20, window: Duration::from_secs(600) }
    }
}

/// The brake of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brake {
    pub api_key_id: ApiKeyId,
    /// The name of the key.
    pub name: String,
    pub revision: Revision,
    /// Since when it is tripped, and what was asked for then.
    pub tripped: Option<Trip>,
    pub released: Option<Release>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trip {
    pub at: Timestamp,
    /// For people: `delete project shop with 40 resources, …`.
    pub why: String,
}

/// Who released a brake last, why, and until when the key is not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub by: String,
    pub reason: String,
    pub until: Timestamp,
}

/// The brake of a caller with what the caller deleted within the window, its row locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    pub brake: Brake,
    pub limits: Limits,
    /// Resources and stacks, in all projects, since the window began or the last release ended.
    pub lately: i64,
    /// Those of the project of this request.
    pub lately_in_project: i64,
    /// How many of both the project had at most within the window.
    pub of_project: i64,
}

/// Why a request is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The brake was tripped before.
    Tripped(Refusal),
    /// This request trips it.
    Trips(Refusal, Box<Brake>),
}

impl Counted {
    /// Stops a request that takes down so many resources, if that is too many.
    pub(crate) fn check(&self, what: &str, resources: i64, now: Timestamp) -> Result<(), Stop> {
        let Self { brake, limits, .. } = self;
        if limits.resources == 0 {
            return Ok(());
        }
        if let Some(trip) = &brake.tripped {
            return Err(Stop::Tripped(refusal(brake, trip)));
        }
        let released = brake.released.as_ref().is_some_and(|released| now < released.until);
        if resources == 0 || released {
            return Ok(());
        }
        let minutes = limits.window.as_secs().div_ceil(60);
        let (all, here) = (self.lately + resources, self.lately_in_project + resources);
        let why = if all > limits.resources {
            format!(
                "with {what} it would delete {all} resources and stacks within {minutes} minutes, and more \
                 than {} are not let through",
                limits.resources
            )
        } else if here >= HALF_LEAST && 2 * here >= self.of_project {
            format!(
                "with {what} it would delete {here} of {} resources and stacks of one project within \
                 {minutes} minutes, and half of a project is not let through",
                self.of_project
            )
        } else {
            return Ok(());
        };
        let trip = Trip { at: now, why };
        let refused = refusal(brake, &trip);
        let tripped = Brake { tripped: Some(trip), ..brake.clone() };
        Err(Stop::Trips(refused, Box::new(tripped)))
    }
}

fn refusal(brake: &Brake, trip: &Trip) -> Refusal {
    let message = format!(
        "the deletion brake of key `{}` is on since {}: {}; if this is meant, an admin releases it \
         with `slipway brake release {}`",
        brake.name, trip.at, trip.why, brake.name
    );
    let details = json!({ "key": brake.name, "since": trip.at, "why": trip.why });
    Refusal::new(ErrorKind::DeletionBrake, message).with(details)
}

/// Records that a brake tripped.
pub(crate) fn tripped(brake: Brake, actor: &Actor, now: Timestamp) -> Commit {
    let why = brake.tripped.as_ref().map(|trip| trip.why.clone()).unwrap_or_default();
    changed(brake, ("brake.trip", BRAKE_TRIPPED), &why, actor, now)
}

/// A brake, its row locked.
#[derive(Debug, Clone)]
pub struct BrakeSnapshot {
    pub now: Timestamp,
    pub brake: Brake,
}

/// Releases a brake: for a while the key deletes uncounted, then it is counted anew.
pub fn release(
    snapshot: &BrakeSnapshot,
    duration: Duration,
    reason: &Reason,
    actor: &Actor,
) -> Result<(Brake, Commit), Refusal> {
    let BrakeSnapshot { now, brake } = snapshot;
    if duration.is_zero() || duration > RELEASE_MAX {
        return Err(Refusal::invalid(
            "seconds",
            "must be from 1 to 3600: a brake is released for an hour at most",
        ));
    }
    if brake.tripped.is_none() {
        let message =
            format!("the brake of key `{}` is not on; there is nothing to release", brake.name);
        return Err(Refusal::new(ErrorKind::NothingToLift, message));
    }
    let released = Brake {
        tripped: None,
        released: Some(Release {
            by: actor.name.clone(),
            reason: reason.as_str().to_owned(),
            until: now.plus(duration),
        }),
        ..brake.clone()
    };
    let how = ("brake.release", BRAKE_RELEASED);
    let commit = changed(released.clone(), how, reason.as_str(), actor, *now);
    Ok((released, commit))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Payload<'a> {
    #[serde(rename = "EventID")]
    event_id: EventId,
    occurred_at: Timestamp,
    #[serde(rename = "KeyID")]
    key_id: ApiKeyId,
    key: &'a str,
    by: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    released_until: Option<Timestamp>,
}

/// Writes a brake, audits and announces it.
fn changed(
    brake: Brake,
    (verb, event_type): (&'static str, EventType),
    reason: &str,
    actor: &Actor,
    now: Timestamp,
) -> Commit {
    let revision = brake.revision.next();
    let until = brake.released.as_ref().map(|released| released.until);
    let until = until.filter(|_| brake.tripped.is_none());
    let payload = |event_id| Payload {
        event_id,
        occurred_at: now,
        key_id: brake.api_key_id,
        key: &brake.name,
        by: &actor.name,
        reason,
        released_until: until,
    };
    let event = Event::new(event_type, brake.api_key_id.into(), revision, None, now, payload);
    let entry = AuditEntry::new(verb, actor, About::new(brake.api_key_id).at(revision), now)
        .because(reason)
        .with(json!({ "key": brake.name, "released_until": until }));
    Commit {
        writes: vec![Write::Deletion(DeletionWrite::Brake(brake))],
        audit: vec![entry],
        events: vec![event],
        ..Commit::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(lately: i64, lately_in_project: i64, of_project: i64) -> Counted {
        let brake = Brake {
            api_key_id: ApiKeyId::new(uuid::Uuid::from_u128(7)),
            name: "ci".to_owned(),
            revision: Revision::FIRST,
            tripped: None,
            released: None,
        };
        Counted { brake, limits: Limits::default(), lately, lately_in_project, of_project }
    }

    fn now() -> Timestamp {
        Timestamp::from_micros(1_000_000_000)
    }

    fn trips(counted: &Counted, resources: i64) -> bool {
        matches!(counted.check("delete it", resources, now()), Err(Stop::Trips(..)))
    }

    #[test]
    fn the_one_that_is_too_many_trips_it() {
        assert!(!trips(&counted(19, 0, 1_000), 1));
        assert!(trips(&counted(20, 0, 1_000), 1));
        assert!(trips(&counted(0, 0, 1_000), 21));
        assert!(!trips(&counted(0, 3, 9), 1), "four are fewer than five");
        assert!(trips(&counted(4, 4, 10), 1), "half of ten");
        assert!(!trips(&counted(4, 4, 11), 1), "five of eleven");
        assert!(!trips(&counted(20, 20, 20), 0), "nothing is taken down");
    }

    #[test]
    fn a_tripped_brake_stops_everything_until_it_is_released() {
        let actor = Actor::new("key:ci");
        let Err(Stop::Trips(refusal, brake)) = counted(20, 0, 99).check("delete it", 1, now())
        else {
            panic!("it trips");
        };
        assert_eq!(refusal.kind, ErrorKind::DeletionBrake);
        let commit = tripped((*brake).clone(), &actor, now());
        assert_eq!(commit.events[0].event_type, BRAKE_TRIPPED);
        let on = Counted { brake: *brake, ..counted(0, 0, 99) };
        assert!(matches!(on.check("delete it", 0, now()), Err(Stop::Tripped(_))));

        let snapshot = BrakeSnapshot { now: now(), brake: on.brake.clone() };
        let reason = Reason::parse("meant").expect("a reason");
        let minute = Duration::from_secs(60);
        assert!(release(&snapshot, RELEASE_MAX + minute, &reason, &actor).is_err());
        let (released, commit) = release(&snapshot, minute, &reason, &actor).expect("a release");
        assert_eq!(commit.events[0].event_type, BRAKE_RELEASED);
        let open = Counted { brake: released.clone(), ..counted(500, 0, 99) };
        assert!(open.check("delete it", 500, now()).is_ok());
        let later = now().plus(minute);
        assert!(open.check("delete it", 500, later).is_err(), "it is counted anew");
        let off = BrakeSnapshot { now: now(), brake: released };
        let nothing = release(&off, minute, &reason, &actor).expect_err("nothing to release");
        assert_eq!(nothing.kind, ErrorKind::NothingToLift);
    }

    proptest! {
        /// Whatever a caller does within a window, no more than the limit gets through.
        #[test]
        fn no_more_than_the_limit_passes(requests in prop::collection::vec(1_i64..30, 1..40)) {
            let mut passed = 0;
            for resources in requests {
                if counted(passed, 0, i64::MAX / 4).check("delete it", resources, now()).is_ok() {
                    passed += resources;
                }
            }
            prop_assert!(passed <= Limits::default().resources);
        }
    }
}

//! The rows of roll-outs.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::rollouts::{
    AbortRollout, PauseRollout, ResumeRollout, Rollout, RolloutMember, UpgradeBlueprint,
};

use super::handlers;
use crate::routes::{Route, get, post};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        post("/blueprints/{blueprint}/upgrade", RolloutStart, handlers::upgrade, "Give the resources of a blueprint another version of it, in waves and within limits")
            .body::<UpgradeBlueprint>().one::<Rollout>().statuses(&[200, 202]),
        get ("/rollouts",                 RolloutRead,     handlers::list,      "List roll-outs")
            .page::<Rollout>().query(&["state", "subject"]),
        get ("/rollouts/{id}",            RolloutRead,     handlers::get,       "Show a roll-out and how far it is").one::<Rollout>(),
        get ("/rollouts/{id}/members",    RolloutRead,     handlers::members,   "List the members of a roll-out, in the order in which they are changed")
            .page::<RolloutMember>().query(&["state"]),
        post("/rollouts/{id}/pause",      RolloutPause,    handlers::pause,     "Pause a roll-out: no other member is changed")
            .body::<PauseRollout>().one::<Rollout>(),
        post("/rollouts/{id}/resume",     RolloutResume,   handlers::resume,    "Resume a paused roll-out")
            .body::<ResumeRollout>().one::<Rollout>(),
        post("/rollouts/{id}/abort",      RolloutAbort,    handlers::abort,     "End a roll-out: members stay as they are")
            .body::<AbortRollout>().one::<Rollout>(),
        post("/rollouts/{id}/roll-back",  RolloutRollBack, handlers::roll_back, "Give every member back what it had, in the other order")
            .body::<AbortRollout>().one::<Rollout>().statuses(&[202]),
    ]
}

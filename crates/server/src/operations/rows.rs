//! The rows of operations.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::operations::{
    Control, InstallationStatus, LoopStatus, PutFreeze, Resume, WithheldAction,
};

use super::{control, loops, status};
use crate::routes::{Route, delete, get, post, put};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/loops",            LoopRead,        loops::list,       "Show what the loops of this process do").all::<LoopStatus>(),
        get   ("/status",           LoopRead,        status::get,       "Show the installation at a glance: phases, blockers, nodes, clusters, loops, leaks").one::<InstallationStatus>(),
        get   ("/control",          ControlRead,     control::get,      "Show the mode: acting, frozen or observing").one::<Control>(),
        put   ("/control/freeze",   ControlFreeze,   control::freeze,   "Freeze the installation until a time")
            .body::<PutFreeze>().one::<Control>(),
        delete("/control/freeze",   ControlUnfreeze, control::unfreeze, "Lift the freeze").one::<Control>().requires("reason"),
        post  ("/control/resume",   ControlResume,   control::resume,   "End observe-only, for instance on a restored database")
            .body::<Resume>().one::<Control>(),
        get   ("/control/withheld", WithheldRead,    control::withheld, "List withheld actions").page::<WithheldAction>(),
    ]
}

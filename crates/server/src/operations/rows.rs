//! The rows of operations.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::api::{Control, LoopStatus, PutFreeze, Resume, WithheldAction};

use super::{control, loops};
use crate::routes::{Route, delete, get, post, put};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/loops",          LoopRead,        loops::list,       "Show what the loops of this process do").all::<LoopStatus>(),
        get   ("/control",        ControlRead,     control::get,      "Show whether anything is acted on").one::<Control>(),
        put   ("/control/freeze", ControlFreeze,   control::freeze,   "Act on nothing until a moment")
            .body::<PutFreeze>().one::<Control>(),
        delete("/control/freeze", ControlUnfreeze, control::unfreeze, "Act again").one::<Control>().query(&["reason"]),
        post  ("/control/resume", ControlResume,   control::resume,   "Act on a restored database")
            .body::<Resume>().one::<Control>(),
        get   ("/control/withheld",   WithheldRead,        control::withheld, "Show what would be done").page::<WithheldAction>(),
    ]
}

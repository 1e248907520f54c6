//! The composite of engine `manual`: the record of a machine that somebody boots by hand. It
//! carries no token: only a person brings a document to the machine.

use serde_json::Value;
use slipway_core::broker::snapshot::ResourceSnapshot;

use crate::{Error, NodeSettings, composite};

const API_VERSION: &str = "manual.slipway.dev/v1";
const KIND: &str = "Machine";
/// Whether a person has to say that the machine is gone; so it is unless the parameter
/// says no.
pub const PARAMETER_CONFIRM_GONE: &str = "confirm_gone";

/// The part of the object that we own, as it should be.
pub fn owned(snapshot: &ResourceSnapshot, settings: &NodeSettings) -> Result<Value, Error> {
    composite::plain(snapshot, settings, API_VERSION, KIND)
}

/// Whether a person has to say that the machine of this object is gone.
pub fn confirm_gone(object: &Value) -> bool {
    object["spec"]["parameters"][PARAMETER_CONFIRM_GONE].as_bool().unwrap_or(true)
}

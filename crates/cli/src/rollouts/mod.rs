//! Roll-outs.

pub(crate) mod rollout;

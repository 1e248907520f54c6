//! Explanations of what is of Fleet, under its own paths.

use slipway_wire::operations::Explanation;

use crate::broker::explanation;
use crate::request::{Call, Segments, Untagged};

pub(super) async fn stack(call: Call, Segments([id]): Segments<1>) -> Untagged<Explanation> {
    explanation(&call, "stack", &id).await
}

pub(super) async fn agent(call: Call, Segments([id]): Segments<1>) -> Untagged<Explanation> {
    explanation(&call, "agent", &id).await
}

pub(super) async fn generator(call: Call, Segments([id]): Segments<1>) -> Untagged<Explanation> {
    explanation(&call, "generator", &id).await
}

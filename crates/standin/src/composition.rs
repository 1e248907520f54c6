//! The Composition that a composite names. As in Crossplane, it must be there and be for the
//! API version in which composites are read, the referenceable one of their XRD; otherwise the
//! composite stays as it is and says why.
//!
//! *Caveat:* Crossplane chooses a Composition for a composite that names none. The stand-in
//! composes it without one.

use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::context::Context;
use crate::kinds;

/// The name in the composite.
pub(crate) fn named(composite: &Value) -> Option<&str> {
    composite["spec"]["crossplane"]["compositionRef"]["name"].as_str()
}

/// What the composed resource says about it, or why it cannot be used.
pub(crate) async fn find(
    context: &Context,
    name: &str,
    kind: &ApiResource,
    read_as: &str,
) -> kube::Result<Result<Value, String>> {
    let compositions = context.api(&kinds::compositions(), None);
    let permit = context.permit().await;
    let found = compositions.get_opt(name).await?;
    drop(permit);
    let Some(found) = found else {
        return Ok(Err(format!("cannot get Composition: {name} is not there")));
    };
    let spec = &found.data["spec"];
    let of = &spec["compositeTypeRef"];
    if of["apiVersion"] != read_as || of["kind"] != kind.kind {
        let problem = "referenced composition is not compatible with this composite resource";
        return Ok(Err(format!("{problem}: {name} is for {of}, and not for {read_as}")));
    }
    let steps = spec["pipeline"].as_array().into_iter().flatten().map(|step| &step["step"]);
    Ok(Ok(json!({ "name": name, "steps": steps.collect::<Vec<_>>() })))
}

//! The output of the node of a resource, from an engine that keeps it.

use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::ResourceId;

use crate::Error;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::broker::read;
use crate::deletion::leaks::Finder;
use crate::ports::substrate::{NodeOutput, OutputPart};

pub async fn logs(
    finder: &Finder,
    caller: &Caller,
    id: ResourceId,
    part: OutputPart,
) -> Result<NodeOutput, Error> {
    authorise(caller, Operation::ResourceLogs)?;
    let snapshot = read::resource(finder.context(), caller, id).await?;
    let unavailable = |why: &str| Refusal::new(ErrorKind::LogsUnavailable, why).into();
    match finder.output(snapshot.attempt.id(), part).await? {
        Some(Ok(Some(output))) => Ok(output),
        Some(Ok(None)) => Err(unavailable(elsewhere(snapshot.blueprint.engine))),
        Some(Err(problem)) => Err(unavailable(&format!("its output cannot be read: {problem}"))),
        None => {
            Err(unavailable("this control plane does not serve its cluster; ask one that does"))
        }
    }
}

/// Where the output is that no engine keeps.
const fn elsewhere(engine: Engine) -> &'static str {
    match engine {
        Engine::Local => "this engine keeps no output of its nodes",
        Engine::Manual => {
            "its machine was booted by hand and keeps its log itself: read it there, for instance \
             with `journalctl -u plexd`"
        }
        Engine::Crossplane | Engine::Hetzner => {
            "its machine or pod keeps its log itself: read it there with `journalctl -u plexd`, or \
             with `kubectl logs` if it is a pod"
        }
    }
}

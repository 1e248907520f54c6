//! A freeze: once it is said to be settled, nothing is done outside, and no loop
//! writes to the registry, until it is lifted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::perform::{Done, RESOURCES};
use crate::run::Soak;

/// Longer than the longest fault of a control plane, and its start.
const UP_LIMIT: Duration = Duration::from_secs(15);
/// A request that nobody answered is waited for, for a minute; a control plane that
/// was killed for its lease more.
const SETTLED_LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);
const CONTROL: &str = "/api/v1/control";

/// The registry when a freeze was settled.
#[derive(Debug)]
pub(crate) struct Frozen {
    settled: Instant,
    /// By id of each registered node, when its drain was requested.
    nodes: BTreeMap<String, Value>,
    tokens: BTreeSet<String>,
}

impl Soak {
    /// Freezes, and waits as `slipway freeze --wait` does. All control planes are
    /// up before it: one that is stopped by the kernel between its permit and its
    /// action would act late, as `docs/control.md` says.
    pub(crate) fn freeze(&mut self) -> anyhow::Result<Done> {
        if self.frozen.is_some() || !self.world.wait_for_all(UP_LIMIT)? {
            return Ok(Done::Skipped);
        }
        let body = json!({ "reason": "soak", "for_seconds": 3_600 });
        let answer = self.world.call("PUT", &format!("{CONTROL}/freeze"), Some(&body))?;
        if answer.status != 200 {
            let text = format!("freeze was answered {}: {}", answer.status, answer.body);
            self.violation(None, &text);
            return Ok(Done::Refused);
        }
        let asked = Instant::now();
        let mut control = answer.body;
        while control["settled"] != true {
            if asked.elapsed() > SETTLED_LIMIT {
                let text = format!("a freeze is not settled after {SETTLED_LIMIT:?}: {control}");
                self.violation(None, &text);
                return Ok(Done::Yes);
            }
            self.world.pass(POLL)?;
            control = self.world.get(CONTROL)?;
        }
        let settled = Instant::now();
        self.note_all(&format!("frozen, settled after {} ms", asked.elapsed().as_millis()));
        let (nodes, tokens) = (self.registered()?, self.tokens()?);
        self.frozen = Some(Frozen { settled, nodes, tokens });
        self.tally.count("freezes");
        self.tally.longest_freezing = self.tally.longest_freezing.max(asked.elapsed());
        Ok(Done::Yes)
    }

    /// Checks that the freeze was kept, and lifts it.
    pub(crate) fn unfreeze(&mut self) -> anyhow::Result<Done> {
        let Some(frozen) = self.frozen.take() else { return Ok(Done::Skipped) };
        self.check_frozen(&frozen)?;
        let answer = self.world.call("DELETE", &format!("{CONTROL}/freeze?reason=soak"), None)?;
        self.note_all(&format!("unfreeze: {}", answer.status));
        if answer.status != 200 {
            let text = format!("unfreeze was answered {}: {}", answer.status, answer.body);
            self.violation(None, &text);
        }
        Ok(Done::Yes)
    }

    fn check_frozen(&mut self, frozen: &Frozen) -> anyhow::Result<()> {
        let after = |at: Instant| at.duration_since(frozen.settled).as_millis();
        for write in self.cluster_mut()?.writes_since(frozen.settled) {
            let text = format!(
                "{} {} was sent or took effect after the freeze was settled ({} ms): {write:?}",
                write.method,
                write.path,
                after(write.received)
            );
            self.violation(None, &text);
        }
        let (nodes, tokens) = (self.registered()?, self.tokens()?);
        for (id, drain) in &frozen.nodes {
            let now = nodes.get(id);
            if now == Some(drain) {
                continue;
            }
            let node = self.world.get(&format!("/api/v1/nodes/{id}"))?;
            // A node may leave by itself; that is no act of a loop.
            if now.is_some() || node["deregistered_how"] != "left" {
                let text = format!("while frozen a node was drained or deregistered: {node}");
                self.violation(None, &text);
            }
        }
        for token in tokens.difference(&frozen.tokens) {
            self.violation(None, &format!("while frozen the token {token} was issued"));
        }
        Ok(())
    }

    /// Each registered node, and when its drain was requested.
    fn registered(&mut self) -> anyhow::Result<BTreeMap<String, Value>> {
        let nodes = self.world.list("/api/v1/nodes", None, "id")?;
        let registered = nodes.into_iter().filter(|node| node["registered"] == true);
        let text = |node: &Value| node["id"].as_str().unwrap_or_default().to_owned();
        Ok(registered.map(|node| (text(&node), node["drain_requested_at"].clone())).collect())
    }

    /// The tokens of every resource that is not deleted.
    fn tokens(&mut self) -> anyhow::Result<BTreeSet<String>> {
        let mut tokens = BTreeSet::new();
        for resource in self.world.list(RESOURCES, None, "id")? {
            let id = resource["id"].as_str().unwrap_or_default();
            let listed = self.world.get(&format!("{RESOURCES}/{id}/tokens"))?;
            let listed = listed.as_array().map(Vec::as_slice).unwrap_or_default();
            tokens.extend(
                listed.iter().filter_map(|token| token["token_id"].as_str()).map(str::to_owned),
            );
        }
        Ok(tokens)
    }
}

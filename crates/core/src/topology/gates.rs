//! The gates: whether a server may go. One pure function, asked at every door, in the decision
//! that records the intent, with the row of the group locked before that of the resource.
//!
//! The first refusal in the order of [`Gate`] is the answer; its details have every gate that
//! refuses, so that nobody runs into them one after the other.

use serde_json::{Value, json};

use crate::access::role::Role;
use crate::closed_set::closed_set;
use crate::error::{ErrorKind, Refusal};
use crate::topology::inventory::Inventory;
use crate::topology::role::NodeRole;
use crate::topology::scale::ControlPlanes;

/// How a server would go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Scaled down: by name, by a number, by the form of the page.
    ScaleDown,
    /// The declaration has no place for it any more.
    Apply,
    /// Its attempt goes, and another one follows. With `surge` the other one works first.
    Replace { surge: bool },
    /// Deleted as it is, by an admin who says why.
    Delete { break_glass: bool },
}

impl Door {
    /// The least role that may pass it.
    pub const fn least(self) -> Role {
        match self {
            Self::ScaleDown | Self::Apply | Self::Replace { .. } => Role::Operator,
            Self::Delete { .. } => Role::Admin,
        }
    }

    const fn is_delete(self) -> bool {
        matches!(self, Self::Delete { .. })
    }

    /// Whether another server works before this one goes.
    const fn replaces_first(self) -> bool {
        matches!(self, Self::Replace { surge: true })
    }

    const fn breaks_glass(self) -> bool {
        matches!(self, Self::Delete { break_glass: true })
    }
}

closed_set!(
    /// The gates, in the order in which their refusals count.
    Gate {
        Permission => "permission",
        ControlPlane => "control_plane",
        DeleteLock => "delete_lock",
        Minimum => "minimum",
        Quorum => "quorum",
        Inventory => "inventory",
        LastLoadBalancer => "last_load_balancer",
    }
);

/// Everything that the gates look at.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    pub door: Door,
    pub caller: Role,
    pub server: &'a str,
    pub group: &'a str,
    pub role: NodeRole,
    pub delete_lock: bool,
    /// The servers that the group must keep.
    pub min: u32,
    pub control_planes: ControlPlanes,
    /// Whether the server is Ready and stays, so that it stands for one of them.
    pub counted: bool,
    /// The other servers of the group that do.
    pub others: u32,
    /// The load balancers of the workspace that would be left.
    pub load_balancers: u32,
    /// The workers behind them.
    pub backends: u32,
    pub inventory: &'a Inventory,
}

impl Question<'_> {
    /// How many control planes have to be Ready.
    pub const fn quorum(&self) -> u32 {
        self.control_planes.declared / 2 + 1
    }

    fn refused(&self, gate: Gate) -> Option<Refusal> {
        match gate {
            Gate::Permission => self.permission(),
            Gate::ControlPlane => self.control_plane(),
            Gate::DeleteLock => self.delete_lock(),
            Gate::Minimum => self.minimum(),
            Gate::Quorum => self.quorum_kept(),
            Gate::Inventory if self.door.breaks_glass() => None,
            Gate::Inventory => self.inventory.check(self.group).err(),
            Gate::LastLoadBalancer => self.last_load_balancer(),
        }
    }

    fn permission(&self) -> Option<Refusal> {
        let least = self.door.least();
        if self.caller >= least {
            return None;
        }
        let message = format!(
            "this takes the role {least}, and the key has {}; ask somebody who has it",
            self.caller
        );
        Some(Refusal::new(ErrorKind::Forbidden, message))
    }

    fn control_plane(&self) -> Option<Refusal> {
        let passes = self.door.is_delete() || self.door.replaces_first();
        if self.role != NodeRole::ControlPlane || passes {
            return None;
        }
        let server = self.server;
        let instead = match self.counted {
            true => format!("replace it (`slipway server replace {server} --surge`)"),
            false => format!(
                "have another one made in its place (`slipway server delete {server} --reason <why>`, by an admin)"
            ),
        };
        let message = format!(
            "server `{server}` is a control plane, which is not scaled down; {instead}, or take the workspace down (`slipway workspace teardown`)"
        );
        Some(Refusal::new(ErrorKind::ControlPlaneImmutable, message))
    }

    fn delete_lock(&self) -> Option<Refusal> {
        let passes = self.door.is_delete() || self.door.replaces_first();
        if !self.delete_lock || passes {
            return None;
        }
        let message = format!(
            "server `{}` is locked by the `delete_lock` of group `{}`; set it to false in the workspace and apply that first",
            self.server, self.group
        );
        Some(Refusal::new(ErrorKind::DeleteLocked, message))
    }

    fn minimum(&self) -> Option<Refusal> {
        let passes = self.door.is_delete() || self.door.replaces_first();
        if passes || !self.counted || self.others >= self.min {
            return None;
        }
        let message = format!(
            "without server `{}`, group `{}` would have {} of at least {} Ready servers; scale it up first, or lower its `scale.min`",
            self.server, self.group, self.others, self.min
        );
        let numbers =
            json!({ "remaining": self.others, "min": self.min, "ready": self.others + 1 });
        Some(Refusal::new(ErrorKind::ScaleMinViolation, message).with(numbers))
    }

    fn quorum_kept(&self) -> Option<Refusal> {
        if self.role != NodeRole::ControlPlane || self.door.breaks_glass() {
            return None;
        }
        let ControlPlanes { declared, others, under_way } = self.control_planes;
        if under_way && self.door.replaces_first() {
            return Some(self.one_at_a_time());
        }
        // The new one works before the old one goes.
        let remaining = others + u32::from(self.door.replaces_first());
        if !self.counted || remaining >= self.quorum() {
            return None;
        }
        let message = format!(
            "without server `{}`, {remaining} of {declared} control planes would be Ready, and their quorum is {}; repair or add one first. An admin may break the glass: `slipway server delete {} --break-glass --reason <why>`",
            self.server,
            self.quorum(),
            self.server
        );
        let numbers = json!({
            "remaining": remaining, "declared": declared, "quorum": self.quorum(),
        });
        Some(Refusal::new(ErrorKind::QuorumViolation, message).with(numbers))
    }

    fn one_at_a_time(&self) -> Refusal {
        let message = format!(
            "another control plane of the workspace of `{}` is being replaced or leaves, and they go one at a time; wait until that is done",
            self.server
        );
        Refusal::new(ErrorKind::ReplacementUnderWay, message)
    }

    fn last_load_balancer(&self) -> Option<Refusal> {
        let passes = self.door.replaces_first() || self.door.breaks_glass();
        let is_last =
            self.role == NodeRole::LoadBalancer && self.counted && self.load_balancers == 0;
        if passes || !is_last || self.backends == 0 {
            return None;
        }
        let message = format!(
            "server `{}` is the last load balancer before {} Ready worker(s); add another one first, or take the workspace down",
            self.server, self.backends
        );
        let numbers = json!({ "backends": self.backends });
        Some(Refusal::new(ErrorKind::LastLoadBalancer, message).with(numbers))
    }
}

/// Asks every gate. The first one that refuses is the answer; its details name them all.
pub fn ask(question: &Question<'_>) -> Result<(), Refusal> {
    let refusals: Vec<(Gate, Refusal)> =
        Gate::ALL.iter().filter_map(|gate| Some((*gate, question.refused(*gate)?))).collect();
    let Some((_, first)) = refusals.first() else { return Ok(()) };
    // Whoever may not ask is told nothing else.
    let shown = if first.kind == ErrorKind::Forbidden { &refusals[..1] } else { &refusals[..] };
    let gates: Vec<Value> = shown
        .iter()
        .map(|(gate, refusal)| {
            json!({
                "gate": gate,
                "code": refusal.kind.code(),
                "message": refusal.message,
                "details": refusal.details,
            })
        })
        .collect();
    let mut details = json!({ "server": question.server, "group": question.group, "gates": gates });
    if let Some(Value::Object(own)) = &first.details {
        for (name, value) in own {
            details[name] = value.clone();
        }
    }
    Err(first.clone().with(details))
}

#[cfg(test)]
mod tests;

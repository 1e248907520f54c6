//! Blockers: structured reasons why something does not advance, and the
//! deadlines that turn a wait into one. Passing a deadline raises a blocker
//! and never changes a phase.

use std::time::Duration;

use serde_json::{Value, json};

use crate::broker::phase::Phase;
use crate::closed_set::closed_set;
use crate::ids::ProvisionedResourceId;
use crate::time::Timestamp;

closed_set!(
    /// Every reason that can be shown. Each has a remedy.
    BlockerCode {
        Frozen => "frozen",
        ObserveOnly => "observe_only",
        NamespaceNotReady => "namespace_not_ready",
        ProviderNotReady => "provider_not_ready",
        SubstrateUnknown => "substrate_unknown",
        SubstrateTerminating => "substrate_terminating",
        ApplyFailed => "apply_failed",
        NoCapacity => "no_capacity",
        DeleteFailed => "delete_failed",
        ParameterValuesInvalid => "parameter_values_invalid",
        NodeLeft => "node_left",
        NodeSilent => "node_silent",
        TokenCapReached => "token_cap_reached",
        PendingOverdue => "pending_overdue",
        ProvisioningOverdue => "provisioning_overdue",
        EnrollingOverdue => "enrolling_overdue",
        Unsettled => "unsettled",
        NodeNotDraining => "node_not_draining",
        NodeDeregistrationFailed => "node_deregistration_failed",
        DeprovisioningOverdue => "deprovisioning_overdue",
        MachineNotConfirmedGone => "machine_not_confirmed_gone",
        DeletionRefused => "deletion_refused",
        PurgeWithheld => "purge_withheld",
        RowInvalid => "row_invalid",
        InternalError => "internal_error",
        ClusterNotServed => "cluster_not_served",
        /// Of a tenant: a person has to decide.
        TenantWaiting => "tenant_waiting",
        TenantStepFailing => "tenant_step_failing",
        TenantTaskFailing => "tenant_task_failing",
        /// Of a server: its workspace says what comes first.
        WaitingForDependency => "waiting_for_dependency",
        /// Of a workspace: a step of its loop is refused.
        WorkspaceBlocked => "workspace_blocked",
    }
);

/// A way out, for the person who reads the blocker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remedy {
    pub action: &'static str,
    /// `{id}` is a placeholder for the id of the resource.
    pub command: Option<&'static str>,
    /// The least role that may use it.
    pub role: &'static str,
}

const DELETE: Remedy = Remedy {
    action: "give up and take the resource down",
    command: Some("slipway resource delete {id} --yes --reason <why>"),
    role: "operator",
};
const RETRY: Remedy = Remedy {
    action: "take this attempt down and try again",
    command: Some("slipway resource retry {id} --reason <why>"),
    role: "operator",
};
const INSPECT: Remedy = Remedy {
    action: "check the evidence and repair the substrate; the loop continues by itself",
    command: None,
    role: "operator",
};
const FORCE_DRAIN: Remedy = Remedy {
    action: "do not wait for the node: revoke its key and deregister it",
    command: Some("slipway resource force-drain {id} --yes --reason <why>"),
    role: "admin",
};

const REENROL: Remedy = Remedy {
    action: "keep the machine: end its node and issue a token with which its agent enrols again",
    command: Some("slipway resource reenrol {id} --reason <why>"),
    role: "operator",
};
const ABANDON: Remedy = Remedy {
    action: "if its substrate is lost for good: request its deletion, then abandon it; leak records keep what nobody proved gone",
    command: Some("slipway resource abandon {id} --reason <why>"),
    role: "admin",
};

const RETRY_PROVIDER: Remedy = Remedy {
    action: "wait, or make the provider try again: `slipway explain resource` names what holds it, the provider's last error, and the command",
    command: None,
    role: "operator",
};
const ORPHAN: Remedy = Remedy {
    action: "if the provider can never delete it: keep it in the cloud on purpose, so that the rest can go; a leak record has its external name",
    command: Some("slipway resource orphan {id} --reason <why>"),
    role: "admin",
};

/// What a person can do about a Failed attempt.
pub const OF_FAILED: &[Remedy] = &[
    RETRY,
    Remedy {
        action: "the same with a corrected parameter, or with --version in another version",
        command: Some("slipway resource retry {id} --param <name>=<value> --reason <why>"),
        role: "operator",
    },
    DELETE,
];

impl BlockerCode {
    /// Who can do something about it.
    pub const fn owner(self) -> &'static str {
        match self {
            Self::Frozen
            | Self::ObserveOnly
            | Self::NamespaceNotReady
            | Self::ProviderNotReady
            | Self::SubstrateUnknown
            | Self::SubstrateTerminating
            | Self::ApplyFailed
            | Self::NoCapacity
            | Self::DeleteFailed
            | Self::ProvisioningOverdue
            | Self::DeprovisioningOverdue
            | Self::NodeDeregistrationFailed
            | Self::RowInvalid
            | Self::InternalError
            | Self::ClusterNotServed
            | Self::TenantWaiting
            | Self::TenantStepFailing
            | Self::TenantTaskFailing => "platform",
            Self::ParameterValuesInvalid
            | Self::NodeLeft
            | Self::NodeSilent
            | Self::TokenCapReached
            | Self::PendingOverdue
            | Self::EnrollingOverdue
            | Self::Unsettled
            | Self::NodeNotDraining
            | Self::MachineNotConfirmedGone
            | Self::DeletionRefused
            | Self::PurgeWithheld
            | Self::WaitingForDependency
            | Self::WorkspaceBlocked => "operator",
        }
    }

    pub const fn remedies(self) -> &'static [Remedy] {
        match self {
            Self::Frozen => &[Remedy {
                action: "wait until the freeze ends, or lift it; the loops then continue at once",
                command: Some("slipway unfreeze --reason <why>"),
                role: "admin",
            }],
            Self::ObserveOnly => &[
                Remedy {
                    action: "list every withheld action",
                    command: Some("slipway withheld"),
                    role: "operator",
                },
                Remedy {
                    action: "end observe-only; the loops then act on everything at once",
                    command: Some("slipway resume --reason <why>"),
                    role: "admin",
                },
            ],
            Self::ProviderNotReady => &[Remedy {
                action: "store the credential at its path, which `slipway credential get` shows, or repair External Secrets on the cluster; the loop continues by itself",
                command: Some("slipway cluster assignments -o yaml"),
                role: "admin",
            }],
            Self::NamespaceNotReady => &[Remedy {
                action: "bring the project's namespace to Ready (`slipway explain project` shows what it waits for); the loop continues by itself",
                command: None,
                role: "admin",
            }],
            Self::SubstrateUnknown => &[
                Remedy {
                    action: "make the substrate readable again (reachable, same identity, same installation)",
                    command: Some("slipway cluster list"),
                    role: "admin",
                },
                ABANDON,
            ],
            Self::SubstrateTerminating => &[
                Remedy {
                    action: "nothing: somebody deleted the substrate; Slipway drains its node, releases the substrate and, unless the resource is Failed, creates it again",
                    command: None,
                    role: "operator",
                },
                Remedy {
                    action: "if the node does not finish its drain, do not wait for it: revoke its key and deregister it",
                    ..FORCE_DRAIN
                },
            ],
            Self::ApplyFailed | Self::ProvisioningOverdue | Self::PendingOverdue => {
                &[INSPECT, DELETE]
            }
            Self::NoCapacity => &[
                Remedy {
                    action: "wait: the loop asks again by itself when there may be capacity",
                    command: None,
                    role: "operator",
                },
                Remedy {
                    action: "name other types or locations in its fallbacks; they are tried in order",
                    command: Some("slipway resource update {id} --param fallbacks=<list>"),
                    role: "operator",
                },
                Remedy {
                    action: "if it is the quota of the project: have the provider raise it",
                    command: None,
                    role: "admin",
                },
                DELETE,
            ],
            Self::DeleteFailed => &[INSPECT],
            Self::DeprovisioningOverdue => &[INSPECT, RETRY_PROVIDER, ORPHAN, ABANDON],
            Self::ParameterValuesInvalid => &[Remedy {
                action: "delete it and declare it again with valid values; the message names the parameter",
                ..DELETE
            }],
            Self::NodeLeft => &[
                Remedy {
                    action: "read the agent's log for why it left; the node does not come back by itself",
                    command: None,
                    role: "operator",
                },
                REENROL,
                RETRY,
                DELETE,
            ],
            Self::DeletionRefused => &[
                Remedy {
                    action: "make way for the deletion, as its message says; it is tried again by itself",
                    command: None,
                    role: "operator",
                },
                Remedy {
                    action: "keep what was to be deleted",
                    command: Some("slipway deletion cancel <deletion> --reason <why>"),
                    role: "operator",
                },
            ],
            Self::PurgeWithheld => &[
                Remedy {
                    action: "see to what its message names; an hour later at most it is tried again by itself",
                    command: None,
                    role: "operator",
                },
                Remedy {
                    action: "see what a purge would remove, and every reason against it",
                    command: Some("slipway deletion purge <deletion>"),
                    role: "admin",
                },
            ],
            Self::NodeSilent => &[
                Remedy {
                    action: "read the agent's log: did it store its identity (a full disk, a directory it may not write), and can it reach this control plane; one that has its key goes on by itself",
                    command: None,
                    role: "operator",
                },
                REENROL,
                RETRY,
                DELETE,
            ],
            Self::TokenCapReached => &[
                Remedy {
                    action: "read the agent's log for why it did not enrol, then issue a token by hand",
                    command: Some("slipway token issue {id}"),
                    role: "operator",
                },
                RETRY,
                DELETE,
            ],
            Self::EnrollingOverdue => &[
                Remedy {
                    action: "read the agent's log: did it start, and can it reach this control plane; the agent retries by itself",
                    command: Some("slipway token list {id}"),
                    role: "operator",
                },
                Remedy {
                    action: "if its document is lost or its token has expired: get another, and boot the machine with it",
                    command: Some("slipway resource enrolment {id}"),
                    role: "operator",
                },
                DELETE,
            ],
            Self::Unsettled => &[
                Remedy {
                    action: "read the history and the agent's log for what interrupts Ready again and again",
                    command: Some("slipway resource history {id}"),
                    role: "operator",
                },
                DELETE,
            ],
            Self::NodeNotDraining => &[
                Remedy {
                    action: "let the node finish its work, or restart its agent",
                    command: None,
                    role: "operator",
                },
                FORCE_DRAIN,
            ],
            Self::NodeDeregistrationFailed => &[Remedy {
                action: "repair the seam that the evidence names: the row of the token or of the node, or what failed the drain (the message and the log say how); the loop continues by itself, and the substrate stays until the node has left",
                command: None,
                role: "admin",
            }],
            Self::MachineNotConfirmedGone => &[Remedy {
                action: "switch the machine off, or wipe it, and say that it is gone",
                command: Some("slipway resource confirm-gone {id} --reason <why>"),
                role: "operator",
            }],
            Self::RowInvalid => &[Remedy {
                action: "repair the row named in the evidence, or run a version that knows it",
                command: None,
                role: "admin",
            }],
            Self::InternalError => &[Remedy {
                action: "read the error and the control plane's log; the loop retries by itself, at most one sweep interval later",
                command: None,
                role: "admin",
            }],
            Self::ClusterNotServed => &[
                Remedy {
                    action: "serve the cluster named in the evidence: its access kubeconfig/<name> is the file <name> in the kubeconfig_dir of a control plane, in-cluster is a pod of that cluster, hetzner/<name> is the file <name> in its provider_token_dir; then read the log of the one that should serve it",
                    command: None,
                    role: "admin",
                },
                ABANDON,
            ],
            Self::TenantWaiting => &[
                Remedy {
                    action: "look at the tenant on its target; if it is as it should be, let it go on",
                    command: Some("slipway tenant resume <name> --reason <why>"),
                    role: "admin",
                },
                Remedy {
                    action: "if its job is unfinished and nobody uses it: remove what the job made",
                    command: Some("slipway tenant resume <name> --clean-up --reason <why>"),
                    role: "admin",
                },
            ],
            Self::WaitingForDependency => &[Remedy {
                action: "nothing: it goes on by itself once every server that its group depends on is Ready; see why those are not",
                command: Some("slipway server list --workspace <workspace>"),
                role: "operator",
            }],
            Self::WorkspaceBlocked => &[Remedy {
                action: "make way for the step that its message names; it is tried again by itself",
                command: Some("slipway workspace get <workspace>"),
                role: "operator",
            }],
            Self::TenantStepFailing | Self::TenantTaskFailing => &[Remedy {
                action: "remove the cause that the message names; it is tried again by itself",
                command: None,
                role: "operator",
            }],
        }
    }

    /// The blocker that a missed deadline of this phase raises.
    pub const fn of_overdue(phase: Phase) -> Option<Self> {
        match phase {
            Phase::Pending => Some(Self::PendingOverdue),
            Phase::Provisioning => Some(Self::ProvisioningOverdue),
            Phase::Enrolling => Some(Self::EnrollingOverdue),
            Phase::Deregistering => Some(Self::NodeNotDraining),
            Phase::Deprovisioning => Some(Self::DeprovisioningOverdue),
            Phase::Ready | Phase::Failed | Phase::Deleted => None,
        }
    }
}

closed_set!(
    /// The step of a deregistration that failed: from the bootstrap token to the node
    /// that used it up, the node itself, and its drain.
    DeregistrationSeam {
        Token => "token",
        Node => "node",
        Drain => "drain",
    }
);

/// One blocker on one thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocker {
    pub code: BlockerCode,
    pub message: String,
    pub since: Timestamp,
    pub evidence: Value,
    pub next_retry_at: Option<Timestamp>,
}

/// How long each waiting phase may last before it becomes a blocker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    pub pending: Duration,
    pub provisioning: Duration,
    /// As long as a token can be extended.
    pub enrolling: Duration,
    pub deregistering: Duration,
    pub deprovisioning: Duration,
    /// From the registration of a node to its first heartbeat.
    pub first_heartbeat: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(count * 60);
        Self {
            pending: minutes(5),
            provisioning: minutes(30),
            enrolling: minutes(24 * 60),
            deregistering: minutes(10),
            deprovisioning: minutes(30),
            first_heartbeat: minutes(5),
        }
    }
}

impl Deadlines {
    /// `None` for the phases that wait for nothing.
    pub const fn of(&self, phase: Phase) -> Option<Duration> {
        match phase {
            Phase::Pending => Some(self.pending),
            Phase::Provisioning => Some(self.provisioning),
            Phase::Enrolling => Some(self.enrolling),
            Phase::Deregistering => Some(self.deregistering),
            Phase::Deprovisioning => Some(self.deprovisioning),
            Phase::Ready | Phase::Failed | Phase::Deleted => None,
        }
    }
}

/// Quarantines a row that cannot be read. In teardown, a token or node that cannot be read
/// (`seam`) means that the node cannot be deregistered: nothing else is done before that.
pub fn of_unreadable(
    attempt: ProvisionedResourceId,
    reason: &str,
    seam: Option<DeregistrationSeam>,
    now: Timestamp,
    next_retry_at: Option<Timestamp>,
) -> Blocker {
    let mut evidence = json!({ "provisioned_resource_id": attempt, "reason": reason });
    let (code, message) = match seam {
        None => (
            BlockerCode::RowInvalid,
            format!("the row breaks an invariant and is quarantined: {reason}"),
        ),
        Some(seam) => {
            evidence["seam"] = json!(seam);
            let message = format!(
                "the node cannot be deregistered, because its {seam} cannot be read: {reason}"
            );
            (BlockerCode::NodeDeregistrationFailed, message)
        }
    };
    Blocker { code, message, since: now, evidence, next_retry_at }
}

/// Keeps the `since` of blockers that persist and drops those that ended.
pub fn merge(before: &[Blocker], mut now: Vec<Blocker>) -> Vec<Blocker> {
    now.sort_by_key(|blocker| blocker.code);
    now.dedup_by_key(|blocker| blocker.code);
    for blocker in &mut now {
        if let Some(earlier) = before.iter().find(|earlier| earlier.code == blocker.code) {
            blocker.since = earlier.since;
        }
    }
    now
}

/// The blockers that are new in `after`, and those of `before` that are gone, by code.
pub fn difference<'a>(
    before: &'a [Blocker],
    after: &'a [Blocker],
) -> (Vec<&'a Blocker>, Vec<&'a Blocker>) {
    fn lacking<'a>(from: &[Blocker], of: &'a [Blocker]) -> Vec<&'a Blocker> {
        of.iter().filter(|one| !from.iter().any(|other| other.code == one.code)).collect()
    }
    (lacking(before, after), lacking(after, before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::at;

    fn blocker(code: BlockerCode, since: i64) -> Blocker {
        Blocker {
            code,
            message: String::new(),
            since: at(since),
            evidence: Value::Null,
            next_retry_at: None,
        }
    }

    /// Invariant 16: each waiting phase has a deadline and a blocker for it.
    #[test]
    fn every_waiting_phase_has_a_deadline_and_a_blocker() {
        let deadlines = Deadlines::default();
        for &phase in Phase::ALL {
            let waits = !phase.is_terminal() && phase != Phase::Ready;
            assert_eq!(deadlines.of(phase).is_some(), waits, "{phase}");
            assert_eq!(BlockerCode::of_overdue(phase).is_some(), waits, "{phase}");
        }
    }

    #[test]
    fn every_code_has_a_remedy_and_an_owner() {
        for code in BlockerCode::ALL {
            assert!(!code.remedies().is_empty(), "{code}");
            assert!(["platform", "operator"].contains(&code.owner()), "{code}");
        }
    }

    /// `explain`, `resource get` and `resource list` show blockers: nobody is told to run them
    /// again.
    #[test]
    fn no_remedy_leads_back_to_itself() {
        let shown_by =
            ["slipway explain resource", "slipway resource get", "slipway resource list"];
        let codes = BlockerCode::ALL.iter().flat_map(|code| code.remedies());
        for command in codes.chain(OF_FAILED).filter_map(|remedy| remedy.command) {
            assert!(!shown_by.iter().any(|verb| command.starts_with(verb)), "{command}");
        }
    }

    /// Both codes show while a node is drained; force ends the wait in either case.
    #[test]
    fn the_blockers_of_a_drain_name_force() {
        for code in [BlockerCode::NodeNotDraining, BlockerCode::SubstrateTerminating] {
            let mut commands = code.remedies().iter().filter_map(|remedy| remedy.command);
            assert!(commands.any(|command| command.contains("force-drain")), "{code}");
        }
    }

    /// Whatever keeps a deletion from ending for ever names the way out.
    #[test]
    fn the_blockers_of_a_lost_substrate_name_abandon() {
        for code in [
            BlockerCode::SubstrateUnknown,
            BlockerCode::DeprovisioningOverdue,
            BlockerCode::ClusterNotServed,
        ] {
            let mut commands = code.remedies().iter().filter_map(|remedy| remedy.command);
            assert!(commands.any(|command| command.contains("abandon")), "{code}");
        }
    }

    /// Each code has a row in the table and a section with the same parts;
    /// there is no other section.
    #[test]
    fn every_code_is_documented() {
        let path = "../../docs/blockers.md";
        let text = std::fs::read_to_string(path).unwrap();
        let codes: Vec<_> = BlockerCode::ALL.iter().map(|code| code.as_str()).collect();
        let rows = text.lines().filter_map(|line| line.strip_prefix("| [`")?.split('`').next());
        assert_eq!(rows.collect::<Vec<_>>(), codes, "the table has the codes in this order");
        let sections: Vec<_> = text.split("\n## ").skip(1).collect();
        let titles = sections.iter().filter_map(|section| section.lines().next());
        assert_eq!(titles.collect::<Vec<_>>(), codes, "a section for each, in this order");
        for (code, section) in BlockerCode::ALL.iter().zip(sections) {
            let said = format!("**Owner:** {}.", code.owner());
            for part in [&said, "**Produced:**", "**Evidence:**", "**Remedies:**", "**Goes away:**"]
            {
                assert!(section.contains(part), "{code} does not say {part}");
            }
            let verbs = code.remedies().iter().filter_map(|remedy| remedy.command);
            for command in verbs {
                // The words before the placeholder and the flags.
                let verb = command.split([' ', '{']).take(3).collect::<Vec<_>>().join(" ");
                let verb = verb.split(" --").next().unwrap_or_default();
                assert!(section.contains(verb), "{code} does not show `{verb}`");
            }
        }
    }

    #[test]
    fn a_difference_has_what_was_raised_and_what_was_cleared() {
        let before = [blocker(BlockerCode::ApplyFailed, 10), blocker(BlockerCode::NodeLeft, 11)];
        let after = [blocker(BlockerCode::ApplyFailed, 50), blocker(BlockerCode::Frozen, 50)];
        let (raised, cleared) = difference(&before, &after);
        assert_eq!((raised, cleared), (vec![&after[1]], vec![&before[1]]));
        assert_eq!(difference(&after, &after), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_blocker_that_stays_keeps_its_age() {
        let before = [blocker(BlockerCode::ApplyFailed, 10), blocker(BlockerCode::NodeLeft, 11)];
        let now =
            vec![blocker(BlockerCode::ApplyFailed, 50), blocker(BlockerCode::SubstrateUnknown, 50)];
        let merged = merge(&before, now);
        let ages: Vec<_> = merged.iter().map(|b| (b.code, b.since)).collect();
        assert_eq!(
            ages,
            [(BlockerCode::SubstrateUnknown, at(50)), (BlockerCode::ApplyFailed, at(10))]
        );
    }
}

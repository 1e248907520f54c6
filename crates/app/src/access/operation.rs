//! Every operation that a caller may request, with its least role, its reach
//! and its audit verb. This table is the only source of the three: the guard of
//! a route and the use-case behind it both read it, and so do the API
//! description and the page about security. Policies can be attached to it
//! later.
//!
//! A kind has one operation for all its reads, since their routes show the
//! same. Each change has its own operation, since each has its own audit verb.

use slipway_core::access::role::{Role, Scope};

/// What an operation requires of its caller, and its name in the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The least role that may ask.
    pub least: Role,
    /// How far it reaches, and so which keys may request it.
    pub reach: Scope,
    /// The verb of its audit entry; `None` if the caller changes nothing.
    pub audit: Option<&'static str>,
    /// What may ask beside people: `an agent` for itself, `a generator` for what it owns.
    pub principals: &'static [&'static str],
}

/// An agent of Fleet.
pub(super) const AGENT: &str = "an agent";
/// A generator of Fleet.
pub(super) const GENERATOR: &str = "a generator";

macro_rules! operations {
    ($($operation:ident $least:ident $reach:ident $audit:tt $([$($principal:ident)+])?;)*) => {
        /// The closed set of operations.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Operation { $($operation,)* }

        impl Operation {
            pub const ALL: &[Self] = &[$(Self::$operation,)*];

            pub const fn terms(self) -> Terms {
                match self {
                    $(Self::$operation => Terms {
                        least: Role::$least,
                        reach: Scope::$reach,
                        audit: operations!(@audit $audit),
                        principals: &[$($($principal),+)?],
                    },)*
                }
            }
        }
    };
    (@audit -) => { None };
    (@audit $verb:literal) => { Some($verb) };
}

operations! {
    // operation            least    reach        audited as
    ResourceRead            Viewer   Project      -;
    // What a node writes may say more than its declaration.
    ResourceLogs            Operator Project      -;
    ResourceDeclare         Operator Project      "resource.declare";
    ResourceUpdate          Operator Project      "resource.update";
    ResourceDelete          Operator Project      "resource.delete";
    ResourceRetry           Operator Project      "resource.retry";
    ResourceReplace         Operator Project      "resource.replace";
    ResourceReenrol         Operator Project      "resource.reenrol";
    ResourceConfirmGone     Operator Project      "resource.confirm_gone";
    ResourceAbandon         Admin    Project      "resource.abandon";
    ResourceOrphan          Admin    Project      "resource.orphan";

    NodeRead                Viewer   Project      -;
    NodeForceDrain          Admin    Project      "node.deregister";
    TokenRead               Viewer   Project      -;
    TokenIssue              Operator Project      "token.issue";
    TokenRevoke             Operator Project      "token.revoke";

    ProjectRead             Viewer   Project      -;
    ProjectCreate           Admin    Installation "project.create";
    ProjectUpdate           Admin    Project      "project.update";
    ProjectDelete           Admin    Installation "project.delete";
    CloudRead               Viewer   Shared       -;
    CloudCreate             Admin    Installation "cloud.create";
    CloudUpdate             Admin    Installation "cloud.update";
    CloudDelete             Admin    Installation "cloud.delete";
    CredentialRead          Viewer   Installation -;
    CredentialCreate        Admin    Installation "credential.create";
    CredentialUpdate        Admin    Installation "credential.update";
    CredentialDelete        Admin    Installation "credential.delete";
    CredentialReadAssigned  Viewer   Project      -;
    CredentialAssign        Admin    Installation "credential.assign";
    CredentialWithdraw      Admin    Installation "credential.withdraw";
    BlueprintRead           Viewer   Shared       -;
    BlueprintCreate         Admin    Installation "blueprint.create";
    BlueprintUpdate         Admin    Installation "blueprint.update";
    BlueprintDelete         Admin    Installation "blueprint.delete";
    BlueprintPublish        Admin    Installation "blueprint.publish";
    BlueprintRetire         Admin    Installation "blueprint.retire";
    LabelRead               Viewer   Shared       -;
    LabelDefine             Admin    Installation "label.define";
    LabelUpdate             Admin    Installation "label.update";
    LabelDelete             Admin    Installation "label.delete";

    ClusterRead             Viewer   Shared       -;
    ClusterCreate           Admin    Installation "cluster.create";
    ClusterUpdate           Admin    Installation "cluster.update";
    ClusterDelete           Admin    Installation "cluster.delete";
    ClusterReadAssigned     Viewer   Project      -;
    ClusterListAssignments  Viewer   Installation -;
    ClusterAssign           Admin    Installation "cluster.assign";
    ClusterWithdraw         Admin    Installation "cluster.withdraw";
    ClusterAbandon          Admin    Installation "cluster.abandon";

    DeletionRead            Viewer   Project      -;
    DeletionCancel          Operator Project      "deletion.cancel";
    DeletionBreakGlass      Admin    Project      "deletion.break_glass";
    BrakeRead               Viewer   Installation -;
    BrakeRelease            Admin    Installation "brake.release";
    // Stores what was read and changes nothing. Its target asks for the role of its deletion.
    DeletionPlan            Operator Project      -;
    PlanApprove             Operator Project      "plan.approve";
    DeletionRestore         Operator Project      "deletion.restore";
    DeletionPurge           Admin    Project      "deletion.purge";
    DeletionSettingsRead    Viewer   Project      -;
    DeletionSettingsSet     Admin    Installation "deletion_settings.set";
    DeletionSettingsRemove  Admin    Installation "deletion_settings.remove";
    ProtectionRead          Viewer   Project      -;
    ProtectionSet           Operator Project      "protection.set";
    ProtectionRemove        Admin    Project      "protection.remove";
    ProtectionLift          Admin    Project      "protection.lift";
    LeakRead                Viewer   Installation -;
    // The finder audits its findings under its own name.
    LeakFind                Operator Installation -;
    LeakResolve             Operator Installation "leak.resolve";
    LeakRemove              Operator Installation "leak.remove";

    RolloutRead             Viewer   Project      -;
    RolloutStart            Operator Project      "rollout.start";
    RolloutPause            Operator Project      "rollout.pause";
    RolloutResume           Operator Project      "rollout.resume";
    RolloutAbort            Operator Project      "rollout.abort";
    RolloutRollBack         Operator Project      "rollout.roll_back";

    TenantProfileRead       Viewer   Shared       -;
    TenantProfileCreate     Admin    Installation "tenant_profile.create";
    TenantProfileUpdate     Admin    Installation "tenant_profile.update";
    TenantProfileDelete     Admin    Installation "tenant_profile.delete";
    TenantRead              Viewer   Project      -;
    TenantProvision         Operator Project      "tenant.provision";
    TenantRetry             Operator Project      "tenant.retry";
    TenantRepair            Operator Project      "tenant.repair";
    TenantResume            Admin    Project      "tenant.resume";
    TenantDelete            Operator Project      "tenant.delete";
    TenantExport            Admin    Project      "tenant.export";

    WorkspaceRead           Viewer   Project      -;
    WorkspacePause          Operator Project      "workspace.pause";
    WorkspaceResume         Operator Project      "workspace.resume";
    WorkspaceDelete         Admin    Project      "workspace.delete";
    WorkspaceTeardown       Admin    Project      "workspace.delete";
    WorkspaceCancel         Admin    Project      "deletion.cancel";
    ServerScaleUp           Operator Project      "server.scale_up";
    ServerScaleDown         Operator Project      "server.scale_down";
    ServerMark              Operator Project      "server.mark";
    ServerReplace           Operator Project      "resource.replace";
    ServerDelete            Admin    Project      "server.delete";

    KeyShowOwn              Viewer   Shared       -;
    KeyRead                 Admin    Project      -;
    KeyCreate               Admin    Project      "api_key.create";
    KeyRotate               Admin    Project      "api_key.rotate";
    KeyRevoke               Admin    Project      "api_key.revoke";
    AuditRead               Viewer   Project      -;

    EventRead               Viewer   Project      -;
    SubscriptionRead        Viewer   Installation -;
    SubscriptionRemove      Admin    Installation "subscription.remove";

    // Every object is audited by the use-case that changes it.
    FilesApply              Operator Project      -;
    DocumentRead            Viewer   Project      -;
    SourceRead              Viewer   Project      -;

    LoopRead                Viewer   Installation -;
    ControlRead             Viewer   Shared       -;
    ControlFreeze           Admin    Installation "control.freeze";
    ControlUnfreeze         Admin    Installation "control.unfreeze";
    ControlResume           Admin    Installation "control.resume";
    WithheldRead                Viewer   Installation -;

    // Whom a key speaks for.
    FleetAuthenticate       Viewer   Shared       - [AGENT GENERATOR];
    FleetRead               Viewer   Project      - [AGENT GENERATOR];
    // Generators, and what they own.
    FleetOwnRead            Viewer   Project      - [GENERATOR];
    // How all agents are doing.
    FleetOverview           Viewer   Project      -;
    // Content may be more confidential than names.
    FleetObjectRead         Operator Project      - [AGENT GENERATOR];
    FleetGeneratorCreate    Admin    Project      "generator.create";
    FleetGeneratorUpdate    Admin    Project      "generator.update" [GENERATOR];
    FleetGeneratorDelete    Admin    Project      "generator.delete" [GENERATOR];
    FleetStackCreate        Operator Project      "stack.create" [GENERATOR];
    FleetStackUpdate        Operator Project      "stack.update" [GENERATOR];
    FleetStackDelete        Operator Project      "stack.delete" [GENERATOR];
    FleetObjectSubmit       Operator Project      "stack.submit" [GENERATOR];
    FleetObjectWithdraw     Operator Project      "stack.withdraw" [GENERATOR];
    FleetTemplateCreate     Operator Project      "template.create" [GENERATOR];
    FleetTemplateUpdate     Operator Project      "template.update" [GENERATOR];
    FleetTemplateDelete     Operator Project      "template.delete" [GENERATOR];
    FleetAgentCreate        Admin    Project      "agent.create";
    FleetAgentUpdate        Admin    Project      "agent.update" [AGENT];
    FleetAgentDelete        Admin    Project      "agent.delete";
    FleetAgentTag           Admin    Project      "agent.label";
    FleetAgentRegister      Admin    Project      "agent.register" [AGENT];
    FleetAgentTarget        Operator Project      "agent.target" [GENERATOR];
    FleetKeyRotate          Admin    Project      "api_key.rotate" [AGENT GENERATOR];
    // What an agent says and is told is no change that somebody made.
    FleetOffer              Admin    Project      - [AGENT];
    FleetReport             Admin    Project      - [AGENT];
    FleetPruneConfirm       Admin    Project      "agent.confirm_prune";
}

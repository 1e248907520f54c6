//! Tenant profiles.

use slipway_app::tenants::migrate::{self, Migration};
use slipway_app::tenants::profiles;
use slipway_core::tenants::profile;
use slipway_wire::tenants::{
    CreateTenantProfile, MigrateTenants, TenantProfile, UpdateTenantProfile,
};

use crate::request::{
    Answered, Body, Call, Creation, Documented, IfMatch, Made, Referring, Segments, Shown, kind,
    text,
};
use crate::rollouts;

pub(super) async fn create(call: Call, new: Creation<CreateTenantProfile>) -> Made {
    let make = async |body: CreateTenantProfile, request| {
        let CreateTenantProfile { name, description, settings } = body;
        profiles::create(&call.context, &call.caller, &name, &description, settings, request).await
    };
    kind::create::<profile::TenantProfile, _>(&call, new, make).await
}

pub(super) async fn update(
    call: Call,
    Segments([profile]): Segments<1>,
    IfMatch(expected): IfMatch,
    Body(UpdateTenantProfile { description, settings }): Body<UpdateTenantProfile>,
) -> Shown<TenantProfile> {
    let (description, settings) = (description.as_deref(), settings.as_ref());
    profiles::update(&call.context, &call.caller, &profile, description, settings, expected)
        .await?;
    kind::show::<profile::TenantProfile>(&call, profile, false).await
}

pub(super) async fn migrate(
    call: Call,
    Segments([profile]): Segments<1>,
    Body(body): Body<MigrateTenants>,
) -> Answered {
    let input = Migration {
        profile,
        project: body.project,
        strategy: rollouts::strategy(body.strategy),
        chunk: body.chunk,
        reason: body.reason,
    };
    if body.dry_run {
        let plan = migrate::plan(&call.context, &call.caller, &input).await?;
        return rollouts::planned(&call, plan).await;
    }
    rollouts::started(&call, migrate::start(&call.context, &call.caller, &input).await?).await
}

impl Referring for TenantProfile {}

impl Documented for profile::TenantProfile {
    type Document = TenantProfile;

    fn document(&self) -> TenantProfile {
        // Whoever may not see the settings got the engine alone.
        let has_settings = self.settings.as_object().is_some_and(|fields| fields.len() > 1);
        TenantProfile {
            id: self.id.to_string(),
            name: self.name.to_string(),
            description: self.description.clone(),
            engine: self.engine().to_owned(),
            settings: has_settings.then(|| self.settings.clone()),
            revision: self.revision.0,
            created_at: self.created_at.to_string(),
            updated_at: self.updated_at.to_string(),
            deleted_at: text(self.deleted_at),
            deletion_id: text(self.deletion_id),
        }
    }
}

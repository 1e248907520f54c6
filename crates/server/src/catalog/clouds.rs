//! Clouds.

use slipway_app::catalog::clouds;
use slipway_core::catalog::cloud;
use slipway_wire::catalog::{Cloud, CreateCloud, UpdateCloud};

use crate::request::{
    Body, Call, Creation, Documented, IfMatch, Made, Referring, Segments, Shown, kind, text,
};

pub(super) async fn create(call: Call, new: Creation<CreateCloud>) -> Made {
    let make = async |body: CreateCloud, request| {
        let CreateCloud { name, provider, endpoint } = body;
        clouds::create(&call.context, &call.caller, &name, &provider, endpoint, request).await
    };
    kind::create::<cloud::Cloud, _>(&call, new, make).await
}

pub(super) async fn update(
    call: Call,
    Segments([cloud]): Segments<1>,
    IfMatch(expected): IfMatch,
    Body(body): Body<UpdateCloud>,
) -> Shown<Cloud> {
    clouds::update(&call.context, &call.caller, &cloud, body.endpoint, expected).await?;
    kind::show::<cloud::Cloud>(&call, cloud, false).await
}

impl Referring for Cloud {}

impl Documented for cloud::Cloud {
    type Document = Cloud;

    fn document(&self) -> Cloud {
        Cloud {
            id: self.id.to_string(),
            name: self.name.to_string(),
            provider: self.provider.clone(),
            endpoint: self.endpoint.as_map().clone(),
            revision: self.revision.0,
            created_at: self.created_at.to_string(),
            updated_at: self.updated_at.to_string(),
            deleted_at: text(self.deleted_at),
            deletion_id: text(self.deletion_id),
        }
    }
}

//! Generators.

use std::sync::OnceLock;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::Value;
use slipway_app::fleet::generators::{self, CreateGenerator};
use slipway_app::ports::store::Page;
use slipway_core::fleet::generator::{self, GeneratorChange};
use slipway_core::ids::GeneratorId;
use slipway_wire::fleet::{CreateGeneratorResponse, Generator, NewGenerator, UpdateGenerator};

use super::{deleting, lists, put};
use crate::request::{
    Answered, Body, Call, Creation, Documented, Id, IfMatch, Made, Referring, Shown, Tagged,
    create_once, delete_options, kind, text,
};

pub(super) async fn list(call: Call) -> Answered {
    let filter = lists::filter(&call).await?;
    let mut pages = lists::Pages::new(&call)?;
    while let Some(page) = pages.next() {
        let page = Page { after: page.after.map(GeneratorId::new), limit: page.limit };
        let found = generators::list(&call.context, &call.caller, &filter, page).await?;
        pages.add(found.map(generator::Generator::document));
    }
    Ok(pages.answer())
}

pub(super) async fn create(call: Call, new: Creation<NewGenerator>) -> Made {
    let drawn = OnceLock::new();
    let make = async |body: NewGenerator, request| {
        let input = CreateGenerator {
            project: body.project,
            name: body.name,
            description: body.description,
            accepts_secrets: body.accepts_secrets.unwrap_or_default(),
            retention: body.retention_seconds.map(Duration::from_secs),
        };
        let (id, key) = generators::create(&call.context, &call.caller, input, request).await?;
        // Of two concurrent requests, the loser has drawn a key that does not exist.
        let _ = drawn.set(key);
        Ok(id)
    };
    let show = async |id| {
        let Tagged { revision, document: generator } =
            kind::show::<generator::Generator>(&call, id, true).await?;
        let document = CreateGeneratorResponse { generator, pak: String::new() };
        Ok(Tagged { revision, document }.created(call.below(id)))
    };
    Ok(create_once(&call, new, make, show).await?.with_secret("pak", drawn.get()))
}

pub(super) async fn update(
    call: Call,
    Id(id): Id<GeneratorId>,
    IfMatch(expected): IfMatch,
    Body(body): Body<Value>,
) -> Shown<Generator> {
    let found = generators::fetch(&call.context, &call.caller, id, false).await?;
    let fields = ["name", "description", "accepts_secrets", "retention_seconds"];
    let given: UpdateGenerator = put::settable(&body, &found.document(), &fields)?;
    let change = GeneratorChange {
        name: put::name("name", given.name)?,
        description: put::description(&body, given.description.as_deref())?,
        accepts_secrets: given.accepts_secrets,
        retention: body
            .get("retention_seconds")
            .map(|_| given.retention_seconds.map(Duration::from_secs)),
    };
    generators::update(&call.context, &call.caller, id, &change, expected).await?;
    kind::show::<generator::Generator>(&call, id, false).await
}

pub(super) async fn delete(
    call: Call,
    Id(id): Id<GeneratorId>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let options = delete_options(&call.query, expected)?;
    let deletion = generators::delete(&call.context, &call.caller, id, options).await?;
    Ok(deleting::answer(deletion))
}

pub(super) async fn rotate(call: Call, Id(id): Id<GeneratorId>) -> Answered {
    let pak = generators::key(&call.context, &call.caller, id).await?.expose().to_owned();
    let generator = generators::fetch(&call.context, &call.caller, id, false).await?.document();
    Ok((StatusCode::CREATED, Json(CreateGeneratorResponse { generator, pak })).into_response())
}

impl Referring for Generator {}

impl Documented for generator::Generator {
    type Document = Generator;

    fn document(&self) -> Generator {
        Generator {
            created_at: self.created_at.to_string(),
            deleted_at: text(self.deleted_at),
            description: self.description.clone(),
            id: self.id.to_string(),
            is_active: self.deleted_at.is_none(),
            is_system: false,
            last_active_at: None,
            name: self.name.to_string(),
            updated_at: self.updated_at.to_string(),
        }
    }
}

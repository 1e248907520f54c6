//! `fleet`: what deleting and restoring a generator and answering polls of agents cost, beside
//! the scheme of the document about soft deletion and the peer's way of answering a poll, in
//! the same run, and what a server costs that many agents ask.

mod agents;
mod deletion;
mod document;
mod polls;
mod population;

use std::sync::Arc;
use std::time::Duration;

use slipway_app::Context;
use slipway_app::access::authenticate;
use slipway_app::access::authorise::Caller;
use slipway_app::fleet::generators::{self, CreateGenerator};
use slipway_core::access::audit::Actor;
use slipway_core::deletion::brake::Limits;
use slipway_core::ids::GeneratorId;
use slipway_core::secret::Secret;

use self::document::Document;
use crate::database::{Database, Kind, Pool, durable_server};
use crate::http;
use crate::machine;
use crate::plane::{Plane, operator};
use crate::report::Report;
use crate::substrate::{self, Memory};

/// How much is measured. The numbers of stacks, objects and agents stay the same, since the
/// figures depend on them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Deletions and restores, and polls in the peer's way.
    rounds: usize,
    /// How long agents poll.
    polling: Duration,
    /// Whether the server is measured on SQLite, too.
    both: bool,
}

impl Size {
    pub(crate) const FULL: Self = Self { rounds: 5, polling: Duration::from_secs(60), both: true };
    pub(crate) const QUICK: Self =
        Self { rounds: 3, polling: Duration::from_secs(20), both: false };
}

/// Our side: a generator in a database, and an admin with a key.
struct Ours {
    context: Context,
    admin: Caller,
    pool: Pool,
    generator: GeneratorId,
}

pub(crate) async fn run(size: Size) -> anyhow::Result<()> {
    println!("{}", machine::describe());
    let server = durable_server()?;
    let mut report = Report::default();
    for kind in [Kind::Postgres, Kind::Sqlite] {
        let database = Database::new(kind, &server).await?;
        let substrate = Arc::new(substrate::Instant::new(Memory::Everything));
        let plane = Plane::open("bench", &database, &substrate).await?;
        let ours = Ours::new(&plane, &database).await?;
        let document = Document::new(Database::new(kind, &server).await?).await?;
        deletion::measure(&ours, &document, kind, size.rounds, &mut report).await?;
        polls::measure(&plane, &server, &ours, &document, kind, size.rounds, &mut report).await?;
    }
    agents::measure(Kind::Postgres, &server, size.polling, &mut report).await?;
    if size.both {
        agents::measure(Kind::Sqlite, &server, size.polling, &mut report).await?;
    }
    report.finish();
    Ok(())
}

impl Ours {
    async fn new(plane: &Plane, database: &Database) -> anyhow::Result<Self> {
        let mut context = plane.context.clone();
        context.settings.brake = Limits::default();
        let actor = Actor::new("bench");
        let key = Secret::new(http::KEY);
        authenticate::install_admin_key(&context, "bench", &key, &actor).await?;
        let admin = authenticate::api_key(&context, key.expose(), "bench").await?;
        let input = CreateGenerator { name: "bench".to_owned(), ..CreateGenerator::default() };
        let (generator, _) = generators::create(&context, &operator(), input, None).await?;
        let pool = database.pool().await?;
        population::submit(&pool, generator.as_uuid()).await?;
        Ok(Self { context, admin, pool, generator })
    }
}

/// The middle one; of an even number the upper.
fn median<T: Ord>(mut figures: Vec<T>) -> T {
    figures.sort_unstable();
    let middle = figures.len() / 2;
    figures.swap_remove(middle)
}

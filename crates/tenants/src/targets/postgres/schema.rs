//! Makes a tenant: the schema and its owner in one transaction, the role of the application
//! with everything that it may do in another, then the passwords.

use super::connections::Session;
use super::ledger::{self, Entry, Existing};
use super::{PostgresTarget, literal, quoted};
use crate::targets::failure::Failure;
use crate::targets::names::TenantNames;
use crate::targets::password;
use crate::targets::sink::Role;
use crate::targets::target::Work;

/// What neither role may ever do. `NOINHERIT` would not bind a role that is a member of none.
const POWERLESS: &str = "NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS";

impl PostgresTarget {
    pub(super) async fn make_schema(&self, work: &Work<'_>) -> Result<(), Failure> {
        let names = work.names;
        let mut session = self.session().await?;
        let existing = begin_recorded(&mut session, work, SCHEMA_STEP).await?.1;
        let (schema, migrator) = (quoted(names.schema()), quoted(&names.migrator()));
        if !existing.migrator {
            let create = format!("CREATE ROLE {migrator} {POWERLESS}");
            session.run(create).await?;
            ledger::set(&mut session, names, "has_migrator = true, migrator_ready = false").await?;
        }
        ledger::borrow(&mut session, &names.migrator()).await?;
        session.run(format!("ALTER ROLE {migrator} SET search_path = {schema}")).await?;
        if !existing.schema {
            session.run(format!("CREATE SCHEMA {schema} AUTHORIZATION {migrator}")).await?;
            ledger::set(&mut session, names, "has_schema = true").await?;
        }
        // What PostgreSQL grants to everybody by default can only be withdrawn for all schemas
        // of a role; this one has no other.
        session
            .run(format!(
                "SET LOCAL ROLE {migrator};
                 REVOKE ALL ON SCHEMA {schema} FROM PUBLIC;
                 ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
                 ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM PUBLIC;
                 CREATE TABLE IF NOT EXISTS {schema}.slipway_migrations (
                     kind text NOT NULL,
                     version text NOT NULL,
                     file text NOT NULL,
                     checksum text,
                     status text NOT NULL,
                     work bigint NOT NULL,
                     token bigint NOT NULL,
                     applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
                     PRIMARY KEY (kind, version));
                 RESET ROLE"
            ))
            .await?;
        ledger::give_back(&mut session, &names.migrator()).await?;
        session.commit().await?;
        session.done();
        Ok(())
    }

    pub(super) async fn make_role(&self, work: &Work<'_>) -> Result<(), Failure> {
        let names = work.names;
        let mut session = self.session().await?;
        let (entry, existing) = begin_recorded(&mut session, work, ROLE_STEP).await?;
        entry.must_be_open(names)?;
        let (schema, runtime) = (quoted(names.schema()), quoted(&names.runtime()));
        if !existing.runtime {
            session.run(format!("CREATE ROLE {runtime} {POWERLESS}")).await?;
            ledger::set(&mut session, names, "has_runtime = true, runtime_ready = false").await?;
        }
        session.run(format!("ALTER ROLE {runtime} SET search_path = {schema}")).await?;
        ledger::borrow(&mut session, &names.migrator()).await?;
        session.run(grants(names)).await?;
        ledger::give_back(&mut session, &names.migrator()).await?;
        session.commit().await?;
        for role in [Role::Migrator, Role::Runtime] {
            self.give_password(&mut session, work, role).await?;
        }
        session.done();
        Ok(())
    }

    /// Gives a role a password that works only if the sink has it.
    ///
    /// The row of the tenant stays locked while the sink works. Otherwise a late worker could
    /// overwrite in the sink what a later one had set on the server.
    async fn give_password(
        &self,
        session: &mut Session<'_>,
        work: &Work<'_>,
        role: Role,
    ) -> Result<(), Failure> {
        let Some(sink) = &self.sink else { return Ok(()) };
        let entry: Entry = ledger::begin(session, work).await?;
        if !entry.is_ready(role) {
            let (name, password) = (quoted(&role.name(work.names)), password::generate()?);
            sink.put(work.names, role, work.fence, &password).await?;
            let verifier = literal(&password::verifier(&password)?);
            session.run(format!("ALTER ROLE {name} LOGIN PASSWORD {verifier}")).await?;
            let ready = match role {
                Role::Migrator => "migrator_ready = true",
                Role::Runtime => "runtime_ready = true",
            };
            ledger::set(session, work.names, ready).await?;
        }
        session.commit().await
    }
}

/// What each of the two steps makes.
const SCHEMA_STEP: Existing = Existing { migrator: true, schema: true, runtime: false };
const ROLE_STEP: Existing = Existing { migrator: false, schema: false, runtime: true };

/// Records what a step makes, and begins the transaction that makes it. What exists is compared
/// before the record, so that nothing foreign is recorded, and again under the lock of the tenant.
async fn begin_recorded(
    session: &mut Session<'_>,
    work: &Work<'_>,
    of_step: Existing,
) -> Result<(Entry, Existing), Failure> {
    let names = work.names;
    let entry = ledger::read(session, names).await?;
    let existing = ledger::existing(session, names).await?;
    refuse_foreign(work, entry.as_ref(), existing, of_step)?;
    for object in of_step.objects(names) {
        work.journal.making(&object).await?;
    }
    let entry = ledger::begin(session, work).await?;
    let existing = ledger::existing(session, names).await?;
    refuse_foreign(work, Some(&entry), existing, of_step)?;
    Ok((entry, existing))
}

/// Refuses objects that exist and are not this job's: unknown to the ledger, another
/// tenant's, or this tenant's from another job, whose data a cleanup would remove.
fn refuse_foreign(
    work: &Work<'_>,
    entry: Option<&Entry>,
    existing: Existing,
    of_step: Existing,
) -> Result<(), Failure> {
    let names = work.names;
    let entry = entry.filter(|entry| entry.is_of(names));
    let ours = entry.map(|entry| entry.made().objects(names)).unwrap_or_default();
    for object in existing.and(of_step).objects(names) {
        if !ours.contains(&object) {
            return Err(Failure::permanent(format!(
                "{object} exists and the ledger does not know it as tenant {}'s: nothing \
                 existing is taken over; remove or rename it, or choose another prefix",
                names.tenant()
            )));
        }
        if !work.journal.has(&object) {
            return Err(Failure::permanent(format!(
                "{object} exists and another job made it for tenant {}: destroy that tenant \
                 first",
                names.tenant()
            )));
        }
    }
    Ok(())
}

/// What the role of the application may do now, and with what the migrator makes later. Our own
/// ledger is none of its business.
fn grants(names: &TenantNames) -> String {
    let (schema, runtime) = (quoted(names.schema()), quoted(&names.runtime()));
    let migrator = quoted(&names.migrator());
    format!(
        "SET LOCAL ROLE {migrator};
         GRANT USAGE ON SCHEMA {schema} TO {runtime};
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {runtime};
         GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {runtime};
         GRANT EXECUTE ON ALL ROUTINES IN SCHEMA {schema} TO {runtime};
         ALTER DEFAULT PRIVILEGES IN SCHEMA {schema}
             GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {runtime};
         ALTER DEFAULT PRIVILEGES IN SCHEMA {schema}
             GRANT USAGE, SELECT, UPDATE ON SEQUENCES TO {runtime};
         ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT EXECUTE ON FUNCTIONS TO {runtime};
         ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT USAGE ON TYPES TO {runtime};
         REVOKE ALL ON TABLE {schema}.slipway_migrations FROM {runtime};
         RESET ROLE"
    )
}

//! Makes a tenant: the schema and its owner in one transaction, the role of the application
//! with everything that it may do in another, then the passwords.

use super::connections::Session;
use super::ledger::{self, Entry};
use super::{PostgresTarget, literal, quoted};
use crate::targets::failure::Failure;
use crate::targets::names::{self, TenantNames};
use crate::targets::password;
use crate::targets::sink::Role;
use crate::targets::target::Work;

/// What neither role may ever do. `NOINHERIT` would not bind a role that is a member of none.
const POWERLESS: &str = "NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS";

impl PostgresTarget {
    pub(super) async fn make_schema(&self, work: &Work<'_>) -> Result<(), Failure> {
        let names = work.names;
        let mut session = self.session().await?;
        refuse_foreign(
            &mut session,
            work,
            &[names::role(&names.migrator()), names::schema(names.schema())],
        )
        .await?;
        work.journal.making(&names::role(&names.migrator())).await?;
        work.journal.making(&names::schema(names.schema())).await?;

        ledger::begin(&mut session, work).await?;
        // Again, under the lock of the tenant.
        let existing = ledger::existing(session.connection(), names).await?;
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
        refuse_foreign(&mut session, work, &[names::role(&names.runtime())]).await?;
        work.journal.making(&names::role(&names.runtime())).await?;

        let entry = ledger::begin(&mut session, work).await?;
        entry.must_be_open(names)?;
        let existing = ledger::existing(session.connection(), names).await?;
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

/// Refuses objects that exist and are not this job's: unknown to the ledger, another
/// tenant's, or this tenant's from another job, whose data a cleanup would remove.
async fn refuse_foreign(
    session: &mut Session<'_>,
    work: &Work<'_>,
    objects: &[String],
) -> Result<(), Failure> {
    let names = work.names;
    let entry = ledger::read(session.connection(), names).await?;
    let existing = ledger::existing(session.connection(), names).await?;
    let entry = entry.filter(|entry| entry.tenant == names.tenant());
    for object in objects {
        let (exists, is_ours) = if *object == names::schema(names.schema()) {
            (existing.schema, entry.as_ref().is_some_and(|entry| entry.has_schema))
        } else if *object == names::role(&names.migrator()) {
            (existing.migrator, entry.as_ref().is_some_and(|entry| entry.has_migrator))
        } else {
            (existing.runtime, entry.as_ref().is_some_and(|entry| entry.has_runtime))
        };
        if !exists {
            continue;
        }
        if !is_ours {
            return Err(Failure::permanent(format!(
                "{object} exists and the ledger does not know it as tenant {}'s: nothing \
                 existing is taken over; remove or rename it, or choose another prefix",
                names.tenant()
            )));
        }
        if !work.journal.has(object) {
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

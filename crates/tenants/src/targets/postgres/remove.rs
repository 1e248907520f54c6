//! Ends a tenant: one object for a cleanup, the logins for a decommission, everything for a
//! purge.

use std::time::Duration;

use slipway_durable::Moment;

use super::connections::Session;
use super::ledger;
use super::{PostgresTarget, quoted};
use crate::StepError;
use crate::targets::failure::Failure;
use crate::targets::names::{self, TenantNames};
use crate::targets::sink::Role;
use crate::targets::target::{Fence, Work};

/// How long a session may take to end after it was told to.
const SESSIONS_END: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

impl PostgresTarget {
    pub(super) async fn highest_fence(
        &self,
        names: &TenantNames,
    ) -> Result<Option<Fence>, Failure> {
        let mut session = self.session().await?;
        let entry = ledger::read(&mut session, names).await?;
        session.done();
        let entry = entry.filter(|entry| entry.is_of(names));
        Ok(entry.map(|entry| entry.fence()))
    }

    /// Drops one object of the tenant, if the ledger knows it as such.
    pub(super) async fn remove_object(&self, work: &Work<'_>, object: &str) -> Result<(), Failure> {
        let names = work.names;
        let mut session = self.session().await?;
        if object == names::schema(names.schema()) {
            drop_schema(&mut session, work).await?;
        } else if object == names::role(&names.migrator()) {
            self.drop_role(&mut session, work, Role::Migrator).await?;
        } else if object == names::role(&names.runtime()) {
            self.drop_role(&mut session, work, Role::Runtime).await?;
        } else {
            let tenant = names.tenant();
            let problem = format!("`{object}` is no object of tenant {tenant}; it is left alone");
            return Err(Failure::permanent(problem));
        }
        session.done();
        work.journal.removed(object).await?;
        Ok(())
    }

    async fn drop_role(
        &self,
        session: &mut Session<'_>,
        work: &Work<'_>,
        role: Role,
    ) -> Result<(), Failure> {
        let names = work.names;
        let Some(entry) = ledger::begin_end(session, work).await? else { return Ok(()) };
        let existing = ledger::existing(session, names).await?;
        let (is_ours, exists, gone) = match role {
            Role::Migrator => (
                entry.has_migrator,
                existing.migrator,
                "has_migrator = false, migrator_ready = false",
            ),
            Role::Runtime => {
                (entry.has_runtime, existing.runtime, "has_runtime = false, runtime_ready = false")
            }
        };
        if is_ours && exists {
            refuse_dependents(session, names).await?;
            let (name, target) = (role.name(names), quoted(&role.name(names)));
            // Its grants, and what it owns in this database. Only who granted can revoke: for the
            // application that is the migrator, who inherits its rights for this moment.
            let by = match role {
                Role::Runtime if existing.migrator && entry.has_migrator => names.migrator(),
                _ => name.clone(),
            };
            ledger::borrow(session, &by).await?;
            let acting = quoted(&by);
            if by != name {
                session.run(format!("GRANT {target} TO {acting}")).await?;
            }
            session
                .run(format!(
                    "SET LOCAL ROLE {acting}; DROP OWNED BY {target} CASCADE; RESET ROLE;
                     DROP ROLE {target}"
                ))
                .await?;
            if by != name {
                ledger::give_back(session, &by).await?;
            }
        }
        if is_ours {
            ledger::set(session, names, gone).await?;
            if let Some(sink) = self.sink.as_ref().filter(|_| !names.is_temporary()) {
                // Before the commit: if the sink fails, the next try comes here again.
                sink.remove(names, role, work.fence).await?;
            }
        }
        session.commit().await
    }

    /// Lets nobody log in, and ends the sessions that there are. A job that failed may have left a
    /// part of a tenant behind, or nothing of it: that is closed, too.
    pub(super) async fn lock_out(&self, work: &Work<'_>) -> Result<(), Failure> {
        let names = work.names;
        let mut session = self.session().await?;
        let Some(entry) = ledger::begin_end(&mut session, work).await? else {
            session.done();
            return Ok(());
        };
        let existing = ledger::existing(&mut session, names).await?;
        let roles = existing.and(entry.made()).roles(names);
        for role in &roles {
            session.run(format!("ALTER ROLE {} NOLOGIN", quoted(role))).await?;
        }
        ledger::set(&mut session, names, "is_closed = true").await?;
        session.commit().await?;
        end_sessions(&mut session, work, &roles).await?;
        session.done();
        Ok(())
    }

    /// Lets those log in again who could before: their passwords are still the server's.
    pub(super) async fn let_in(&self, work: &Work<'_>) -> Result<(), Failure> {
        let names = work.names;
        let mut session = self.session().await?;
        let Some(entry) = ledger::begin_end(&mut session, work).await? else {
            session.done();
            return Ok(());
        };
        let existing = ledger::existing(&mut session, names).await?;
        let roles = existing.and(entry.made()).roles(names);
        for role in [Role::Migrator, Role::Runtime] {
            if entry.is_ready(role) && roles.contains(&role.name(names)) {
                let name = quoted(&role.name(names));
                session.run(format!("ALTER ROLE {name} LOGIN")).await?;
            }
        }
        ledger::set(&mut session, names, "is_closed = false").await?;
        session.commit().await?;
        session.done();
        Ok(())
    }

    /// Logins, sessions, schema, roles, in this order; then a look whether all of it is gone.
    pub(super) async fn drop_all(&self, work: &Work<'_>) -> Result<(), Failure> {
        let names = work.names;
        let mut session = self.session().await?;
        if let Some(entry) = ledger::begin_end(&mut session, work).await? {
            let existing = ledger::existing(&mut session, names).await?;
            let ours = entry.made();
            if !ours.objects(names).is_empty() {
                // Before anything is changed.
                refuse_dependents(&mut session, names).await?;
            }
            let roles = existing.and(ours).roles(names);
            for role in &roles {
                session.run(format!("ALTER ROLE {} NOLOGIN", quoted(role))).await?;
            }
            ledger::set(&mut session, names, "is_closed = true").await?;
            session.commit().await?;
            end_sessions(&mut session, work, &roles).await?;
            drop_schema(&mut session, work).await?;
            self.drop_role(&mut session, work, Role::Runtime).await?;
            self.drop_role(&mut session, work, Role::Migrator).await?;
            session.done();

            session = self.session().await?;
            let left = ledger::existing(&mut session, names).await?.and(ours).objects(names);
            if !left.is_empty() {
                let problem = format!("still there after it was dropped: {}", left.join(", "));
                return Err(Failure::transient(problem));
            }
        }
        session.done();
        for object in names.objects().iter().rev() {
            work.journal.removed(object).await?;
        }
        Ok(())
    }
}

async fn drop_schema(session: &mut Session<'_>, work: &Work<'_>) -> Result<(), Failure> {
    let names = work.names;
    let Some(entry) = ledger::begin_end(session, work).await? else { return Ok(()) };
    let existing = ledger::existing(session, names).await?;
    if entry.has_schema && existing.schema {
        refuse_dependents(session, names).await?;
        let (schema, migrator) = (quoted(names.schema()), quoted(&names.migrator()));
        ledger::borrow(session, &names.migrator()).await?;
        session
            .run(format!("SET LOCAL ROLE {migrator}; DROP SCHEMA {schema} CASCADE; RESET ROLE"))
            .await?;
        ledger::give_back(session, &names.migrator()).await?;
    }
    ledger::set(session, names, "has_schema = false, is_closed = false").await?;
    session.commit().await
}

/// What depends on a tenant and is not its own, such as a view over the tables of all tenants.
///
/// The tenant's own is its schema, what its roles own, and what belongs to an object of these
/// (`a` and `i` of `pg_depend`: a constraint to its table, a rule to its view). Partitions belong to
/// their table in the same way, but one in another schema counts as somebody else's.
const DEPENDENTS: &str = "WITH RECURSIVE own (class, object) AS (\
         SELECT 'pg_namespace'::regclass::oid, oid FROM pg_namespace WHERE nspname = $1 \
         UNION SELECT s.classid, s.objid FROM pg_shdepend s JOIN pg_roles r ON r.oid = s.refobjid \
             WHERE s.refclassid = 'pg_authid'::regclass AND s.deptype = 'o' AND r.rolname IN ($2, $3) \
             AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         UNION SELECT d.classid, d.objid FROM own \
             JOIN pg_depend d ON d.refclassid = own.class AND d.refobjid = own.object \
             LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid \
                 AND c.relispartition AND c.relkind IN ('r', 'p', 'f') \
                 AND c.relnamespace IS DISTINCT FROM (SELECT oid FROM pg_namespace WHERE nspname = $1) \
             WHERE c.oid IS NULL \
                 AND (d.deptype IN ('a', 'i') OR own.class = 'pg_namespace'::regclass)) \
     SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid) FROM own \
     JOIN pg_depend d ON d.refclassid = own.class AND d.refobjid = own.object \
     WHERE d.deptype IN ('n', 'a') AND NOT EXISTS (SELECT FROM own o \
         WHERE o.class = d.classid AND o.object = d.objid) ORDER BY 1 LIMIT 11";

/// Dependents in the text of a refusal.
const SHOWN: usize = 10;

/// Refuses to remove what others depend on: CASCADE would remove that with it, and without a word.
async fn refuse_dependents(session: &mut Session<'_>, names: &TenantNames) -> Result<(), Failure> {
    let query = sqlx::query_as(DEPENDENTS).bind(names.schema());
    let found: Vec<(String,)> =
        session.rows(query.bind(names.migrator()).bind(names.runtime())).await?;
    if found.is_empty() {
        return Ok(());
    }
    let mut shown: Vec<_> = found.iter().take(SHOWN).map(|(object,)| object.as_str()).collect();
    if found.len() > SHOWN {
        shown.push("and more");
    }
    Err(Failure::Refused(StepError::waiting(format!(
        "others' objects depend on tenant {} and would be removed with it: {}; drop or change them, \
         then resume the tenant",
        names.tenant(),
        shown.join(", ")
    ))))
}

/// Ends the sessions of roles that can no longer log in, and waits until the last is over.
async fn end_sessions(
    session: &mut Session<'_>,
    work: &Work<'_>,
    roles: &[String],
) -> Result<(), Failure> {
    let started = Moment::now();
    for role in roles {
        loop {
            ledger::begin(session, work).await?;
            ledger::borrow(session, role).await?;
            // A role may always end its own sessions, and see them.
            session.run(format!("SET LOCAL ROLE {}", quoted(role))).await?;
            const END: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                               WHERE usename = current_user AND pid <> pg_backend_pid()";
            let left: i64 = session.value(sqlx::query_as(END)).await?;
            session.run("RESET ROLE".to_owned()).await?;
            ledger::give_back(session, role).await?;
            session.commit().await?;
            if left == 0 {
                break;
            }
            if started.elapsed() > SESSIONS_END {
                let problem = format!("{left} sessions of {role} do not end");
                return Err(Failure::transient(problem));
            }
            tokio::time::sleep(POLL).await;
        }
    }
    Ok(())
}

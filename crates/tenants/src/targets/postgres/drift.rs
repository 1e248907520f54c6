//! Compares a tenant with the folders, with the model of its roles and grants, and with a tenant
//! freshly built from the folder.

use std::collections::BTreeMap;

use super::connections::Session;
use super::{PostgresTarget, ledger, migrate};
use crate::targets::failure::Failure;
use crate::targets::names::{self, TenantNames};
use crate::targets::run::Kind as Row;
use crate::targets::settings::Engine;
use crate::targets::target::{
    Difference, DifferenceKind as Kind, Drift, Fence, NoJournal, Work, structures,
};
use crate::targets::{folder, password, plan};

/// A role as the server has it.
#[derive(Debug)]
struct Role {
    name: String,
    can_login: bool,
    is_powerful: bool,
    search_path: Option<String>,
}

from_row!(Role { name, can_login, is_powerful, search_path });

const ROLES: &str = "SELECT rolname::text AS name, rolcanlogin AS can_login, \
     rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls AS is_powerful, \
     (SELECT replace(substr(setting, 13), '\"', '') FROM unnest(rolconfig) AS setting \
      WHERE setting LIKE 'search_path=%') AS search_path \
     FROM pg_roles WHERE rolname IN ($1, $2)";

/// Objects whose owner is not the migrator; the schema itself is the first.
const OWNERS: &str = "SELECT object, owner FROM ( \
     SELECT 0 AS place, 'schema ' || nspname AS object, nspowner::regrole::text AS owner, nspowner AS oid \
     FROM pg_namespace WHERE nspname = $1 \
     UNION ALL SELECT 1, 'table ' || c.relname, c.relowner::regrole::text, c.relowner \
     FROM pg_class c WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') \
     UNION ALL SELECT 2, 'function ' || p.proname, p.proowner::regrole::text, p.proowner \
     FROM pg_proc p WHERE p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)) AS found \
     WHERE oid <> (SELECT oid FROM pg_roles WHERE rolname = $2) ORDER BY place, object";

/// Rights that the role of the application lacks or should not have: object, right, whether it
/// has it.
const GRANTS: &str = "SELECT object, privilege, has FROM ( \
     SELECT 'schema ' || $1 AS object, 'USAGE' AS privilege, true AS expected, \
            has_schema_privilege(r.oid, n.oid, 'USAGE') AS has \
     FROM pg_roles r, pg_namespace n WHERE r.rolname = $2 AND n.nspname = $1 \
     UNION ALL SELECT 'schema ' || $1, 'CREATE', false, has_schema_privilege(r.oid, n.oid, 'CREATE') \
     FROM pg_roles r, pg_namespace n WHERE r.rolname = $2 AND n.nspname = $1 \
     UNION ALL SELECT 'table ' || c.relname, privilege, c.relname <> 'slipway_migrations', \
            has_table_privilege(r.oid, c.oid, privilege) \
     FROM pg_roles r, pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege \
     WHERE r.rolname = $2 AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind IN ('r', 'p') \
     UNION ALL SELECT 'table ' || c.relname, privilege, false, has_table_privilege(r.oid, c.oid, privilege) \
     FROM pg_roles r, pg_class c, unnest(ARRAY['TRUNCATE', 'REFERENCES', 'TRIGGER']) AS privilege \
     WHERE r.rolname = $2 AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind IN ('r', 'p') \
     UNION ALL SELECT 'sequence ' || c.relname, privilege, true, has_sequence_privilege(r.oid, c.oid, privilege) \
     FROM pg_roles r, pg_class c, unnest(ARRAY['USAGE', 'SELECT', 'UPDATE']) AS privilege \
     WHERE r.rolname = $2 AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind = 'S' \
     ) AS rights WHERE has <> expected ORDER BY object, privilege";

/// What everybody may do here, and what the role of the application gets of what is made later.
const DEFAULTS: &str = "SELECT \
     (SELECT count(*) FROM pg_namespace, aclexplode(nspacl) WHERE nspname = $1 AND grantee = 0) \
         AS public_rights, \
     (SELECT coalesce(string_agg(privilege_type, ', ' ORDER BY privilege_type), '') \
      FROM pg_default_acl d, aclexplode(d.defaclacl) \
      WHERE d.defaclnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND d.defaclobjtype = 'r' \
      AND d.defaclrole = (SELECT oid FROM pg_roles WHERE rolname = $2) \
      AND grantee = (SELECT oid FROM pg_roles WHERE rolname = $3)) AS tables, \
     (SELECT coalesce(string_agg(privilege_type, ', ' ORDER BY privilege_type), '') \
      FROM pg_default_acl d, aclexplode(d.defaclacl) \
      WHERE d.defaclnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND d.defaclobjtype = 'S' \
      AND d.defaclrole = (SELECT oid FROM pg_roles WHERE rolname = $2) \
      AND grantee = (SELECT oid FROM pg_roles WHERE rolname = $3)) AS sequences";

#[derive(Debug)]
struct Defaults {
    public_rights: i64,
    tables: String,
    sequences: String,
}

from_row!(Defaults { public_rights, tables, sequences });

/// Columns, indexes and constraints, with the schema's own name taken out.
const STRUCTURE: &str = "SELECT 'column ' || c.relname || '.' || a.attname, \
     format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END \
         || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') \
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
     LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum \
     WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') \
     AND c.relname NOT IN ('slipway_migrations', 'flyway_schema_history') \
     UNION ALL SELECT 'index ' || i.relname, \
         replace(pg_get_indexdef(i.oid), quote_ident($1) || '.', '') \
         || CASE WHEN x.indisvalid THEN '' ELSE ' (invalid)' END \
     FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid \
     WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) \
     AND c.relname NOT IN ('slipway_migrations', 'flyway_schema_history') \
     UNION ALL SELECT 'constraint ' || c.relname || '.' || k.conname, pg_get_constraintdef(k.oid) \
     FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid \
     WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) \
     AND c.relname NOT IN ('slipway_migrations', 'flyway_schema_history')";

impl PostgresTarget {
    pub(super) async fn compare(&self, names: &TenantNames, deep: bool) -> Result<Drift, Failure> {
        let migrations = folder::migrations(self.settings.migrations.as_deref()).await?;
        let seeds = folder::seeds(self.settings.seeds.as_deref()).await?;
        let mut differences = Vec::new();
        let mut session = self.session().await?;
        let entry = ledger::read(&mut session, names).await?;
        let entry = entry.filter(|entry| entry.is_of(names) && entry.has_schema);
        let existing = ledger::existing(&mut session, names).await?;
        let Some(entry) = entry.filter(|_| existing.schema && existing.migrator) else {
            let (object, expected) = (names::schema(names.schema()), "there".to_owned());
            let found = "not there, or not this tenant's".to_owned();
            differences.push(Difference { kind: Kind::Object, object, expected, found });
            return Ok(Drift { differences });
        };
        begin(&mut session, names).await?;
        let applied = migrate::rows(&mut session, names, Row::Migration).await?;
        let seeded = migrate::rows(&mut session, names, Row::Seed).await?;
        let mut found = model(&mut session, names, !entry.is_closed).await?;
        let ours = if deep { structure(&mut session, names).await? } else { BTreeMap::new() };
        session.run("ROLLBACK".to_owned()).await?;
        session.done();
        for (object, expected, found) in plan::differences(&migrations, &applied, &seeds, &seeded) {
            let (expected, found) = (expected.to_owned(), found.to_owned());
            differences.push(Difference { kind: Kind::Ledger, object, expected, found });
        }
        differences.append(&mut found);
        if deep {
            differences.extend(structures(&self.fresh_structure().await?, &ours));
        }
        Ok(Drift { differences })
    }

    /// The structure of a tenant that has nothing but the migrations of the folder.
    async fn fresh_structure(&self) -> Result<BTreeMap<String, String>, Failure> {
        let mut session = self.session().await?;
        let forgotten = ledger::forgotten(&mut session).await?;
        session.done();
        for schema in forgotten {
            let random = schema.trim_start_matches("slipway_drift_");
            self.end_temporary(&TenantNames::temporary(Engine::Postgres, random)).await?;
        }
        let names = TenantNames::temporary(Engine::Postgres, &password::random_name()?);
        let built = self.build_temporary(&names).await;
        // Also what was built half.
        let ended = self.end_temporary(&names).await;
        let built = built?;
        ended?;
        Ok(built)
    }

    async fn build_temporary(
        &self,
        names: &TenantNames,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let work = temporary(names);
        self.make_schema(&work).await?;
        self.apply_migrations(&work).await?;
        let mut session = self.session().await?;
        begin(&mut session, names).await?;
        let structure = structure(&mut session, names).await?;
        session.run("ROLLBACK".to_owned()).await?;
        session.done();
        Ok(structure)
    }

    async fn end_temporary(&self, names: &TenantNames) -> Result<(), Failure> {
        self.drop_all(&temporary(names)).await?;
        let mut session = self.session().await?;
        ledger::forget(&mut session, names).await?;
        session.done();
        Ok(())
    }
}

fn temporary(names: &TenantNames) -> Work<'_> {
    Work { names, fence: Fence::default(), lost: None, journal: &NoJournal }
}

/// A transaction that acts as the migrator and is rolled back, so that it leaves neither a
/// membership nor a fence.
async fn begin(session: &mut Session<'_>, names: &TenantNames) -> Result<(), Failure> {
    ledger::begin_locked(session, names).await?;
    ledger::borrow(session, &names.migrator()).await?;
    migrate::act_as_migrator(session, names).await
}

/// Roles, owners and grants that are not as the model has them.
async fn model(
    session: &mut Session<'_>,
    names: &TenantNames,
    is_open: bool,
) -> Result<Vec<Difference>, Failure> {
    let (schema, migrator, runtime) = (names.schema(), names.migrator(), names.runtime());
    let mut differences = Vec::new();
    let mut differ = |kind: Kind, object: String, expected: &str, found: &str| {
        let (expected, found) = (expected.to_owned(), found.to_owned());
        differences.push(Difference { kind, object, expected, found });
    };
    let roles = sqlx::query_as(ROLES).bind(&migrator).bind(&runtime);
    let roles: Vec<Role> = session.rows(roles).await?;
    for name in [&migrator, &runtime] {
        let object = names::role(name);
        let Some(role) = roles.iter().find(|role| role.name == **name) else {
            differ(Kind::Object, object, "there", "not there");
            continue;
        };
        if role.is_powerful {
            let expected = "no rights beyond the schema";
            differ(Kind::Object, object.clone(), expected, "SUPERUSER, CREATE… or the like");
        }
        if role.can_login != is_open {
            let login = |can| if can { "LOGIN" } else { "NOLOGIN" };
            differ(Kind::Object, object.clone(), login(is_open), login(role.can_login));
        }
        if role.search_path.as_deref() != Some(schema) {
            let found = role.search_path.as_deref().unwrap_or("none");
            differ(Kind::Object, object, &format!("search_path {schema}"), found);
        }
    }
    let owners = sqlx::query_as(OWNERS).bind(schema).bind(&migrator);
    let owners: Vec<(String, String)> = session.rows(owners).await?;
    for (object, owner) in owners {
        differ(Kind::Owner, object, &migrator, &owner);
    }
    let grants = sqlx::query_as(GRANTS).bind(schema).bind(&runtime);
    let grants: Vec<(String, String, bool)> = session.rows(grants).await?;
    for (object, privilege, has) in grants {
        let shown = |has| {
            if has {
                format!("{privilege} for {runtime}")
            } else {
                format!("no {privilege} for {runtime}")
            }
        };
        differ(Kind::Grant, object, &shown(!has), &shown(has));
    }
    let defaults = sqlx::query_as(DEFAULTS).bind(schema).bind(&migrator).bind(&runtime);
    let Defaults { public_rights, tables, sequences } =
        session.first(defaults).await?.ok_or(sqlx::Error::RowNotFound)?;
    if public_rights > 0 {
        differ(Kind::Grant, names::schema(schema), "nothing for PUBLIC", "rights for PUBLIC");
    }
    for (object, expected, found) in [
        ("tables", "DELETE, INSERT, SELECT, UPDATE", tables),
        ("sequences", "SELECT, UPDATE, USAGE", sequences),
    ] {
        if found != expected {
            differ(Kind::Grant, format!("default privileges on {object}"), expected, &found);
        }
    }
    Ok(differences)
}

async fn structure(
    session: &mut Session<'_>,
    names: &TenantNames,
) -> Result<BTreeMap<String, String>, Failure> {
    let query = sqlx::query_as(STRUCTURE).bind(names.schema());
    let rows: Vec<(String, String)> = session.rows(query).await?;
    Ok(rows.into_iter().collect())
}

//! The names of a tenant's objects on a target: pure.

use super::settings::{Engine, Settings};

/// One tenant, and the names that are derived from its own.
///
/// The name of the schema or file is the prefix and the tenant, with `_` for `-`. Two tenants
/// that come to the same name do not share anything: the target's ledger knows whose it is, and
/// refuses the second. Names are always quoted, so upper case and words of SQL are fine.
///
/// The ledger knows a tenant by its owner. That is its name, unless [`TenantNames::owned_by`] says
/// otherwise: whoever gives a name to a new tenant once the old one is gone, or has several
/// programs on one target, needs an id there that no other tenant has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantNames {
    tenant: String,
    owner: String,
    schema: String,
    engine: Engine,
}

/// A tenant that cannot have such names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error(
        "`{name}` cannot name a schema or a file: use letters, digits, `_` and `-`, no digit or \
         `-` first"
    )]
    Letters { name: String },
    #[error("`{name}` is too long for a schema and its roles: use {most} characters at most")]
    TooLong { name: String, most: usize },
    #[error("`{name}` is reserved: choose another name or prefix")]
    Reserved { name: String },
}

/// The schema of the target's ledger.
pub(crate) const LEDGER_SCHEMA: &str = "slipway_tenants";

/// Begins the names that belong to this crate.
const OURS: &str = "slipway_";

const RESERVED: [&str; 8] = [
    "public",
    "postgres",
    "information_schema",
    "template0",
    "template1",
    "none",
    "current_user",
    "session_user",
];

const MIGRATOR: &str = "_migrator";
const RUNTIME: &str = "_runtime";

/// PostgreSQL cuts longer names, and would then take one for another.
const LONGEST: usize = 63;

impl TenantNames {
    /// The names of a tenant, unless they are impossible or reserved.
    pub fn of(settings: &Settings, tenant: &str) -> Result<Self, NameError> {
        let name = format!("{}{tenant}", settings.prefix);
        let schema = name.replace('-', "_");
        let first = name.chars().next();
        let starts = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let letters = schema.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if tenant.is_empty() || !starts || !letters {
            let shown = name.chars().filter(|c| !c.is_control()).take(100).collect();
            return Err(NameError::Letters { name: shown });
        }
        let most = LONGEST - MIGRATOR.len();
        if schema.len() > most {
            return Err(NameError::TooLong { name: name.chars().take(100).collect(), most });
        }
        let lower = schema.to_ascii_lowercase();
        if RESERVED.contains(&lower.as_str()) || lower.starts_with("pg_") || lower.starts_with(OURS)
        {
            return Err(NameError::Reserved { name });
        }
        let tenant = tenant.to_owned();
        Ok(Self { owner: tenant.clone(), tenant, schema, engine: settings.engine })
    }

    /// The same names for the tenant with this id, by which the ledger knows it.
    #[must_use]
    pub fn owned_by(self, id: impl Into<String>) -> Self {
        Self { owner: id.into(), ..self }
    }

    /// A tenant that exists for a moment, to compare others with. No other can have its names.
    pub(crate) fn temporary(engine: Engine, random: &str) -> Self {
        let schema = format!("{OURS}drift_{random}");
        Self { tenant: schema.clone(), owner: schema.clone(), schema, engine }
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.schema.starts_with(OURS)
    }

    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// By what the target's ledger knows the tenant.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Whether the ledger names the tenant and not its id, as development versions of Slipway
    /// wrote it. It may be this tenant or another one of the same name: nobody can tell.
    pub(crate) fn is_unclear(&self, owner: &str) -> bool {
        owner == self.tenant && owner != self.owner
    }

    /// The schema; of SQLite the name of the file without its end.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    #[must_use]
    pub const fn engine(&self) -> Engine {
        self.engine
    }

    /// The role that owns the schema and everything in it.
    #[must_use]
    pub fn migrator(&self) -> String {
        format!("{}{MIGRATOR}", self.schema)
    }

    /// The role of the application.
    #[must_use]
    pub fn runtime(&self) -> String {
        format!("{}{RUNTIME}", self.schema)
    }

    /// The database file.
    #[must_use]
    pub fn file(&self) -> String {
        format!("{}.db", self.schema)
    }

    /// What a job that makes this tenant records, in the order in which it is made.
    #[must_use]
    pub fn objects(&self) -> Vec<String> {
        match self.engine {
            Engine::Postgres => {
                vec![role(&self.migrator()), schema(&self.schema), role(&self.runtime())]
            }
            Engine::Sqlite => vec![file(&self.file())],
        }
    }
}

pub(crate) fn schema(name: &str) -> String {
    format!("schema {name}")
}

pub(crate) fn role(name: &str) -> String {
    format!("role {name}")
}

pub(crate) fn file(name: &str) -> String {
    format!("file {name}")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::targets::settings::Reference;

    fn mk_settings(prefix: &str) -> Settings {
        let target = Reference::File(PathBuf::from("/dsn"));
        Settings { prefix: prefix.to_owned(), ..Settings::new(Engine::Postgres, target) }
    }

    fn name(prefix: &str, tenant: &str) -> Result<String, NameError> {
        TenantNames::of(&mk_settings(prefix), tenant).map(|names| names.schema().to_owned())
    }

    #[test]
    fn names_are_derived_and_reserved_ones_refused() {
        assert_eq!(name("t_", "acme-1"), Ok("t_acme_1".to_owned()));
        assert_eq!(name("", "Select"), Ok("Select".to_owned()));
        for reserved in ["public", "PUBLIC", "pg_x", "PG-toast", "slipway_tenants", "postgres"] {
            assert!(matches!(name("", reserved), Err(NameError::Reserved { .. })), "{reserved}");
        }
        for wrong in ["", "1a", "-a", "a b", "a\"b", "a'; DROP", "ä", "a\0", "../a", "a/b", "."] {
            assert!(matches!(name("", wrong), Err(NameError::Letters { .. })), "{wrong}");
        }
        assert!(name("", &"a".repeat(54)).is_ok());
        assert!(matches!(name("", &"a".repeat(55)), Err(NameError::TooLong { .. })));
    }

    proptest! {
        /// Whatever a tenant is called, no name of its objects needs more than quotes, and
        /// none is cut by PostgreSQL.
        #[test]
        fn every_name_is_an_identifier(prefix in "[a-z_]{0,10}", tenant in ".{0,80}") {
            if let Ok(names) = TenantNames::of(&mk_settings(&prefix), &tenant) {
                for name in [names.schema().to_owned(), names.migrator(), names.runtime()] {
                    prop_assert!(name.len() <= 63 && !name.starts_with(|c: char| c.is_ascii_digit()));
                    prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
                }
            }
        }
    }
}

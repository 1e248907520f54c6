//! A checked name of a table, for statements that are made at run time.
//!
//! A name passes the check or there is no [`TableName`], and nothing but a checked name
//! is ever put into the text of a statement. A statement is kept for the life of the
//! process, once for each name: the driver wants text that lives as long, and a program
//! has one or two such tables.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The name of a table, perhaps with the name of its schema, as `tenants.jobs`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    schema: Option<String>,
    table: String,
}

/// Each part. With `idx_` before it and seven characters after it, the name of an index
/// still has the 63 bytes that PostgreSQL keeps of one.
const LONGEST: usize = 52;

impl TableName {
    /// Stands for the name in a statement that is made for [`TableName::in_statement`].
    pub const PLACEHOLDER: &str = "{table}";

    /// Stands for the name without its schema and quotes, as a part of another name.
    pub const PART: &str = "{part}";

    /// A name of letters, digits and underscores that begins with no digit, of ASCII alone,
    /// and at most one dot between two of them. `None` for any other.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (schema, table) = match name.split_once('.') {
            Some((schema, table)) => (Some(schema), table),
            None => (None, name),
        };
        let good = is_identifier(table) && schema.is_none_or(is_identifier);
        good.then(|| Self { schema: schema.map(str::to_owned), table: table.to_owned() })
    }

    #[must_use]
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The statement with this name in the places that are kept for it.
    #[must_use]
    pub fn in_statement(&self, statement: &str) -> &'static str {
        let schema = self.schema.as_ref().map_or(String::new(), |name| format!("\"{name}\"."));
        let quoted = format!("{schema}\"{}\"", self.table);
        interned(statement.replace(Self::PLACEHOLDER, &quoted).replace(Self::PART, &self.table))
    }
}

/// A statement that lives as long as the process; an equal one is kept once. Only for text
/// that comes from constants and checked names.
#[must_use]
pub fn interned(statement: String) -> &'static str {
    static INTERNED: OnceLock<Mutex<HashSet<&'static str>>> = OnceLock::new();
    let mut interned =
        INTERNED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = interned.get(statement.as_str()) {
        return same;
    }
    let statement: &'static str = statement.leak();
    interned.insert(statement);
    statement
}

fn is_identifier(part: &str) -> bool {
    part.len() <= LONGEST
        && part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && part.chars().all(|other| other.is_ascii_alphanumeric() || other == '_')
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.table),
            None => f.write_str(&self.table),
        }
    }
}

impl fmt::Debug for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_letters_digits_and_underscores() {
        let longest = format!("{}.{}", "s".repeat(52), "t".repeat(52));
        for good in ["jobs", "_jobs2", "tenants.jobs", longest.as_str()] {
            assert_eq!(TableName::parse(good).map(|name| name.to_string()), Some(good.to_owned()));
        }
        let too_long = "t".repeat(53);
        let bad =
            ["", ".", "jobs.", ".jobs", "a.b.c", "2jobs", "jobs;--", "jo bs", "jobs\"", "jöbs"];
        for bad in bad.into_iter().chain([too_long.as_str()]) {
            assert_eq!(TableName::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_statement_is_made_once_for_each_name() {
        const SQL: &str = "CREATE INDEX idx_{part} ON {table} (id)";
        let name = TableName::parse("tenants.jobs").unwrap();
        let made = name.in_statement(SQL);
        assert_eq!(made, "CREATE INDEX idx_jobs ON \"tenants\".\"jobs\" (id)");
        assert!(std::ptr::eq(made, name.in_statement(SQL)), "the same text");
        let other = TableName::parse("jobs").unwrap();
        assert_eq!(other.in_statement(SQL), "CREATE INDEX idx_jobs ON \"jobs\" (id)");
    }
}

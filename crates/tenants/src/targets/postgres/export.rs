//! A copy of a schema, by `pg_dump`.
//!
//! The password goes to it by its environment, which no other user can read, and everything else of
//! the connection string by its arguments.

use percent_encoding::percent_decode_str;
use tokio::process::Command;
use url::Url;

use super::{PostgresTarget, ledger, quoted};
use crate::StepError;
use crate::targets::export::{Export, Program};
use crate::targets::failure::Failure;
use crate::targets::names::TenantNames;
use crate::targets::secret::Secret;

/// Where it finds programs and, as the provisioner does, what the connection string leaves out.
const PASSED_ON: [&str; 2] = ["PATH", "HOME"];

impl PostgresTarget {
    /// The provisioner is a member of the migrator until the program acts as it. If the caller goes
    /// away meanwhile, it stays one until the next migration.
    pub(super) async fn dump(&self, names: &TenantNames) -> Result<Export, Failure> {
        let mut command = self.pg_dump(names)?;
        let mut session = self.session().await?;
        ledger::hold(&mut session, names).await?;
        let entry = ledger::read(&mut session, names).await?;
        if !entry.is_some_and(|entry| entry.is_of(names) && entry.has_schema) {
            let (tenant, schema) = (names.tenant(), names.schema());
            let problem = format!("the ledger knows no schema {schema} of tenant {tenant}");
            return Err(Failure::permanent(problem));
        }
        ledger::borrow(&mut session, &names.migrator()).await?;
        let begun = Program::start("pg_dump", &mut command).await;
        ledger::give_back(&mut session, &names.migrator()).await?;
        ledger::free(&mut session, names).await?;
        session.done();
        Ok(Export::of_program(begun?))
    }

    fn pg_dump(&self, names: &TenantNames) -> Result<Command, StepError> {
        let (url, password) = split(&self.dsn)?;
        let mut command = Command::new("pg_dump");
        command.env_clear();
        let inherited =
            std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_passed_on));
        command.envs(inherited);
        if let Some(password) = password {
            command.env("PGPASSWORD", password.expose());
        }
        command.args(["--format=custom", "--no-owner", "--no-privileges", "--no-password"]);
        let timeout = self.settings.lock_timeout().as_millis();
        command.arg(format!("--lock-wait-timeout={timeout}"));
        command.arg(format!("--role={}", names.migrator()));
        // A pattern: quoted it is one name.
        command.arg(format!("--schema={}", quoted(names.schema())));
        command.arg(format!("--dbname={url}"));
        Ok(command)
    }
}

fn is_passed_on(name: &str) -> bool {
    PASSED_ON.contains(&name) || name.starts_with("PG")
}

/// The connection string without its password, and the password.
fn split(dsn: &Secret) -> Result<(Url, Option<Secret>), StepError> {
    let unreadable = || {
        // Not what the parser says: it may quote the password.
        StepError::permanent("the target's connection string is no URL, so pg_dump cannot use it")
    };
    let mut url = Url::parse(dsn.expose()).map_err(|_| unreadable())?;
    let decoded = |text: &str| Secret::new(percent_decode_str(text).decode_utf8_lossy());
    let mut password = url.password().map(decoded);
    if password.is_some() {
        url.set_password(None).map_err(|()| unreadable())?;
    }
    let pairs: Vec<_> = url.query_pairs().map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
    if !pairs.is_empty() {
        url.set_query(None);
    }
    for (name, value) in pairs {
        match name.as_str() {
            "password" => password = Some(Secret::new(value)),
            // Only our own driver knows it.
            "statement-cache-capacity" => {}
            _ => drop(url.query_pairs_mut().append_pair(&name, &value)),
        }
    }
    Ok((url, password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_argument_has_the_password() {
        let cases = [
            ("postgres://u:p%40%2B+w@h:5/d", "postgres://u@h:5/d", Some("p@++w")),
            ("postgres://u@h/d?password=x%2By", "postgres://u@h/d", Some("x+y")),
            ("postgres://u@h/d?sslmode=require", "postgres://u@h/d?sslmode=require", None),
            (
                "postgres://u:a@h/d?statement-cache-capacity=0&password=b&application_name=c",
                "postgres://u@h/d?application_name=c",
                Some("b"),
            ),
        ];
        for (dsn, url, password) in cases {
            let (found, secret) = split(&Secret::new(dsn)).expect(dsn);
            assert_eq!((found.as_str(), secret.as_ref().map(Secret::expose)), (url, password));
        }
        let error = split(&Secret::new("host=h password=hunter2")).unwrap_err();
        assert!(!error.message.contains("hunter2"), "{error:?}");
    }
}

//! A copy of a schema, by `pg_dump`.
//!
//! The password goes to it by its environment, which no other user can read, and everything else of
//! the connection string by its arguments.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
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

/// Of a value in a connection string.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'/');

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
    // Our driver folds several into one, and libpq takes the last.
    let mut options = Vec::new();
    let mut parameters = Vec::new();
    for (name, value) in pairs {
        if name == "password" {
            password = Some(Secret::new(value));
        } else if name == "options" {
            options.push(value);
        } else if let Some(key) = name.strip_prefix("options[").and_then(|k| k.strip_suffix(']')) {
            options.push(format!("-c {key}={value}"));
        } else if let Some((name, value)) = of_libpq(&name, value) {
            parameters.push((name, value));
        }
    }
    if !options.is_empty() {
        parameters.push(("options", options.join(" ")));
    }
    if !parameters.is_empty() {
        // For libpq a plus is no blank, so this is no form.
        let encoded = |(name, value): (&str, String)| {
            format!("{name}={}", utf8_percent_encode(&value, ENCODED))
        };
        let parameters: Vec<_> = parameters.into_iter().map(encoded).collect();
        url.set_query(Some(&parameters.join("&")));
    }
    Ok((url, password))
}

/// A parameter of our driver as libpq knows it. What only the driver knows, or nobody, the driver
/// ignores or has alone; `pg_dump` would refuse it, and it may be a secret.
fn of_libpq(name: &str, value: String) -> Option<(&'static str, String)> {
    let name = match name {
        // Our driver reads its values in any case.
        "sslmode" | "ssl-mode" => return Some(("sslmode", value.to_ascii_lowercase())),
        "sslrootcert" | "ssl-root-cert" | "ssl-ca" => "sslrootcert",
        "sslcert" | "ssl-cert" => "sslcert",
        "sslkey" | "ssl-key" => "sslkey",
        "host" => "host",
        "hostaddr" => "hostaddr",
        "port" => "port",
        "dbname" => "dbname",
        "user" => "user",
        "application_name" => "application_name",
        _ => return None,
    };
    Some((name, value))
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
            (
                "postgres://h/d?ssl-mode=VERIFY-FULL&ssl-root-cert=/ca&ssl-cert=/c&ssl-key=/k",
                "postgres://h/d?sslmode=verify-full&sslrootcert=/ca&sslcert=/c&sslkey=/k",
                None,
            ),
            (
                "postgres://h/d?options[geqo]=off&options=-c%20work_mem%3D8MB&ssl-ca=/ca",
                "postgres://h/d?sslrootcert=/ca&options=-c%20geqo%3Doff%20-c%20work_mem%3D8MB",
                None,
            ),
            ("postgres://h/d?sslpassword=hunter2&unknown=1", "postgres://h/d", None),
        ];
        for (dsn, url, password) in cases {
            let (found, secret) = split(&Secret::new(dsn)).expect(dsn);
            assert_eq!((found.as_str(), secret.as_ref().map(Secret::expose)), (url, password));
        }
        let error = split(&Secret::new("host=h password=hunter2")).unwrap_err();
        assert!(!error.message.contains("hunter2"), "{error:?}");
    }
}

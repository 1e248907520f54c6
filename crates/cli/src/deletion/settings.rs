//! `slipway deletion settings …`: how deletions of a project and kind go.

use std::time::Duration;

use clap::{Args, Subcommand};
use reqwest::Method;
use slipway_core::time::parse_duration;
use slipway_wire::deletion::{DeletionSetting, SetDeletionSetting};

use crate::arguments::{because, whole_seconds};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Row};
use crate::output::time;
use crate::session::Session;

const PATH: &str = "deletion-settings";
/// Stands for every project, or every kind.
const ALL: &str = "-";

#[derive(Debug, Clone, Subcommand)]
pub enum SettingsCommand {
    /// List the settings of deletions
    List,
    /// Set values for a project, a kind, both, or everything; the others stay
    Set {
        #[command(flatten)]
        scope: Scope,
        /// How long a deletion waits before it touches anything, 365d at most
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        grace: Option<Duration>,
        /// How long something deleted is kept before it is purged, 3650d at most
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        retention: Option<Duration>,
        /// Deletions of more resources than this need an approval
        #[arg(long, value_name = "COUNT")]
        approve_above: Option<i64>,
        /// Whether nobody may purge before the retention ends
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
        purge_protected: Option<bool>,
        /// Why; kept in the audit
        #[arg(long)]
        reason: Option<String>,
    },
    /// Take all values of a project, a kind, both, or everything away
    Remove {
        #[command(flatten)]
        scope: Scope,
        /// Why; kept in the audit
        #[arg(long)]
        reason: Option<String>,
    },
}

/// What the settings are for.
#[derive(Debug, Clone, Args)]
pub struct Scope {
    /// A project; without it every project
    #[arg(long)]
    pub project: Option<String>,
    /// project, resource, cluster, blueprint, cloud, credential or label; without it every kind
    #[arg(long)]
    pub kind: Option<String>,
}

impl Scope {
    fn path(&self) -> [&str; 3] {
        [PATH, self.project.as_deref().unwrap_or(ALL), self.kind.as_deref().unwrap_or(ALL)]
    }
}

/// In the largest unit that says it exactly, as the flags take it.
fn seconds(value: Option<u64>) -> Option<String> {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    value
        .and_then(|value| {
            let (unit, name) =
                units.into_iter().find(|(unit, _)| value > 0 && value % unit == 0)?;
            Some(format!("{}{name}", value / unit))
        })
        .or(value.map(|_| "0s".to_owned()))
}

fn or_all(value: Option<&str>) -> String {
    value.unwrap_or("all").to_owned()
}

impl Row for DeletionSetting {
    fn cells(&self) -> Cells {
        let dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        vec![
            ("PROJECT", or_all(self.project.as_deref().or(self.project_id.as_deref()))),
            ("KIND", or_all(self.kind.as_deref())),
            ("GRACE", dash(seconds(self.grace_seconds))),
            ("RETENTION", dash(seconds(self.retention_seconds))),
            ("APPROVE ABOVE", dash(self.approve_above.map(|count| count.to_string()))),
            ("PURGE PROTECTED", dash(self.purge_protected.map(|on| on.to_string()))),
        ]
    }

    fn wide(&self) -> Cells {
        vec![
            ("AGE", self.set_at.clone()),
            ("BY", self.set_by.clone()),
            ("REASON", self.reason.clone()),
        ]
    }
}

impl Detail for DeletionSetting {
    fn facts(&self) -> Facts {
        vec![
            ("project", Some(or_all(self.project.as_deref().or(self.project_id.as_deref())))),
            ("kind", Some(or_all(self.kind.as_deref()))),
            ("grace", seconds(self.grace_seconds)),
            ("retention", seconds(self.retention_seconds)),
            ("approve above", self.approve_above.map(|count| count.to_string())),
            ("purge protected", self.purge_protected.map(|on| on.to_string())),
            ("set", Some(time(&self.set_at))),
            ("by", Some(self.set_by.clone())),
            ("reason", Some(self.reason.clone())),
        ]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: SettingsCommand) -> Result<(), Error> {
    match command {
        SettingsCommand::List => {
            let found: Vec<DeletionSetting> = session.client.get(&[PATH]).await?;
            session.show_all(&found, "deletion settings");
            Ok(())
        }
        SettingsCommand::Set {
            scope,
            grace,
            retention,
            approve_above,
            purge_protected,
            reason,
        } => {
            let before = current(session, &scope).await?;
            let whole = |flag, time: Option<Duration>| {
                time.map(|time| whole_seconds(flag, time)).transpose()
            };
            let body = SetDeletionSetting {
                grace_seconds: whole("--grace", grace)?.or(before.grace_seconds),
                retention_seconds: whole("--retention", retention)?.or(before.retention_seconds),
                approve_above: approve_above.or(before.approve_above),
                purge_protected: purge_protected.or(before.purge_protected),
                reason,
            };
            let set: DeletionSetting = session.client.put(&scope.path(), &body).await?;
            session.show_details(&set);
            Ok(())
        }
        SettingsCommand::Remove { scope, reason } => {
            session.client.silent_with(Method::DELETE, &scope.path(), &because(reason)).await
        }
    }
}

/// The values that the scope has now.
async fn current(session: &Session<'_>, scope: &Scope) -> Result<SetDeletionSetting, Error> {
    let found: Vec<DeletionSetting> = session.client.get(&[PATH]).await?;
    let of_project = |one: &DeletionSetting| match &scope.project {
        None => one.project_id.is_none(),
        Some(named) => {
            one.project.as_ref() == Some(named)
                || one.project_id.as_ref().is_some_and(|id| id.starts_with(named.as_str()))
        }
    };
    let own = found.into_iter().find(|one| of_project(one) && one.kind == scope.kind);
    Ok(own.map_or_else(SetDeletionSetting::default, |own| SetDeletionSetting {
        grace_seconds: own.grace_seconds,
        retention_seconds: own.retention_seconds,
        approve_above: own.approve_above,
        purge_protected: own.purge_protected,
        reason: None,
    }))
}

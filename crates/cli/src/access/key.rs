//! `slipway key …`: who may use the API.

use std::time::Duration;

use clap::Subcommand;
use serde::de::IgnoredAny;
use slipway_wire::access::{ApiKey, ApiKeyWithText, CreateKey, RotateKey};

use crate::arguments::{
    IdArguments, PageArguments, RevokeArguments, because, parse_duration, whole_seconds,
};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{name_and_id, optional_time, or_dash, time};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum KeyCommand {
    /// Make a key; its text is shown this once
    Create {
        /// How the audit names whoever uses it
        #[arg(long)]
        name: String,
        /// What it may do
        #[arg(long, value_parser = ["viewer", "operator", "admin"])]
        role: String,
        /// The person or program that holds it; as the key that makes it, if not given
        #[arg(long)]
        owner: Option<String>,
        /// The only project that it reaches (name, id or beginning of the id); all of them if not given
        #[arg(long)]
        project: Option<String>,
        /// When it ends by itself, for instance 30d; never if not given
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        ttl: Option<Duration>,
    },
    /// List keys, also those that are revoked
    List(PageArguments),
    /// Show one key
    Show(IdArguments),
    /// Rotate a key: it gets another text, which is shown this once
    Rotate {
        /// Name, id or beginning of the id of the key
        #[arg(value_name = "KEY")]
        id: String,
        /// How long the previous text stays valid, 7d at most
        #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0s")]
        overlap: Duration,
    },
    /// End a key at once
    Revoke(RevokeArguments),
    /// Show the key that this command uses
    Whoami,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway key create --name ci --role operator --project shop --ttl 30d",
    "slipway key list",
    "slipway key show ci",
    "slipway key rotate ci --overlap 1h",
    "slipway key revoke ci --reason lost --yes",
    "slipway key whoami",
];

impl Kind for ApiKey {
    const PATH: &'static str = "keys";
}

impl Row for ApiKey {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("ROLE", self.role.clone()),
            ("STATE", self.state.clone()),
            ("PROJECT", or_dash(self.project.as_deref().or(self.project_id.as_deref()))),
            ("AGE", self.created_at.clone()),
            ("EXPIRES", or_dash(self.expires_at.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![
            ("OWNER", self.owner.clone()),
            ("CREATED BY", or_dash(self.created_by.as_deref())),
            ("PROJECT ID", or_dash(self.project_id.as_deref())),
            ("ID", self.id.clone()),
        ]
    }
}

impl Detail for ApiKey {
    const NOUN: &'static str = "key";

    fn facts(&self) -> Facts {
        vec![
            ("name", Some(self.name.clone())),
            ("id", Some(self.id.clone())),
            ("owner", Some(self.owner.clone())),
            ("role", Some(self.role.clone())),
            (
                "project",
                Some(match &self.project_id {
                    Some(id) => name_and_id(self.project.as_deref(), id),
                    None => "all".to_owned(),
                }),
            ),
            ("state", Some(self.state.clone())),
            ("created", Some(time(&self.created_at))),
            ("created by", self.created_by.clone()),
            ("rotated", optional_time(self.rotated_at.as_ref())),
            ("rotated by", self.rotated_by.clone()),
            ("text before good until", optional_time(self.previous_until.as_ref())),
            ("expires", optional_time(self.expires_at.as_ref())),
            ("revoked", optional_time(self.revoked_at.as_ref())),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

impl Detail for ApiKeyWithText {
    const NOUN: &'static str = "key";

    fn facts(&self) -> Facts {
        self.about.facts()
    }

    fn note(&self) -> Option<String> {
        Some(match &self.key {
            Some(text) => format!("This key is shown once:\n\n    {text}"),
            None => "Its text was shown before; rotate it to get another.".to_owned(),
        })
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: KeyCommand) -> Result<(), Error> {
    match command {
        KeyCommand::Create { name, role, owner, project, ttl } => {
            let ttl_seconds = ttl.map(|ttl| whole_seconds("--ttl", ttl)).transpose()?;
            let body = CreateKey { name, role, owner, project, ttl_seconds };
            session.post::<ApiKeyWithText>(&["keys"], &body).await
        }
        KeyCommand::List(page) => session.list::<ApiKey>(page).await,
        KeyCommand::Show(arguments) => session.get::<ApiKey>(&arguments.id).await,
        KeyCommand::Rotate { id, overlap } => {
            let body = RotateKey { overlap_seconds: whole_seconds("--overlap", overlap)? };
            session.post::<ApiKeyWithText>(&["keys", &id, "rotate"], &body).await
        }
        KeyCommand::Revoke(RevokeArguments { id, reason, yes, ignore_not_found }) => {
            session.terminal.can_agree(yes)?;
            let path = ["keys", &id];
            let found = session.client.get::<ApiKey>(&path).await;
            let Some(key) = session.unless_ignored(found, ignore_not_found)? else {
                return Ok(());
            };
            let question =
                format!("Revoke key `{}`? Whoever uses it is refused at once.", key.name);
            session.terminal.agree(yes, &question)?;
            session.client.delete::<IgnoredAny>(&path, &because(reason)).await?;
            Ok(())
        }
        KeyCommand::Whoami => session.get_at::<ApiKey>(&["whoami"]).await,
    }
}

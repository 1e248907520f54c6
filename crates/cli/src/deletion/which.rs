//! A deletion by its id, or by what it deletes.

use clap::Args;
use slipway_wire::deletion::Deletion;

use crate::client::Listing;
use crate::error::Error;
use crate::kind::Kind as _;
use crate::output::{or_dash, time};
use crate::session::Session;

#[derive(Debug, Clone, Args)]
#[command(allow_missing_positional = true)]
pub struct Which {
    /// The kind of what is deleted; not needed with the id of a deletion
    #[arg(value_name = "KIND")]
    pub kind: Option<String>,
    /// The id of a deletion or the beginning of it; with a kind, the name or the id of what
    /// is deleted
    #[arg(value_name = "ID-OR-NAME")]
    pub target: String,
    /// The project of a name
    #[arg(long)]
    pub project: Option<String>,
}

/// Which deletions of a name count.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found {
    Restorable,
    Scheduled,
}

impl Found {
    /// The filter of the list, what can be done to them, and the command.
    const fn words(self) -> ((&'static str, &'static str), &'static str, &'static str) {
        match self {
            Self::Restorable => (("restorable", "true"), "restored", "restore"),
            Self::Scheduled => (("state", "scheduled"), "cancelled", "cancel"),
        }
    }
}

impl Which {
    /// The id of the one deletion that is meant.
    pub(crate) async fn find(self, session: &Session<'_>, among: Found) -> Result<String, Error> {
        /// More are not listed.
        const SHOWN: u32 = 20;
        let Self { kind: Some(kind), target: name, project } = self else { return Ok(self.target) };
        let ((filter, value), done, command) = among.words();
        let wanted = Listing::first(Some(SHOWN))
            .with("kind", Some(&kind))
            .with("name", Some(&name))
            .with("project", project)
            .with(filter, Some(value));
        let found = session.client.list::<Deletion>(&[Deletion::PATH], wanted).await?.items;
        match &found[..] {
            [] => Err(Error::NotFound(format!(
                "no deletion of {kind} `{name}` can be {done}; `slipway deletion list --name {name}` shows them"
            ))),
            [one] => Ok(one.id.clone()),
            several => {
                let lines: Vec<_> = several.iter().map(line).collect();
                Err(Error::Usage(format!(
                    "several of `{name}` can be {done}; name one by the id of its deletion, as in `slipway deletion {command} {}`:\n{}",
                    several[0].id,
                    lines.join("\n")
                )))
            }
        }
    }
}

/// The kinds whose names are unique within a project only.
const IN_PROJECT: [&str; 6] = ["resource", "generator", "stack", "template", "agent", "workspace"];

fn line(one: &Deletion) -> String {
    let project = one.project.as_deref().filter(|_| IN_PROJECT.contains(&&*one.kind));
    let project = project.map(|project| format!(" in {project}")).unwrap_or_default();
    let (word, at) = match &one.done_at {
        Some(at) => ("deleted", Some(at)),
        None => ("begins", one.scheduled_for.as_ref()),
    };
    let at = or_dash(at.map(|at| time(at)).as_deref());
    format!("  {}  {word} {at} by {}{project}", one.id, one.requested_by)
}

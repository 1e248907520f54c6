//! `slipway plan …`: what a deletion would take away, before anybody asks for it. A
//! deletion that has to ask shows the short form.

use clap::Subcommand;
use slipway_wire::deletion::plan::{ApprovePlan, DeletionPlan, PlanDeletion, PlanStage};

use super::protection::Thing;
use crate::arguments::{DeletionArguments, IdArguments};
use crate::error::Error;
use crate::kind::{Detail, Facts};
use crate::output::{facts, optional_time, span, time};
use crate::session::Session;
use crate::suggest;

const PATH: &str = "deletion-plans";

#[derive(Debug, Clone, Subcommand)]
pub enum PlanCommand {
    /// Plan a deletion: everything that it would take away, in order
    Delete {
        #[command(flatten)]
        thing: Thing,
        /// With what is in it
        #[arg(long)]
        cascade: bool,
    },
    /// Show a plan; it is kept for an hour, and for a day if it needs an approval
    Get(IdArguments),
    /// Approve a plan that somebody else made; it can then be used for four hours
    Approve {
        /// The id of the plan
        id: String,
        /// Why; kept in the audit
        #[arg(long)]
        reason: String,
    },
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway plan delete project shop --cascade",
    "slipway plan delete resource web-1",
    "slipway plan get 0192f0c1-2b3c-7d4e-8f50-123456789abc",
    "slipway plan approve 0192f0c1-2b3c-7d4e-8f50-123456789abc --reason checked",
];

/// The names of the steps; a plan has fewer.
const NUMBERED: [&str; 8] =
    ["step 1", "step 2", "step 3", "step 4", "step 5", "step 6", "step 7", "step 8"];

impl Detail for DeletionPlan {
    fn facts(&self) -> Facts {
        let mut facts = vec![
            ("plan", Some(self.id.clone())),
            ("deletes", Some(self.what())),
            ("expires", Some(time(&self.expires_at))),
            ("planned", Some(format!("{} by {}", time(&self.planned_at), self.planned_by))),
            ("approved by", self.approved_by.clone()),
            ("approved until", optional_time(self.approved_until.as_ref())),
            ("used by deletion", self.used_by.clone()),
        ];
        facts.extend(self.hindrances());
        let steps = NUMBERED.into_iter().zip(&self.steps);
        facts.extend(steps.map(|(name, step)| (name, Some(sentence(step, step.names.len())))));
        let composed = self.composed.iter();
        let composed: Vec<_> =
            composed.map(|(name, objects)| format!("{name}: {}", objects.join(", "))).collect();
        facts.push(("composed of", some(composed.join("; "))));
        facts.push(("not read", self.composed_missing.clone()));
        facts.push(("takes", Some(self.duration())));
        facts
    }
}

/// What a step does and to how many, with so many names.
fn sentence(step: &PlanStage, named: usize) -> String {
    let PlanStage { action, kind, count, blueprints, names } = step;
    let things =
        format!("{count} {}{}", kind.replace('_', " "), if *count == 1 { "" } else { "s" });
    let groups: Vec<_> =
        blueprints.iter().map(|one| format!("{} {}", one.count, one.blueprint)).collect();
    let done = match action.as_str() {
        "drain_nodes" => format!("drain {things}"),
        "delete_composites" => format!("delete {things}"),
        "remove_namespace" => format!("remove {things}"),
        _ => format!("mark {things} as deleted"),
    };
    let groups = match groups.is_empty() {
        true => String::new(),
        false => format!(" ({})", groups.join(", ")),
    };
    let shown: Vec<_> = names.iter().take(named).map(String::as_str).collect();
    let more = match count.saturating_sub(shown.len() as u64) {
        more if more > 0 && !shown.is_empty() => format!(", {more} more"),
        _ => String::new(),
    };
    let colon = if shown.is_empty() { "" } else { ": " };
    format!("{done}{groups}{colon}{}{more}", shown.join(", "))
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// The methods are those of a document of another crate.
trait Shown {
    fn what(&self) -> String;
    fn hindrances(&self) -> Facts;
    fn duration(&self) -> String;
    fn short(&self, width: Option<u16>) -> String;
}

impl Shown for DeletionPlan {
    fn what(&self) -> String {
        let with = if self.cascade { ", with what is in it" } else { "" };
        format!("{} {}{with}", self.kind, self.target)
    }

    /// What would keep it from going.
    fn hindrances(&self) -> Facts {
        let refusals: Vec<_> =
            self.refusals.iter().map(|one| format!("{}: {}", one.code, one.message)).collect();
        let mut protected = self.protected.clone();
        if let Some(more @ 1..) = self.protected_count.checked_sub(protected.len() as u64) {
            protected.push(format!("{more} more"));
        }
        vec![
            ("under way already", self.under_way.as_ref().map(|id| format!("deletion {id}"))),
            ("refused now", some(refusals.join("; "))),
            ("protected", some(protected.join("; "))),
            ("withheld", self.withheld.as_ref().map(|one| one.message.clone())),
        ]
    }

    fn duration(&self) -> String {
        let grace = match self.grace_seconds {
            0 => String::new(),
            grace => format!("begins after a grace of {}; ", span(grace)),
        };
        let limit = match self.limit_seconds {
            0 => "at once".to_owned(),
            limit => format!("counts as overdue after {}", span(limit)),
        };
        let typical = self.typical_seconds.map(|typical| {
            format!("; earlier ones took {} (median of {})", span(typical), self.typical_of)
        });
        format!("{grace}{limit}{}", typical.unwrap_or_default())
    }

    /// Counts, what is outside, what protects it, and when.
    fn short(&self, width: Option<u16>) -> String {
        let mut short = vec![("deletes", Some(self.what()))];
        short.extend(
            NUMBERED.into_iter().zip(&self.steps).map(|(name, step)| {
                (name, Some(sentence(step, if step.count <= 3 { 3 } else { 0 })))
            }),
        );
        short.extend(self.hindrances());
        short.push(("takes", Some(self.duration())));
        short.push(("plan", Some(self.id.clone())));
        short.push(("expires", optional_time(Some(&self.expires_at))));
        facts(short, width)
    }
}

impl Session<'_> {
    /// Requires consent to a deletion: by `--yes`, or by an answer below the short form of
    /// its plan, to which the request is held then.
    pub(crate) async fn agree_to_delete(
        &mut self,
        (kind, reference): (&str, &str),
        question: &str,
        deletion: &DeletionArguments,
        query: &mut Vec<(&str, String)>,
    ) -> Result<(), Error> {
        self.terminal.can_agree(deletion.yes)?;
        if !deletion.yes {
            let plan: DeletionPlan = match &deletion.plan {
                Some(id) => self.client.get(&[PATH, id]).await?,
                None => {
                    let cascade = query.iter().any(|(name, _)| *name == "cascade");
                    let made = self.plan(kind, reference, cascade).await?;
                    query.push(("plan", made.id.clone()));
                    made
                }
            };
            let width = self.terminal.traits().width;
            self.terminal.say(&plan.short(width));
        }
        self.terminal.agree(deletion.yes, question)
    }

    pub(crate) async fn plan(
        &mut self,
        kind: &str,
        reference: &str,
        cascade: bool,
    ) -> Result<DeletionPlan, Error> {
        let body = PlanDeletion { kind: kind.to_owned(), reference: reference.to_owned(), cascade };
        match self.client.post(&[PATH], &body).await {
            Ok(made) => Ok(made),
            Err(error) => Err(suggest::reference(&self.client, error, reference).await),
        }
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: PlanCommand) -> Result<(), Error> {
    match command {
        PlanCommand::Delete { thing, cascade } => {
            let made = session.plan(&thing.kind, &thing.name, cascade).await?;
            session.show_details(&made);
            Ok(())
        }
        PlanCommand::Get(arguments) => session.get_at::<DeletionPlan>(&[PATH, &arguments.id]).await,
        PlanCommand::Approve { id, reason } => {
            session.post::<DeletionPlan>(&[PATH, &id, "approve"], &ApprovePlan { reason }).await
        }
    }
}

//! What `slipway resource orphan` shows.

use serde_json::json;
use slipway_wire::broker::{KeptObject, Orphaned};

use crate::kind::{Detail, Facts};
use crate::output::lines_of;

impl Detail for Orphaned {
    fn facts(&self) -> Facts {
        let kept: Vec<_> = self.kept.iter().map(shown).collect();
        let next = match self.dry_run {
            true => "nothing was recorded; the same without --dry-run keeps it",
            false => {
                "the loop tells it, then the rest goes; `slipway leaks` has it until you resolve it"
            }
        };
        vec![
            ("resource", Some(self.resource_id.clone())),
            (if self.dry_run { "would keep" } else { "keeps" }, Some(kept.join("\n"))),
            ("holding", Some(lines_of(&json!({ "object": self.holding })))),
            ("next", Some(next.to_owned())),
        ]
    }
}

fn shown(kept: &KeptObject) -> String {
    let name = kept.external_name.as_deref().unwrap_or("(no external name)");
    let leak = kept.leak_id.as_ref().map(|id| format!(", leak {id}")).unwrap_or_default();
    let find = kept.find.as_ref().map(|find| format!("\n  $ {find}")).unwrap_or_default();
    format!("{name} of {}{leak}{find}", kept.object)
}

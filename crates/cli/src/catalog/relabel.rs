//! The flags of `relabel`: all labels anew, or one more or less. Taking all labels
//! away by leaving the flags out wants a yes.

use std::collections::BTreeMap;

use clap::Args;
use slipway_wire::catalog::Relabel;

use crate::arguments::{distinct, parse_pair};
use crate::error::Error;
use crate::terminal::Terminal;

#[derive(Debug, Clone, Args)]
pub struct RelabelArguments {
    /// A label; those that are not given are taken away
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = parse_pair, conflicts_with_all = ["add", "remove"])]
    labels: Vec<(String, String)>,
    /// Set one label and keep the others
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    add: Vec<(String, String)>,
    /// Take one label away and keep the others
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
    /// Do not ask before all labels are taken away
    #[arg(long)]
    yes: bool,
}

/// What to send, and the revision that it is based on.
pub(crate) struct Relabelling {
    pub(crate) body: Relabel,
    pub(crate) if_match: Option<i64>,
}

impl RelabelArguments {
    fn changes_some(&self) -> bool {
        !self.add.is_empty() || !self.remove.is_empty()
    }

    /// Refuses before anything is sent: a script that gives no flag wipes nothing.
    pub(crate) fn check(&self, terminal: &Terminal) -> Result<(), Error> {
        if self.yes || self.changes_some() || !self.labels.is_empty() || terminal.traits().asks {
            return Ok(());
        }
        let problem = "no label is given, which would take all of them away: give --label, \
                       --add or --remove, or --yes if that is wanted; nothing was done";
        Err(Error::Usage(problem.to_owned()))
    }

    /// `name` has these labels now, in this revision.
    pub(crate) fn apply(
        self,
        terminal: &mut Terminal,
        name: &str,
        (now, revision): (&BTreeMap<String, String>, i64),
    ) -> Result<Relabelling, Error> {
        if self.changes_some() {
            let added = distinct("--add", self.add)?;
            if let Some(both) = self.remove.iter().find(|key| added.contains_key(*key)) {
                return Err(Error::Usage(format!("`{both}` is given to --add and to --remove")));
            }
            let mut labels = now.clone();
            labels.retain(|key, _| !self.remove.contains(key));
            labels.extend(added);
            return Ok(Relabelling { body: Relabel { labels }, if_match: Some(revision) });
        }
        if self.labels.is_empty() && !now.is_empty() {
            let keys: Vec<_> = now.keys().map(String::as_str).collect();
            let question = format!("Take all labels of `{name}` away ({})?", keys.join(", "));
            terminal.agree(self.yes, &question)?;
        }
        let body = Relabel { labels: distinct("--label", self.labels)? };
        Ok(Relabelling { body, if_match: None })
    }
}

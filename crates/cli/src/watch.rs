//! `--watch` of a list: the list first, then every row that changes, until interrupted.
//! Events say when to list again, at most once a pause, so that a thousand changes at once
//! cost as much as one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use tokio::time::sleep;

use crate::arguments::Output;
use crate::client::Listing;
use crate::error::Error;
use crate::events::Wakes;
use crate::kind::{Kind, table};
use crate::output::{Layout, name_of, paint, render, singular, to_yaml};
use crate::session::Session;
use crate::terminal::{Traits, clean};

/// Between two lists; ten times as long as a list takes, if that is longer.
const PAUSE: Duration = Duration::from_millis(250);

/// Without an event the list is read this often: not every change is an event.
const SWEEP: Duration = Duration::from_secs(15);

/// Each costs a request; more at once are counted.
const SHOWN_GONE: usize = 20;

impl Session<'_> {
    pub(crate) async fn watch<K: Kind>(&mut self, wanted: Listing) -> Result<(), Error> {
        tokio::select! {
            ended = self.watch_on::<K>(wanted) => ended,
            // Without a handler the signal itself ends the process.
            Ok(()) = tokio::signal::ctrl_c() => Ok(()),
        }
    }

    async fn watch_on<K: Kind>(&mut self, wanted: Listing) -> Result<(), Error> {
        let mut wakes = Wakes::open(&self.client).await;
        let mut seen = BTreeMap::new();
        let mut is_first = true;
        loop {
            let begun = Instant::now();
            match self.client.list::<K>(&[K::PATH], wanted.clone()).await {
                Ok(listed) => {
                    let changed = self.changed(&listed.items, &mut seen);
                    if is_first && listed.items.is_empty() && self.output.is_for_people() {
                        self.terminal.say(&format!("no {} yet", K::PATH));
                    }
                    self.show_changed(&listed.items, &changed, is_first);
                    self.show_gone::<K>(&listed.items, &mut seen).await?;
                    is_first &= listed.items.is_empty();
                }
                Err(error) if error.is_temporary() && !is_first => {
                    self.terminal.say(&format!("{}; trying again", clean(&error.to_string())));
                }
                Err(error) => return Err(error),
            }
            if self.terminal.is_closed() {
                return Ok(());
            }
            sleep(PAUSE.max(begun.elapsed() * 10)).await;
            wakes.next(&self.client, SWEEP).await;
        }
    }

    /// Which of the items are new or look different; `seen` has what was shown of each.
    fn changed<K: Kind>(&self, items: &[K], seen: &mut BTreeMap<String, String>) -> Vec<bool> {
        let mut changed = Vec::new();
        for item in items {
            let mut cells = item.cells();
            if self.output == Output::Wide {
                cells.extend(item.wide());
            }
            let document = document(item);
            let looks = match self.output.is_for_people() {
                true => format!("{cells:?}"),
                false => document.to_string(),
            };
            let before = seen.insert(id(&document), looks.clone());
            changed.push(before.as_ref() != Some(&looks));
        }
        changed
    }

    fn show_changed<K: Kind>(&mut self, items: &[K], changed: &[bool], with_headings: bool) {
        if !changed.contains(&true) {
            return;
        }
        if self.output.is_for_people() {
            let Traits { width, colours, .. } = self.terminal.traits();
            let wide = self.output == Output::Wide;
            let layout = Layout { width, wide, now: self.client.server_time() };
            // The whole table, so that the columns stay where they are.
            let text = table(items, layout);
            let text = if colours { paint(&text) } else { text };
            let shown = std::iter::once(&with_headings).chain(changed);
            let lines = text.lines().zip(shown).filter(|(_, shown)| **shown);
            let lines: Vec<_> = lines.map(|(line, _)| line).collect();
            return self.terminal.print(&lines.join("\n"));
        }
        for (item, _) in items.iter().zip(changed).filter(|(_, changed)| **changed) {
            self.show_one(item);
        }
    }

    /// One document per line or per YAML document, for tools in a pipe.
    fn show_one<K: Kind>(&mut self, item: &K) {
        let text = match self.output {
            Output::Json => document(item).to_string(),
            Output::Yaml => format!("---\n{}", to_yaml(item)),
            Output::Name => name_of(&singular(K::PATH), item).unwrap_or_default(),
            output => render(item, output, |item| {
                table(std::slice::from_ref(item), None).lines().skip(1).collect()
            }),
        };
        self.terminal.print(&text);
    }

    /// What left the list is shown once more as it is now, such as Deleted.
    async fn show_gone<K: Kind>(
        &mut self,
        items: &[K],
        seen: &mut BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let listed: BTreeSet<_> = items.iter().map(|item| id(&document(item))).collect();
        let gone: Vec<_> = seen.keys().filter(|id| !listed.contains(*id)).cloned().collect();
        if gone.len() > SHOWN_GONE {
            self.terminal.say(&format!("{} {} have left the list", gone.len(), K::PATH));
            seen.retain(|id, _| listed.contains(id));
            return Ok(());
        }
        for id in gone {
            match self.client.get::<K>(&[K::PATH, &id]).await {
                Ok(item) => self.show_changed(&[item], &[true], false),
                // The next list finds it still gone.
                Err(error) if error.is_temporary() => continue,
                Err(Error::Problem(problem)) if problem.status == 404 => {
                    let kind = singular(K::PATH);
                    self.terminal.say(&format!("{kind} {} is gone", clean(&id)));
                }
                Err(error) => return Err(error),
            }
            seen.remove(&id);
        }
        Ok(())
    }
}

fn document(item: &impl Serialize) -> Value {
    // Only map keys that are not text could fail here; there are none.
    serde_json::to_value(item).unwrap_or_default()
}

fn id(document: &Value) -> String {
    document["id"].as_str().unwrap_or_default().to_owned()
}

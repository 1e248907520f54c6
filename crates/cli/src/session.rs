//! The context of a command, and what commands of all kinds share: each calls
//! the client and shows the answer in the chosen output format.

use serde::Serialize;
use serde::de::DeserializeOwned;
use slipway_core::time::Timestamp;
use slipway_wire::deletion::Deletion;
use slipway_wire::operations::Explanation;

use crate::arguments::{DeletionArguments, NamedDeleteArguments, Output};
use crate::catalog::relabel::Relabelling;
use crate::client::{Client, Listed, Listing};
use crate::deletion::restore;
use crate::error::Error;
use crate::exit::Exit;
use crate::kind::{Detail, Kind, Row, details, table};
use crate::output::{Layout, name_of, paint, render, singular};
use crate::renderers::Renderers;
use crate::suggest;
use crate::terminal::{Terminal, Traits, clean};

/// Quarantined rows that are named; each costs a request.
const NAMED: usize = 20;

pub(crate) struct Session<'a> {
    pub(crate) client: Client,
    /// The URL of the server.
    pub(crate) server: String,
    pub(crate) output: Output,
    pub(crate) renderers: Renderers,
    pub(crate) terminal: &'a mut Terminal,
}

impl Session<'_> {
    pub(crate) async fn list<K: Kind>(&mut self, wanted: impl Into<Listing>) -> Result<(), Error> {
        let wanted = wanted.into();
        if wanted.is_watched {
            return Box::pin(self.watch::<K>(wanted)).await;
        }
        self.list_at::<K>(&[K::PATH], wanted).await
    }

    /// Shows a list below another kind, such as the versions of a blueprint.
    pub(crate) async fn list_at<R: Row + DeserializeOwned>(
        &mut self,
        path: &[&str],
        wanted: impl Into<Listing>,
    ) -> Result<(), Error> {
        let mut listed = match self.client.list::<R>(path, wanted).await {
            Ok(listed) => listed,
            Err(error) => {
                let given = path.get(1).copied().unwrap_or_default();
                return Err(suggest::reference(&self.client, error, given).await);
            }
        };
        name_quarantined(&self.client, &mut listed.quarantined).await;
        let noun = match path.last().copied().unwrap_or_default() {
            "audit" => "audit entries".to_owned(),
            noun => noun.replace('-', " "),
        };
        self.show_list(&listed, &noun);
        Ok(())
    }

    pub(crate) async fn get<K: Kind>(&mut self, reference: &str) -> Result<(), Error> {
        match self.client.get::<K>(&[K::PATH, reference]).await {
            Ok(found) => {
                restore::lead(self, &found).await?;
                self.show_details(&found);
            }
            Err(error) => return Err(suggest::reference(&self.client, error, reference).await),
        }
        Ok(())
    }

    pub(crate) async fn get_at<D: Detail + DeserializeOwned>(
        &mut self,
        path: &[&str],
    ) -> Result<(), Error> {
        let found: D = self.client.get(path).await?;
        restore::lead(self, &found).await?;
        self.show_details(&found);
        Ok(())
    }

    pub(crate) async fn create<K: Kind>(&mut self, body: &impl Serialize) -> Result<(), Error> {
        self.post::<K>(&[K::PATH], body).await
    }

    /// Sends a body and shows the answer.
    pub(crate) async fn post<D: Detail + DeserializeOwned>(
        &mut self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<(), Error> {
        let made: D = self.client.post(path, body).await?;
        self.show_details(&made);
        Ok(())
    }

    pub(crate) async fn update<K: Kind>(
        &mut self,
        reference: &str,
        body: &impl Serialize,
    ) -> Result<(), Error> {
        let changed: K = self.client.patch(&[K::PATH, reference], body, None).await?;
        self.show_details(&changed);
        Ok(())
    }

    pub(crate) async fn relabel<K: Kind>(
        &mut self,
        id: &str,
        Relabelling { body, if_match }: Relabelling,
    ) -> Result<(), Error> {
        let changed: K = self.client.patch(&[K::PATH, id], &body, if_match).await?;
        self.show_details(&changed);
        Ok(())
    }

    /// Asks for confirmation, deletes, and shows the deletion.
    pub(crate) async fn delete<K: Kind>(
        &mut self,
        noun: &str,
        arguments: NamedDeleteArguments,
    ) -> Result<(), Error> {
        let query = arguments.deletion.query();
        self.delete_with::<K>(noun, arguments, query).await
    }

    /// The same with a query of its own.
    pub(crate) async fn delete_with<K: Kind>(
        &mut self,
        noun: &str,
        arguments: NamedDeleteArguments,
        query: Vec<(&str, String)>,
    ) -> Result<(), Error> {
        let NamedDeleteArguments { reference, deletion } = arguments;
        self.delete_at::<K>((noun, &reference), (&reference, None), &deletion, query).await
    }

    /// The same of something that was read before: what has the name now may be another one, or
    /// changed since.
    pub(crate) async fn delete_read<K: Kind>(
        &mut self,
        named: (&str, &str),
        (id, revision): (&str, i64),
        deletion: &DeletionArguments,
    ) -> Result<(), Error> {
        self.delete_at::<K>(named, (id, Some(revision)), deletion, deletion.query()).await
    }

    async fn delete_at<K: Kind>(
        &mut self,
        (noun, name): (&str, &str),
        (reference, revision): (&str, Option<i64>),
        deletion: &DeletionArguments,
        mut query: Vec<(&str, String)>,
    ) -> Result<(), Error> {
        let question = format!("Delete {noun} `{name}`?");
        let kind = K::PATH.strip_suffix('s').unwrap_or(K::PATH);
        let agreed = self.agree_to_delete((kind, reference), &question, deletion, &mut query).await;
        if self.unless_ignored(agreed, deletion.ignore_not_found)?.is_none() {
            return Ok(());
        }
        let path = [K::PATH, reference];
        let deleted = match self.client.delete_read(&path, &query, revision).await {
            Err(error) => Err(suggest::reference(&self.client, error, reference).await),
            deleted => deleted,
        };
        if let Some(deleted) = self.unless_ignored(deleted, deletion.ignore_not_found)? {
            self.show_details::<Deletion>(&deleted);
        }
        Ok(())
    }

    /// `None` if there is nothing to delete, and the user does not mind.
    pub(crate) fn unless_ignored<T>(
        &mut self,
        done: Result<T, Error>,
        ignore_not_found: bool,
    ) -> Result<Option<T>, Error> {
        match done {
            Err(error) if ignore_not_found && error.exit() == Exit::NotFound => {
                self.terminal.say(&format!("nothing to do: {}", clean(&error.to_string())));
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    pub(crate) fn show_details<D: Detail>(&mut self, document: &D) {
        let now = self.client.server_time();
        show_details_on(self.terminal, self.output, now, document);
    }

    /// Shows a list, and names the quarantined rows that the server left out.
    pub(crate) fn show_list<R: Row>(&mut self, listed: &Listed<R>, noun: &str) {
        if listed.quarantined.is_empty() {
            return self.show_all(&listed.items, noun);
        }
        self.show_all(&listed.items, &format!("{noun} that can be read"));
        self.terminal.say(&format!(
            "warning: {} left out because of an invalid row, which is quarantined: {}",
            listed.quarantined.len(),
            listed.quarantined.join(", ")
        ));
    }

    /// Shows rows; that there is none is no result, so it is said beside it.
    pub(crate) fn show_all<R: Row>(&mut self, items: &[R], noun: &str) {
        let now = self.client.server_time();
        show_rows_on(self.terminal, self.output, now, items, noun);
    }

    /// Shows one document; `table` makes the text for people.
    pub(crate) fn show<T: Serialize>(
        &mut self,
        document: &T,
        table: impl FnOnce(&T, Layout) -> String,
    ) {
        show_on(self.terminal, self.output, self.client.server_time(), document, table);
    }
}

/// Shows one document with its facts. `now`: the time of the server, for ages.
pub(crate) fn show_details_on<D: Detail>(
    terminal: &mut Terminal,
    output: Output,
    now: Option<Timestamp>,
    document: &D,
) {
    match name_of(D::NOUN, document).filter(|_| output == Output::Name) {
        Some(name) => terminal.print(&name),
        None => {
            show_on(terminal, output, now, document, |document, layout| details(document, layout));
        }
    }
}

/// Shows rows of things that are called `noun`, in the plural.
pub(crate) fn show_rows_on<R: Row>(
    terminal: &mut Terminal,
    output: Output,
    now: Option<Timestamp>,
    items: &[R],
    noun: &str,
) {
    if items.is_empty() && output.is_for_people() {
        return terminal.say(&format!("no {noun}"));
    }
    let kind = singular(noun);
    let names: Option<Vec<_>> = items.iter().map(|item| name_of(&kind, item)).collect();
    match names.filter(|_| output == Output::Name) {
        Some(names) if names.is_empty() => {}
        Some(names) => terminal.print(&names.join("\n")),
        None => show_on(terminal, output, now, &items, |items, layout| table(items, layout)),
    }
}

fn show_on<T: Serialize>(
    terminal: &mut Terminal,
    output: Output,
    now: Option<Timestamp>,
    document: &T,
    table: impl FnOnce(&T, Layout) -> String,
) {
    let Traits { width, colours, .. } = terminal.traits();
    let layout = Layout { width, wide: output == Output::Wide, now };
    let text = render(document, output, |document| match colours {
        true => paint(&table(document, layout)),
        false => table(document, layout),
    });
    terminal.print(&text);
}

/// Says of the first ids what they are, by an explanation, which also an invalid row has.
async fn name_quarantined(client: &Client, ids: &mut [String]) {
    for id in ids.iter_mut().take(NAMED) {
        // An id that nobody can explain stays an id.
        let Ok(found) = client.get::<Explanation>(&["explain", id]).await else { continue };
        let codes = found.blockers.iter().map(|blocker| blocker.code.as_str());
        let state: Vec<_> = std::iter::once(found.state.as_str()).chain(codes).collect();
        *id = format!("{} `{}` ({}; {id})", found.kind, found.name, state.join(", "));
    }
}

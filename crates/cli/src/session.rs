//! The context of a command, and what commands of all kinds share: each calls
//! the client and shows the answer in the chosen output format.

use serde::Serialize;
use serde::de::DeserializeOwned;
use slipway_wire::deletion::Deletion;

use crate::arguments::{NamedDeleteArguments, Output};
use crate::catalog::relabel::Relabelling;
use crate::client::{Client, Listed, Listing};
use crate::error::Error;
use crate::kind::{Detail, Kind, Row, details, table};
use crate::output::{paint, render};
use crate::renderers::Renderers;
use crate::terminal::{Terminal, Traits};

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
        self.list_at::<K>(&[K::PATH], wanted).await
    }

    /// Shows a list below another kind, such as the versions of a blueprint.
    pub(crate) async fn list_at<R: Row + DeserializeOwned>(
        &mut self,
        path: &[&str],
        wanted: impl Into<Listing>,
    ) -> Result<(), Error> {
        let listed = self.client.list::<R>(path, wanted).await?;
        self.show_list(&listed);
        Ok(())
    }

    pub(crate) async fn get<K: Kind>(&mut self, reference: &str) -> Result<(), Error> {
        self.get_at::<K>(&[K::PATH, reference]).await
    }

    pub(crate) async fn get_at<D: Detail + DeserializeOwned>(
        &mut self,
        path: &[&str],
    ) -> Result<(), Error> {
        let found: D = self.client.get(path).await?;
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
        let NamedDeleteArguments { reference, deletion } = arguments;
        let question = format!("Delete {noun} `{reference}`?");
        self.terminal.agree(deletion.yes, &question)?;
        let path = [K::PATH, &reference];
        let deletion: Deletion = self.client.delete(&path, deletion.reason.as_deref()).await?;
        self.show_details(&deletion);
        Ok(())
    }

    pub(crate) fn show_details(&mut self, document: &impl Detail) {
        self.show(document, details);
    }

    /// Shows a list, and names the quarantined rows that the server left out.
    pub(crate) fn show_list<R: Row>(&mut self, listed: &Listed<R>) {
        self.show(&listed.items, |items, width| table(items, width));
        if !listed.quarantined.is_empty() {
            self.terminal.say(&format!(
                "warning: {} left out because their rows are invalid and quarantined: {}",
                listed.quarantined.len(),
                listed.quarantined.join(", ")
            ));
        }
    }

    /// Shows one document; `table` makes the text for people.
    pub(crate) fn show<T: Serialize>(
        &mut self,
        document: &T,
        table: impl FnOnce(&T, Option<u16>) -> String,
    ) {
        let Traits { width, colours, .. } = self.terminal.traits();
        let text = render(document, self.output, |document| match colours {
            true => paint(&table(document, width)),
            false => table(document, width),
        });
        self.terminal.print(&text);
    }
}

//! Brings reports to the control plane. A report waits in the inventory until it was
//! taken, so that it survives a crash.

use reqwest::StatusCode;
use slipway_wire::fleet::NewAgentEvent;

use super::backend::Backend;
use super::inventory::Report;
use super::pass::{Agent, Stop};

/// The longest message of a report, in characters.
const LONGEST_MESSAGE: usize = 1_000;

impl<B: Backend> Agent<'_, B> {
    /// Delivers every report that waits.
    pub(super) async fn deliver(&mut self) -> Result<(), Stop> {
        while let Some(report) = self.drifts.first().cloned() {
            self.send(&report).await?;
            self.drifts.remove(0);
        }
        let inventory = self.inventory.iter().flatten();
        let waiting: Vec<_> = inventory
            .filter_map(|(stack, entry)| Some((stack.clone(), entry.report.clone()?)))
            .collect();
        for (stack, report) in waiting {
            self.send(&report).await?;
            let entry = self.inventory.as_ref().and_then(|inventory| inventory.get(&stack));
            if let Some(mut entry) = entry.cloned() {
                entry.said();
                let done = self.commit(&stack, entry).await;
                self.classify(done)?;
            }
        }
        Ok(())
    }

    async fn send(&self, report: &Report) -> Result<(), Stop> {
        let message = report.message.as_ref();
        let event = NewAgentEvent {
            agent_id: self.id.clone(),
            deployment_object_id: report.object_id.clone(),
            event_type: report.event.as_str().to_owned(),
            message: message.map(|text| text.chars().take(LONGEST_MESSAGE).collect()),
            status: if report.is_success { "SUCCESS" } else { "FAILURE" }.to_owned(),
        };
        match self.client.report(&self.id, &event).await {
            Err(failure) if failure.refusal().is_some_and(is_final) => {
                let object = &report.object_id;
                tracing::warn!(object, %failure, "a report was not taken and is dropped");
                Ok(())
            }
            answered => Ok(answered?),
        }
    }
}

/// Whether the server will never take the report: it does not know the object any
/// more. A key that it refuses may be valid again later.
fn is_final(status: StatusCode) -> bool {
    !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

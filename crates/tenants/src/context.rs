//! What a step is given.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cancel::Cancel;
use crate::change::Change;
use crate::job::{Job, Metadata};
use crate::text::{check_metadata, check_object};
use crate::writer::Writer;
use crate::{Error, Step};

/// The job of a step, and what the step may record. A clone is the same context.
#[derive(Clone)]
pub struct StepContext(Arc<Inner>);

struct Inner {
    job: Job,
    step: Step,
    records: Mutex<Records>,
    /// Held from the moment at which the records are read until they are durable: a checkpoint has
    /// all of them, so an older one that came later would take some away.
    checkpoint: tokio::sync::Mutex<()>,
    writer: Arc<Writer>,
    cancel: Cancel,
}

#[derive(Clone)]
struct Records {
    metadata: Metadata,
    /// Whether this step changed it. What somebody else stored is only checked, and
    /// written, when a step changes it.
    is_changed: bool,
    made: Option<Vec<String>>,
    /// Of these, what no checkpoint has stored yet.
    unstored: Vec<String>,
}

impl StepContext {
    pub(crate) fn new(job: Job, step: Step, writer: Arc<Writer>, cancel: Cancel) -> Self {
        let (metadata, made) = (job.metadata.clone(), job.made.clone());
        let records = Records { metadata, is_changed: false, made, unstored: Vec::new() };
        let (records, checkpoint) = (Mutex::new(records), tokio::sync::Mutex::default());
        Self(Arc::new(Inner { job, step, records, checkpoint, writer, cancel }))
    }

    /// The job as it was when the step began.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.0.job
    }

    #[must_use]
    pub fn step(&self) -> Step {
        self.0.step
    }

    /// The fencing token. A step that writes to the tenant's database writes it there in the
    /// same transaction, and refuses to if it finds a higher one: then another worker has
    /// the job.
    #[must_use]
    pub fn claim_token(&self) -> i64 {
        self.0.job.claim_token
    }

    /// The metadata with what this step set.
    #[must_use]
    pub fn metadata(&self) -> Metadata {
        self.records().metadata.clone()
    }

    /// Sets one value. It is stored by the next checkpoint, or with the edge; also if the
    /// step fails. A value that looks like a secret is refused.
    pub fn set(&self, key: impl Into<String>, value: impl Into<String>) -> Result<(), Error> {
        let mut records = self.records();
        let mut metadata = records.metadata.clone();
        metadata.insert(key.into(), value.into());
        check_metadata(&metadata)?;
        records.metadata = metadata;
        records.is_changed = true;
        Ok(())
    }

    pub fn remove(&self, key: &str) -> Option<String> {
        let mut records = self.records();
        records.is_changed = true;
        records.metadata.remove(key)
    }

    /// What this job made, the newest first. Empty if another program inserted the job and
    /// nothing is known; see [`Job::made`].
    #[must_use]
    pub fn made(&self) -> Vec<String> {
        self.records().made.iter().flatten().rev().cloned().collect()
    }

    /// Records that this job is about to make something, and returns when the record is
    /// durable. Called *before* the object is made, and after it was found not to exist:
    /// cleanup removes what is recorded here, and nothing else.
    pub async fn making(&self, object: impl Into<String>) -> Result<(), Error> {
        let object = object.into();
        check_object(&object)?;
        {
            let mut records = self.records();
            let made = records.made.get_or_insert_default();
            if !made.contains(&object) {
                made.push(object.clone());
                records.unstored.push(object);
            } else if !records.unstored.contains(&object) {
                return Ok(());
            }
        }
        self.checkpoint().await
    }

    /// Records that something this job made is gone, for a cleanup that may fail later.
    pub async fn removed(&self, object: &str) -> Result<(), Error> {
        {
            let mut records = self.records();
            records.made.get_or_insert_default().retain(|made| made != object);
            records.unstored.retain(|made| made != object);
        }
        self.checkpoint().await
    }

    /// Saves the metadata without a transition, and returns when it is durable. After a
    /// crash the step finds it.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        let _checkpoint = self.0.checkpoint.lock().await;
        let change = self.recorded();
        let stored = change.made.clone().unwrap_or_default();
        self.0.writer.write(change).await?;
        self.records().unstored.retain(|object| !stored.contains(object));
        Ok(())
    }

    /// Returns when the process wants to stop. A step may end then with any error: the job
    /// keeps its state and is continued later.
    pub async fn stopping(&self) {
        self.0.cancel.cancelled().await;
    }

    /// What the step recorded, as a change of the job.
    pub(crate) fn recorded(&self) -> Change {
        let Records { metadata, is_changed, made, .. } = self.records().clone();
        let metadata = is_changed.then_some(metadata);
        Change { metadata, made, ..Change::of(&self.0.job) }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (job, step) = (&self.0.job.id, self.0.step);
        f.debug_struct("StepContext").field("job", job).field("step", &step).finish_non_exhaustive()
    }
}

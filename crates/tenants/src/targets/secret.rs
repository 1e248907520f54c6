//! Texts that are secret, and where they come from.

use std::fmt;

use async_trait::async_trait;

use super::settings::Reference;
use crate::StepError;

/// A text that no log and no error shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one call that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Reads the text that a reference names.
#[async_trait]
pub trait Resolve: fmt::Debug + Send + Sync {
    /// The text, or an error that does not show it.
    async fn resolve(&self, reference: &Reference) -> Result<Secret, StepError>;
}

/// Reads files and environment variables.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalResolver;

/// A connection string has no more.
const LONGEST_FILE: u64 = 64 * 1_024;

#[async_trait]
impl Resolve for LocalResolver {
    async fn resolve(&self, reference: &Reference) -> Result<Secret, StepError> {
        let text = match reference {
            Reference::File(path) => {
                let shown = path.display().to_string();
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_bounded(&path));
                let read = read.await.map_err(StepError::transient)?;
                read.map_err(|error| StepError::transient(format!("cannot read {shown}: {error}")))?
            }
            Reference::Environment(name) => std::env::var(name).map_err(|_| {
                StepError::transient(format!("the environment variable {name} has no text"))
            })?,
            Reference::Kv(_) => {
                let problem = "the target is in a KV engine, and there is none here: name a file \
                               or an environment variable";
                return Err(StepError::permanent(problem));
            }
        };
        let text = text.trim();
        if text.is_empty() {
            return Err(StepError::transient(format!("{reference:?} is empty")));
        }
        Ok(Secret::new(text))
    }
}

fn read_bounded(path: &std::path::Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(LONGEST_FILE).read_to_string(&mut text)?;
    Ok(text)
}

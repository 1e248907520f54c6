//! Renders the templates of Fleet. A template is a program that somebody else wrote: whoever
//! implements this ends it after a while, whatever it does, and bounds what it takes.

use std::fmt;

use async_trait::async_trait;
use serde_json::Value;

/// Why nothing was rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenderFailure {
    /// The template is at fault, or its parameters are: what is wrong.
    Template(String),
    /// It could not be tried.
    Unavailable(String),
}

#[async_trait]
pub trait TemplateRenderer: fmt::Debug + Send + Sync {
    /// Whether this is a template at all.
    async fn check(&self, template: &str) -> Result<(), RenderFailure>;

    async fn render(&self, template: &str, parameters: &Value) -> Result<String, RenderFailure>;
}

/// Renders nothing, for tests that need no templates.
#[derive(Debug, Clone, Copy)]
pub struct NoTemplates;

#[async_trait]
impl TemplateRenderer for NoTemplates {
    async fn check(&self, _: &str) -> Result<(), RenderFailure> {
        Ok(())
    }

    async fn render(&self, _: &str, _: &Value) -> Result<String, RenderFailure> {
        Err(RenderFailure::Unavailable("nothing renders templates here".to_owned()))
    }
}

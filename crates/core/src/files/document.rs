//! What a document is about: its kind and its address.

use std::fmt;

use crate::closed_set::closed_set;
use crate::error::Refusal;

/// The version of the documents that this server reads and writes.
pub const API_VERSION: &str = "slipway.dev/v1";

closed_set!(
    /// The kinds of documents, in the order in which they are applied: whatever a kind may
    /// refer to comes before it.
    DocumentKind {
        Label => "Label",
        Cloud => "Cloud",
        Credential => "Credential",
        Cluster => "Cluster",
        Blueprint => "Blueprint",
        Project => "Project",
        Assignment => "Assignment",
        Placement => "Placement",
        Key => "Key",
        Resource => "Resource",
        Generator => "Generator",
        Template => "Template",
        Stack => "Stack",
        Agent => "Agent",
        TenantProfile => "TenantProfile",
        Tenant => "Tenant",
        Workspace => "Workspace",
    }
);

impl DocumentKind {
    /// Whether its objects carry labels.
    pub const fn has_labels(self) -> bool {
        matches!(self, Self::Project | Self::Resource)
    }

    /// Whether `metadata.project` says where the object is.
    pub const fn in_project(self) -> bool {
        matches!(
            self,
            Self::Assignment
                | Self::Key
                | Self::Resource
                | Self::Generator
                | Self::Template
                | Self::Stack
                | Self::Agent
                | Self::Tenant
                | Self::Workspace
        )
    }

    /// Whether it has no id of its own: it is something that a project has, and known by the
    /// project's id.
    pub const fn is_of_project(self) -> bool {
        matches!(self, Self::Assignment | Self::Placement)
    }

    /// Whether names are unique only within the cloud that `spec.cloud` names.
    pub const fn in_cloud(self) -> bool {
        matches!(self, Self::Credential | Self::Assignment)
    }
}

/// Where an object is found, by names. It stays the same when its file is renamed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    pub kind: DocumentKind,
    pub project: Option<String>,
    pub cloud: Option<String>,
    pub name: String,
}

impl Address {
    pub fn new(kind: DocumentKind, name: impl Into<String>) -> Self {
        Self { kind, project: None, cloud: None, name: name.into() }
    }

    #[must_use]
    pub fn of_project(mut self, project: impl Into<String>) -> Self {
        self.project = Some(project.into());
        self
    }

    #[must_use]
    pub fn of_cloud(mut self, cloud: impl Into<String>) -> Self {
        self.cloud = Some(cloud.into());
        self
    }

    /// The name of the project that the object is in, or whose placement it is.
    pub fn home(&self) -> Option<&String> {
        match self.kind {
            DocumentKind::Placement => Some(&self.name),
            _ => self.project.as_ref(),
        }
    }

    /// The names from the outermost to its own, as rows have them. Only the last one, the
    /// key of a label or a name of Fleet, may contain a slash.
    pub fn path(&self) -> String {
        let outer = [self.project.as_deref(), self.cloud.as_deref()];
        let parts: Vec<&str> = outer.into_iter().flatten().chain([self.name.as_str()]).collect();
        parts.join("/")
    }

    /// The address that a row has.
    pub fn from_stored(kind: DocumentKind, path: &str) -> Self {
        let mut rest = path;
        let mut outer = |wanted: bool| {
            let (first, others) = if wanted { rest.split_once('/')? } else { return None };
            rest = others;
            Some(first.to_owned())
        };
        // A key that reaches every project has none.
        let parts = path.split('/').count();
        let project = outer(kind.in_project() && (kind != DocumentKind::Key || parts == 2));
        let cloud = outer(kind.in_cloud());
        Self { kind, project, cloud, name: rest.to_owned() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind, self.path())
    }
}

/// Refuses a document that another version of Slipway wrote.
pub fn check_version(version: &str) -> Result<(), Refusal> {
    if version == API_VERSION {
        return Ok(());
    }
    let newer = version.strip_prefix("slipway.dev/v").is_some_and(|rest| !rest.is_empty());
    let problem = match newer {
        true => format!(
            "is `{version}`, and this server reads `{API_VERSION}`; upgrade the server, or write the document for it"
        ),
        false => format!("must be `{API_VERSION}`"),
    };
    Err(Refusal::invalid("apiVersion", problem))
}

/// What `--source` names.
pub fn check_source(source: &str) -> Result<(), Refusal> {
    let valid = (1..=63).contains(&source.len())
        && source.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if valid {
        return Ok(());
    }
    let problem = "must have 1 to 63 letters, digits or - _ .";
    Err(Refusal::invalid("source", problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_back_from_its_path() {
        let addresses = [
            Address::new(DocumentKind::Label, "a.b/c"),
            Address::new(DocumentKind::Project, "web"),
            Address::new(DocumentKind::Placement, "web"),
            Address::new(DocumentKind::Credential, "main").of_cloud("east"),
            Address::new(DocumentKind::Assignment, "main").of_project("web").of_cloud("east"),
            Address::new(DocumentKind::Key, "ci"),
            Address::new(DocumentKind::Key, "ci").of_project("web"),
            Address::new(DocumentKind::Resource, "db").of_project("web"),
            Address::new(DocumentKind::Stack, "a/b").of_project("web"),
            Address::new(DocumentKind::Agent, "edge@a/b").of_project("web"),
        ];
        for address in addresses {
            assert_eq!(Address::from_stored(address.kind, &address.path()), address);
        }
    }

    #[test]
    fn a_newer_version_is_named_as_one() {
        assert!(check_version(API_VERSION).is_ok());
        assert!(check_version("slipway.dev/v2").unwrap_err().message.contains("upgrade"));
        assert!(!check_version("apps/v1").unwrap_err().message.contains("upgrade"));
    }
}

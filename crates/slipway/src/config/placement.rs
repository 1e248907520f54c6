//! The settings of project namespaces on management clusters.

use std::collections::BTreeMap;

use slipway_core::ids::InstallationId;
use slipway_render::shared::{PlacementSettings, Subject};

use super::InvalidConfig;
use super::parse::kubernetes_name;

/// The limits of a project namespace, by the resource names of Kubernetes.
pub(super) type Quota = BTreeMap<String, u64>;

/// The settings of project namespaces, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacementConfig {
    /// As they were configured; each one parses.
    pub(crate) subjects: Vec<String>,
    pub(crate) role: String,
    pub(crate) quota: Quota,
    pub(crate) secret_store: String,
}

impl PlacementConfig {
    pub(super) fn of(
        subjects: Option<Vec<String>>,
        role: Option<String>,
        quota: Option<Quota>,
        secret_store: Option<String>,
    ) -> Result<Self, InvalidConfig> {
        let subjects = subjects.unwrap_or_default();
        for subject in &subjects {
            Subject::parse(subject).map_err(|problem| {
                InvalidConfig::new(
                    "namespace_subjects",
                    format!("has `{subject}`, which {problem}"),
                )
            })?;
        }
        let usual = || ["count/configmaps", "count/secrets"].map(|what| (what.to_owned(), 100));
        let quota = quota.unwrap_or_else(|| usual().into());
        // Names separated by slashes, as in count/deployments.apps.
        let name = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if let Some(what) = quota.keys().find(|what| what.is_empty() || !what.chars().all(name)) {
            return Err(InvalidConfig::new(
                "namespace_quota",
                format!(
                    "has `{what}`, which Kubernetes cannot count; write it as in count/secrets"
                ),
            ));
        }
        let (usual_role, usual_store) =
            (PlacementSettings::DEFAULT_ROLE, PlacementSettings::DEFAULT_SECRET_STORE);
        Ok(Self {
            subjects,
            role: kubernetes_name("namespace_role", role, usual_role)?,
            quota,
            secret_store: kubernetes_name("secret_store", secret_store, usual_store)?,
        })
    }

    pub(crate) fn settings(&self, installation: InstallationId) -> PlacementSettings {
        PlacementSettings {
            installation,
            subjects: self.subjects.iter().filter_map(|text| Subject::parse(text).ok()).collect(),
            role: self.role.clone(),
            quota: self.quota.clone(),
            secret_store: self.secret_store.clone(),
        }
    }
}

/// Parses `count/configmaps=100,count/secrets=100`; an empty text means no limit.
pub(super) fn quota_in_text(text: &str) -> Result<Quota, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let limit = part.split_once('=').and_then(|(what, amount)| {
                Some((what.trim().to_owned(), amount.trim().parse().ok()?))
            });
            limit.ok_or_else(|| {
                format!("`{part}` is no limit; write a name and a number as in count/secrets=100")
            })
        })
        .collect()
}

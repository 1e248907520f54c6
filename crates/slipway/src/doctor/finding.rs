//! The result of a check.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Ok,
    /// It works, but somebody should know about it.
    Warning,
    /// It does not work, or will soon stop working.
    Problem,
}

/// The result of one check. Scripts may rely on the names of area and check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) area: &'static str,
    pub(super) check: &'static str,
    pub(super) status: Status,
    pub(super) detail: String,
    /// Present whenever the status is not ok.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

/// The findings of one area.
#[derive(Debug)]
pub(super) struct Area {
    name: &'static str,
    findings: Vec<Finding>,
}

impl Area {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, findings: Vec::new() }
    }

    pub(super) fn ok(&mut self, check: &'static str, detail: impl Into<String>) {
        self.push(check, Status::Ok, detail.into(), None);
    }

    pub(super) fn warning(
        &mut self,
        check: &'static str,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(check, Status::Warning, detail.into(), Some(remedy.into()));
    }

    pub(super) fn problem(
        &mut self,
        check: &'static str,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(check, Status::Problem, detail.into(), Some(remedy.into()));
    }

    fn push(
        &mut self,
        check: &'static str,
        status: Status,
        detail: String,
        remedy: Option<String>,
    ) {
        self.findings.push(Finding { area: self.name, check, status, detail, remedy });
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }
}

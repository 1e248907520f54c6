//! What agents report: how an object went, and how healthy it is. The same report again is
//! the same row with a later time.

use serde_json::Value;
use uuid::Uuid;

use crate::catalog::name::{document, line};
use crate::closed_set::closed_set;
use crate::error::Refusal;
use crate::ids::{AgentId, DeploymentObjectId};
use crate::time::Timestamp;

closed_set!(
    /// How an action on an object went.
    ReportStatus {
        Success => "SUCCESS",
        Failure => "FAILURE",
    }
);

/// The longest message, in bytes; more is cut.
pub const MESSAGE_MAX: usize = 4_096;

/// A report as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReport {
    /// Of its row, unless the same was reported before.
    pub id: Uuid,
    pub agent_id: AgentId,
    pub object_id: DeploymentObjectId,
    /// What was done, such as `DEPLOY`; agents choose the words.
    pub event_type: String,
    pub status: ReportStatus,
    pub message: Option<String>,
}

impl NewReport {
    pub fn parse(
        id: Uuid,
        (agent_id, object_id): (AgentId, DeploymentObjectId),
        event_type: &str,
        status: &str,
        message: Option<&str>,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            id,
            agent_id,
            object_id,
            event_type: line("event_type", event_type, 1, 64)?,
            status: ReportStatus::parse_field("status", status)?,
            message: message.map(cut),
        })
    }
}

/// What an agent says must never keep us from recording it.
fn cut(message: &str) -> String {
    let message = crate::text::storable(message);
    let end = (0..=MESSAGE_MAX.min(message.len())).rev().find(|end| message.is_char_boundary(*end));
    message[..end.unwrap_or(0)].to_owned()
}

/// Equal reports, as one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub id: Uuid,
    pub agent_id: AgentId,
    pub object_id: DeploymentObjectId,
    pub event_type: String,
    pub status: ReportStatus,
    /// Of the last one.
    pub message: Option<String>,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    pub count: i64,
    /// When its agent was deleted.
    pub deleted_at: Option<Timestamp>,
}

closed_set!(
    /// How healthy an object is on a cluster.
    HealthStatus {
        Healthy => "healthy",
        Degraded => "degraded",
        Failing => "failing",
        Unknown => "unknown",
    }
);

/// The health of an object on the cluster of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectHealth {
    pub id: Uuid,
    pub agent_id: AgentId,
    pub object_id: DeploymentObjectId,
    pub status: HealthStatus,
    /// A JSON document, as the agent made it.
    pub summary: Option<Value>,
    pub checked_at: Timestamp,
}

/// The most objects of one health report.
pub const HEALTH_MAX: usize = 10_000;

/// The largest summary, in bytes of JSON.
pub const SUMMARY_MAX: usize = 64 * 1024;

pub fn check_summary(summary: &Value) -> Result<(), Refusal> {
    document("summary", &summary.to_string(), SUMMARY_MAX)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::fleet::mk_agent;
    use crate::fixtures::uuid;

    fn parse(event_type: &str, status: &str, message: &str) -> Result<NewReport, Refusal> {
        let about = (mk_agent().id, DeploymentObjectId::new(uuid(3)));
        NewReport::parse(uuid(1), about, event_type, status, Some(message))
    }

    #[test]
    fn a_report_says_what_was_done_and_how_it_went() {
        assert_eq!(parse("DEPLOY", "SUCCESS", "").unwrap().status, ReportStatus::Success);
        assert_eq!(parse("", "SUCCESS", "").unwrap_err().field.as_deref(), Some("event_type"));
        assert_eq!(parse("DEPLOY", "ok", "").unwrap_err().field.as_deref(), Some("status"));
    }

    #[test]
    fn a_message_is_cut_and_never_refused() {
        let long = "ä".repeat(MESSAGE_MAX);
        let message = parse("DEPLOY", "FAILURE", &format!("\0{long}")).unwrap().message.unwrap();
        assert_eq!(message.len(), MESSAGE_MAX);
        assert!(message.starts_with('ä'));
        assert!(check_summary(&Value::String("x".repeat(SUMMARY_MAX))).is_err());
    }
}

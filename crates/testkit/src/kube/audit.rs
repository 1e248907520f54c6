//! The audit log of the API server, parsed.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::Value;

/// One request, or the start or end of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// `ResponseComplete`; for a watch `ResponseStarted` first; `Panic`.
    pub stage: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, …
    pub verb: String,
    /// Path and query, as requested.
    pub uri: String,
    pub user: String,
    pub user_agent: String,
    /// The object; `None` for paths such as `/readyz`.
    pub object: Option<AuditedObject>,
    /// The status code of the answer.
    pub code: Option<u16>,
    /// When the API server received the request.
    pub received: Timestamp,
    /// When the request reached this stage.
    pub reached: Timestamp,
}

/// The object of a request. Fields that the request does not name are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditedObject {
    pub group: String,
    /// The plural.
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
}

impl AuditRecord {
    /// Whether it is about an object of this plural itself, not about its
    /// status or another subresource.
    pub fn is_about(&self, resource: &str) -> bool {
        self.object
            .as_ref()
            .is_some_and(|object| object.resource == resource && object.subresource.is_empty())
    }
}

/// Reads all records of a log. Skips a last line that is not complete yet.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<AuditRecord>> {
    let reading = || format!("cannot read {}", path.display());
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(reading),
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(parse).collect::<anyhow::Result<_>>().with_context(reading)
}

fn parse(line: &str) -> anyhow::Result<AuditRecord> {
    let record: Value = serde_json::from_str(line).context("a line is not JSON")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let time = |name: &str| -> anyhow::Result<Timestamp> {
        let time = text(&record[name]).parse();
        time.map_err(|error| anyhow::anyhow!("no {name} in {line}: {error}"))
    };
    let object = record["objectRef"].is_object().then(|| {
        let part = |name: &str| text(&record["objectRef"][name]);
        AuditedObject {
            group: part("apiGroup"),
            resource: part("resource"),
            subresource: part("subresource"),
            namespace: part("namespace"),
            name: part("name"),
        }
    });
    Ok(AuditRecord {
        stage: text(&record["stage"]),
        verb: text(&record["verb"]),
        uri: text(&record["requestURI"]),
        user: text(&record["user"]["username"]),
        user_agent: text(&record["userAgent"]),
        object,
        code: record["responseStatus"]["code"].as_u64().and_then(|code| code.try_into().ok()),
        received: time("requestReceivedTimestamp")?,
        reached: time("stageTimestamp")?,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::read;

    const LINE: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"ResponseComplete","requestURI":"/apis/a.example/v1/namespaces/n/things/x?propagationPolicy=Foreground","verb":"delete","user":{"username":"admin","groups":["system:masters"]},"sourceIPs":["127.0.0.1"],"userAgent":"slipway","objectRef":{"resource":"things","namespace":"n","name":"x","apiGroup":"a.example","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z","stageTimestamp":"2026-01-02T03:04:05.100006Z"}"#;

    #[test]
    fn a_record_says_who_did_what_to_which_object_and_when() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // The second line is being written.
        fs::write(file.path(), format!("{LINE}\n{}", &LINE[..40])).unwrap();
        let records = read(file.path()).unwrap();
        let [record] = records.as_slice() else { panic!("{records:?}") };
        assert_eq!((record.verb.as_str(), record.user.as_str()), ("delete", "admin"));
        assert_eq!(record.code, Some(200));
        assert!(record.is_about("things") && !record.is_about("other"));
        let object = record.object.as_ref().unwrap();
        assert_eq!((object.namespace.as_str(), object.name.as_str()), ("n", "x"));
        assert_eq!(record.reached.duration_since(record.received).as_millis(), 100);
    }

    #[test]
    fn no_log_is_no_record_and_a_broken_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        assert_eq!(read(&path).unwrap(), []);
        fs::write(&path, "{\"stage\":1}\n").unwrap();
        assert!(format!("{:#}", read(&path).unwrap_err()).contains("requestReceivedTimestamp"));
    }
}

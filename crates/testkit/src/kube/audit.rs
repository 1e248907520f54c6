//! The audit log of the API server, parsed.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::Value;

/// One stage of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// `RequestReceived`, `ResponseComplete` and, for a watch, `ResponseStarted`
    /// between them; `Panic`.
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

/// The log and its records so far. Tests ask for the records again and again
/// while the log grows, so each line is parsed once.
#[derive(Debug)]
pub(super) struct AuditLog {
    path: PathBuf,
    /// How many bytes were parsed: whole lines only.
    parsed: u64,
    /// The records of the stage `RequestReceived`.
    received: Arc<Vec<AuditRecord>>,
    /// The records of the later stages.
    answered: Arc<Vec<AuditRecord>>,
}

impl AuditLog {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, parsed: 0, received: Arc::default(), answered: Arc::default() }
    }

    /// Every request received, oldest first. Skips a last line that is not
    /// complete yet.
    pub(super) fn received(&mut self) -> anyhow::Result<Arc<Vec<AuditRecord>>> {
        self.parse_new()?;
        Ok(Arc::clone(&self.received))
    }

    /// Every request answered, oldest first, likewise.
    pub(super) fn answered(&mut self) -> anyhow::Result<Arc<Vec<AuditRecord>>> {
        self.parse_new()?;
        Ok(Arc::clone(&self.answered))
    }

    fn parse_new(&mut self) -> anyhow::Result<()> {
        self.try_parse_new().with_context(|| format!("cannot read {}", self.path.display()))
    }

    fn try_parse_new(&mut self) -> anyhow::Result<()> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        file.seek(SeekFrom::Start(self.parsed))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = std::str::from_utf8(&bytes[..whole])?.lines();
        let new = lines.map(parse).collect::<anyhow::Result<Vec<_>>>()?;
        let (received, answered): (Vec<_>, Vec<_>) =
            new.into_iter().partition(|record| record.stage == "RequestReceived");
        Arc::make_mut(&mut self.received).extend(received);
        Arc::make_mut(&mut self.answered).extend(answered);
        self.parsed += u64::try_from(whole)?;
        Ok(())
    }
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

    use super::AuditLog;

    const LINE: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"ResponseComplete","requestURI":"/apis/a.example/v1/namespaces/n/things/x?propagationPolicy=Foreground","verb":"delete","user":{"username":"admin","groups":["system:masters"]},"sourceIPs":["127.0.0.1"],"userAgent":"slipway","objectRef":{"resource":"things","namespace":"n","name":"x","apiGroup":"a.example","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z","stageTimestamp":"2026-01-02T03:04:05.100006Z"}"#;

    #[test]
    fn a_record_says_who_did_what_to_which_object_and_when() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // The second line is being written.
        fs::write(file.path(), format!("{LINE}\n{}", &LINE[..40])).unwrap();
        let mut log = AuditLog::new(file.path().to_owned());
        let records = log.answered().unwrap();
        let [record] = records.as_slice() else { panic!("{records:?}") };
        assert_eq!((record.verb.as_str(), record.user.as_str()), ("delete", "admin"));
        assert_eq!(record.code, Some(200));
        assert!(record.is_about("things") && !record.is_about("other"));
        let object = record.object.as_ref().unwrap();
        assert_eq!((object.namespace.as_str(), object.name.as_str()), ("n", "x"));
        assert_eq!(record.reached.duration_since(record.received).as_millis(), 100);

        // Now it is complete. What was read before stays as it was.
        fs::write(file.path(), format!("{LINE}\n{}\n", LINE.replace("/x?", "/y?"))).unwrap();
        let later = log.answered().unwrap();
        assert_eq!((records.len(), later.len(), &later[0]), (1, 2, &records[0]));
        assert!(later[1].uri.contains("/y?"), "{later:?}");
        assert_eq!(*log.answered().unwrap(), *later);
        assert_eq!(*log.received().unwrap(), []);

        let received = LINE.replace("ResponseComplete", "RequestReceived");
        fs::write(file.path(), format!("{LINE}\n{LINE}\n{received}\n")).unwrap();
        assert_eq!(log.received().unwrap().len(), 1);
        assert_eq!(log.answered().unwrap().len(), 2);
    }

    #[test]
    fn no_log_is_no_record_and_a_broken_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut log = AuditLog::new(path.clone());
        assert_eq!(*log.answered().unwrap(), []);
        fs::write(&path, "{\"stage\":1}\n").unwrap();
        assert!(format!("{:#}", log.answered().unwrap_err()).contains("requestReceivedTimestamp"));
    }
}

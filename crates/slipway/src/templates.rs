//! Renders templates of Fleet in a process of their own, this program again, with limits that
//! the system keeps: a template that loops or asks for all memory ends, and nothing else does.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_app::ports::templates::{RenderFailure, TemplateRenderer};
use slipway_core::fleet::content::CONTENT_MAX;
use slipway_render::template;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// What this program is called with to render one template from its standard input.
pub(crate) const ARGUMENT: &str = "__render-template";

/// What one rendering may take: time on a processor, time at all, and memory.
const PROCESSOR_SECONDS: u64 = 2;
const TIME: Duration = Duration::from_secs(10);
const MEMORY: u64 = 256 << 20;
/// How many may run at the same time; more wait.
const AT_ONCE: usize = 2;

/// What is rendered; without parameters it is only checked.
#[derive(Debug, Serialize, Deserialize)]
struct Work {
    template: String,
    parameters: Option<Value>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Outcome {
    Text(String),
    Fault(String),
}

/// The process: one template, then the end.
pub(crate) fn run() -> ExitCode {
    let limit =
        |resource, most| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    let limited = limit(Resource::Cpu, PROCESSOR_SECONDS)
        .and_then(|()| limit(Resource::Data, MEMORY))
        .and_then(|()| limit(Resource::Core, 0));
    let mut input = Vec::new();
    if limited.is_err() || std::io::stdin().read_to_end(&mut input).is_err() {
        return ExitCode::FAILURE;
    }
    let Ok(work) = serde_json::from_slice::<Work>(&input) else { return ExitCode::FAILURE };
    let done = match &work.parameters {
        None => template::check(&work.template).map(|()| String::new()),
        Some(parameters) => template::render(&work.template, parameters),
    };
    let outcome = match done {
        Ok(text) if text.len() > CONTENT_MAX => {
            Outcome::Fault(format!("makes more than {CONTENT_MAX} bytes"))
        }
        Ok(text) => Outcome::Text(text),
        Err(fault) => Outcome::Fault(fault),
    };
    let written = serde_json::to_vec(&outcome).ok();
    let written = written.and_then(|bytes| std::io::stdout().write_all(&bytes).ok());
    if written.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Starts such processes.
#[derive(Debug)]
pub(crate) struct Processes {
    program: PathBuf,
    slots: Semaphore,
}

impl Processes {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program, slots: Semaphore::new(AT_ONCE) }
    }

    async fn work(&self, work: &Work) -> Result<String, RenderFailure> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            RenderFailure::Unavailable(format!("{what}: {error}"))
        };
        let input = serde_json::to_vec(work).map_err(|error| failed("cannot write", &error))?;
        let slot = self.slots.acquire().await;
        let _slot = slot.map_err(|error| failed("no slot", &error))?;
        // No environment: a template could print it.
        let mut process = Command::new(&self.program)
            .arg(ARGUMENT)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed("cannot start the process that renders", &error))?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let talk = async {
            if let Some(mut stdin) = stdin {
                // It may have ended already; its exit says why.
                let _ = stdin.write_all(&input).await;
            }
            let mut output = Vec::new();
            if let Some(stdout) = stdout {
                // JSON writes a character as six bytes at most.
                let most = 6 * CONTENT_MAX as u64 + 1_024;
                stdout.take(most).read_to_end(&mut output).await?;
            }
            Ok::<_, std::io::Error>((output, process.wait().await?))
        };
        let limits = format!(
            "did not end within its limits: {PROCESSOR_SECONDS} s of a processor, {} MiB of \
             memory; make its loops shorter",
            MEMORY >> 20
        );
        let (output, status) = match timeout(TIME, talk).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) => {
                return Err(failed("cannot talk to the process that renders", &error));
            }
            Err(_) => return Err(RenderFailure::Template(limits)),
        };
        match serde_json::from_slice(&output) {
            Ok(Outcome::Text(text)) if status.success() => Ok(text),
            Ok(Outcome::Fault(fault)) => Err(RenderFailure::Template(fault)),
            _ => Err(RenderFailure::Template(limits)),
        }
    }
}

#[async_trait]
impl TemplateRenderer for Processes {
    async fn check(&self, template: &str) -> Result<(), RenderFailure> {
        let work = Work { template: template.to_owned(), parameters: None };
        self.work(&work).await.map(|_| ())
    }

    async fn render(&self, template: &str, parameters: &Value) -> Result<String, RenderFailure> {
        let parameters = Some(parameters.clone());
        self.work(&Work { template: template.to_owned(), parameters }).await
    }
}

//! A server that answers from a script, and a terminal whose output tests read.

use std::collections::VecDeque;
use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use slipway_cli::{
    AgentCommand, ClientOptions, Command, Exit, Renderers, Terminal, Traits, run_on,
};
use slipway_wire::problem::FieldError;
use tokio::net::TcpListener;

pub(crate) const ID: &str = "0192f0c1-2b3c-7d4e-8f50-123456789abc";
const TIME: &str = "2026-01-31T12:00:00.000000Z";

/// A received request: method, path with query, authorization, body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) key: Option<String>,
    pub(crate) body: String,
}

/// Instead of a status: the server accepts the request and never answers.
pub(crate) const SILENCE: u16 = 0;

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) link: Option<String>,
    /// Ids of the rows that the list lacks.
    pub(crate) quarantined: Option<&'static str>,
    /// Instead of the body: a stream that sends this and ends.
    pub(crate) stream: Option<String>,
    pub(crate) location: Option<String>,
}

impl Reply {
    pub(crate) fn of(status: u16, body: Value) -> Self {
        Self { status, body, link: None, quarantined: None, stream: None, location: None }
    }
}

#[derive(Debug, Default)]
struct Script {
    replies: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<Asked>>,
}

impl Script {
    /// `None` means silence.
    fn next(&self) -> Option<Reply> {
        let mut replies = self.replies.lock().unwrap();
        let reply = match replies.len() {
            0 => Reply::of(500, json!({})),
            1 => replies[0].clone(),
            _ => replies.pop_front().unwrap(),
        };
        (reply.status != SILENCE).then_some(reply)
    }
}

/// The server. It answers in the order of the script and repeats the last answer.
#[derive(Debug)]
pub(crate) struct StandIn {
    url: String,
    script: Arc<Script>,
}

/// How a command ended and what it printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl StandIn {
    pub(crate) async fn new(replies: Vec<Reply>) -> Self {
        let script = Arc::new(Script { replies: Mutex::new(replies.into()), ..Script::default() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, script }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.script.asked.lock().unwrap().clone()
    }

    /// The request lines alone.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Runs a command against this server, without a terminal.
    pub(crate) async fn run(&self, line: &[&str]) -> Ended {
        run(&self.url, line, Traits::default(), "").await
    }

    /// Runs a command interactively; the person types `answers`.
    pub(crate) async fn run_asked(&self, line: &[&str], answers: &'static str) -> Ended {
        let traits = Traits { asks: true, ..Traits::default() };
        run(&self.url, line, traits, answers).await
    }
}

async fn answer(State(script): State<Arc<Script>>, request: Request) -> Response {
    let line = format!("{} {}", request.method(), request.uri());
    let key = request.headers().get("authorization");
    let key = key.map(|value| value.to_str().unwrap().to_owned());
    let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    script.asked.lock().unwrap().push(Asked { line, key, body });
    let Some(reply) = script.next() else {
        return std::future::pending().await;
    };
    if let Some(text) = reply.stream {
        return ([("content-type", "text/event-stream")], text).into_response();
    }
    let mut response =
        (StatusCode::from_u16(reply.status).unwrap(), axum::Json(reply.body)).into_response();
    if let Some(link) = reply.link {
        response.headers_mut().insert("link", link.parse().unwrap());
    }
    if let Some(location) = reply.location {
        response.headers_mut().insert("location", location.parse().unwrap());
    }
    if let Some(ids) = reply.quarantined {
        response.headers_mut().insert("slipway-quarantined-rows", ids.parse().unwrap());
    }
    response
}

/// The binary has real renderers; these only show that the commands call them.
const RENDERERS: Renderers = Renderers {
    cloud_init: |machine| Ok(format!("cloud-init of {}", machine.hostname)),
    faults: |_, version| match version.xrd.contains("broken") {
        true => vec![FieldError {
            field: "xrd".to_owned(),
            code: "xrd_invalid".to_owned(),
            message: "`xrd` is broken; mend it".to_owned(),
        }],
        false => Vec::new(),
    },
    config_maps: |_, _, _| Box::pin(async { Ok(Vec::new()) }),
    remove_config_maps: |_, _, _| Box::pin(async { Ok(()) }),
    role: |slug, composite| Ok(format!("role: {slug}\nof: {}\n", composite.plural)),
    daemon_set: |wanted| Ok(format!("on: {}\ntoken: {}\n", wanted.hostname, wanted.token)),
    query: |_, _| Box::pin(async { Ok(Vec::new()) }),
};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    options: ClientOptions,
    #[command(subcommand)]
    command: Noun,
}

/// As the binary has them: `agent` is beside the others.
#[derive(Debug, Subcommand)]
enum Noun {
    #[command(flatten)]
    Client(Command),
    #[command(subcommand)]
    Agent(AgentCommand),
}

pub(crate) async fn run(
    server: &str,
    line: &[&str],
    traits: Traits,
    answers: &'static str,
) -> Ended {
    let output = Shared::default();
    let ended = run_into(Box::new(output.clone()), server, line, traits, answers).await;
    Ended { output: output.text(), ..ended }
}

/// Runs a command whose results go elsewhere; the output is not captured.
pub(crate) async fn run_into(
    output: Box<dyn Write + Send>,
    server: &str,
    line: &[&str],
    traits: Traits,
    answers: &'static str,
) -> Ended {
    let arguments = ["slipway", "--server", server, "--key", "slipway_key"];
    let line: Vec<_> = arguments.iter().chain(line).copied().collect();
    run_line(output, &line, traits, answers).await
}

/// Runs a command that finds its server by itself; the person types `answers`.
pub(crate) async fn run_alone(line: &[&str], answers: &'static str) -> Ended {
    let output = Shared::default();
    let line: Vec<_> = ["slipway"].iter().chain(line).copied().collect();
    let ended = run_line(Box::new(output.clone()), &line, Traits::default(), answers).await;
    Ended { output: output.text(), ..ended }
}

async fn run_line(
    output: Box<dyn Write + Send>,
    line: &[&str],
    traits: Traits,
    answers: &'static str,
) -> Ended {
    let line = Line::try_parse_from(line).unwrap();
    let errors = Shared::default();
    let input = Box::new(Cursor::new(answers));
    let mut terminal = Terminal::new(output, Box::new(errors.clone()), input, traits);
    let command = match line.command {
        Noun::Client(command) => command,
        Noun::Agent(command) => Command::Agent(command),
    };
    let exit = run_on(command, line.options, RENDERERS, &mut terminal).await;
    Ended { exit, output: String::new(), errors: errors.text() }
}

#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn mk_resource(phase: &str) -> Value {
    json!({
        "id": ID, "project_id": ID, "handle": "web-1", "labels": {}, "blueprint": "local-node",
        "blueprint_version": "v1", "engine": "local", "phase": phase, "phase_since": TIME,
        "revision": 1, "created_at": TIME, "updated_at": TIME, "deleted_at": null,
        "deletion_id": null, "node": null, "blockers": [],
        "attempt": {
            "id": ID, "number": 1, "revision": 1, "phase": phase, "xr_name": "pr-1",
            "parameters": {}, "deletion_requested_at": null, "absence_proven_at": null, "abandoned_at": null,
            "failure_reason": "no quota",
            "created_at": TIME, "updated_at": TIME,
        },
    })
}

pub(crate) fn mk_deletion() -> Value {
    json!({
        "id": ID, "kind": "resource", "target_id": ID, "state": "running",
        "requested_by": "key:admin", "reason": "why", "members": [], "requested_at": TIME,
        "done_at": null, "restorable_until": null,
    })
}

pub(crate) fn mk_problem(status: u16, code: &str) -> Value {
    json!({
        "type": "/x", "title": "x", "status": status, "detail": "it is so", "instance": "/x",
        "code": code, "message": "it is so", "details": { "field": "handle" },
        "correlation_id": "c-1",
    })
}

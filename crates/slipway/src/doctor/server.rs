//! Checks whether the server is reachable, ready and of this version, and accepts
//! the key.

use slipway_cli::{ClientOptions, KeyProbe, ServerProbe, probe_server};
use slipway_core::Timestamp;
use slipway_wire::operations::Control;

use super::finding::{Area, Finding};
use crate::config::Config;

/// The default server of the client.
const USUAL_SERVER: &str = "http://127.0.0.1:7700";

/// Also returns the time of the server. `held`: a control plane runs on the data
/// directory of this machine.
pub(super) async fn inspect(
    client: &ClientOptions,
    config: Option<&Config>,
    held: bool,
) -> (Vec<Finding>, Option<Timestamp>, ServerProbe) {
    let mut area = Area::new("server");
    let seen = probe_server(client).await;
    let ours = env!("CARGO_PKG_VERSION");
    match &seen.readiness {
        Ok(readiness) if readiness.ready => {
            area.ok("reachable", format!("{} is ready", seen.server));
        }
        Ok(readiness) => {
            let failing = readiness.probes.iter().filter(|probe| !probe.ok);
            let failing: Vec<_> =
                failing.map(|probe| format!("{}: {}", probe.name, probe.detail)).collect();
            area.problem(
                "reachable",
                format!("{} is not ready: {}", seen.server, failing.join("; ")),
                "its log says why",
            );
        }
        Err(why) if held => area.problem(
            "reachable",
            format!("a control plane runs on this data directory, but {why}"),
            "name its address with --server; server.json in the data directory has it",
        ),
        Err(why) if seen.server == USUAL_SERVER => {
            area.warning(
                "reachable",
                why.clone(),
                "start it: slipway up; if it runs, its log says why it does not answer",
            );
            if let Some(config) = config {
                port(&mut area, config);
            }
        }
        Err(why) => area.problem(
            "reachable",
            why.clone(),
            "start it there, or read its log if it runs, or name another with --server or SLIPWAY_SERVER",
        ),
    }
    if seen.readiness.is_ok() {
        match &seen.key {
            KeyProbe::Valid => area.ok("key", "it is accepted"),
            KeyProbe::NotGiven => area.warning(
                "key",
                "none was given, so nothing can be asked",
                "keep one with `slipway login`, or export SLIPWAY_KEY or SLIPWAY_KEY_FILE; `slipway up` shows the first one",
            ),
            KeyProbe::Refused(why) => area.problem(
                "key",
                why.clone(),
                "give another with `slipway login`, SLIPWAY_KEY or SLIPWAY_KEY_FILE, or start with SLIPWAY_ADMIN_KEY to install one",
            ),
            KeyProbe::Unknown => {
                area.warning("key", "the server did not say", "its log says why");
            }
        }
    }
    if let Some(control) = &seen.control {
        mode(&mut area, control);
    }
    match &seen.version {
        Some(theirs) if theirs == ours => {
            area.ok("version", format!("client, server and the agents it starts: {ours}"));
        }
        Some(theirs) => area.warning(
            "version",
            format!("this binary is {ours}, the server {theirs}"),
            "use the same on both; one version apart works during an upgrade",
        ),
        None => area.ok("version", format!("this binary and the agents it starts: {ours}")),
    }
    let date = seen.date.as_deref().and_then(Timestamp::from_http_date);
    (area.into_findings(), date, seen)
}

/// Requests are accepted in every mode, so a mode that acts on nothing is easy to miss.
fn mode(area: &mut Area, control: &Control) {
    match (&control.observing, &control.freeze) {
        (Some(observing), _) => area.warning(
            "mode",
            format!("it only observes, since {}: {}", observing.since, observing.reason),
            "read `slipway withheld`, then `slipway resume --reason WHY`",
        ),
        (None, Some(freeze)) => area.warning(
            "mode",
            format!("it is frozen until {}: {}", freeze.until, freeze.reason),
            "wait, or `slipway unfreeze --reason WHY`",
        ),
        (None, None) => area.ok("mode", "it acts"),
    }
}

/// The server does not answer; another process may use the port.
fn port(area: &mut Area, config: &Config) {
    match std::net::TcpListener::bind(config.listen) {
        Ok(_) => area.ok("port", format!("{} is free", config.listen)),
        Err(error) => area.problem(
            "port",
            format!("{}: {error}", config.listen),
            "stop what listens there, or choose another with --listen",
        ),
    }
}

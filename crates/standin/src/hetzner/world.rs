//! What one project of the provider has, and how it changes with time. An action ends when its
//! time has come; a server follows the action that changes it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::clock;

/// Objects of one project.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) servers: BTreeMap<u64, Server>,
    pub(super) groups: BTreeMap<u64, Group>,
    pub(super) actions: BTreeMap<u64, Action>,
    pub(super) next_id: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) server_type: String,
    pub(super) location: String,
    pub(super) image: String,
    /// Write-only: no answer has it.
    pub(super) user_data: String,
    pub(super) is_protected: bool,
    pub(super) status: &'static str,
    pub(super) group: Option<u64>,
    pub(super) created: String,
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) created: String,
}

#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) id: u64,
    pub(super) command: &'static str,
    pub(super) server: u64,
    ends_at: Instant,
    started: String,
    finished: Option<String>,
    /// What it ends with.
    error: Option<String>,
}

/// What a step of time did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Started(u64),
    Gone(u64),
}

impl World {
    pub(super) const fn new_id(&mut self) -> u64 {
        // Ids of all kinds differ, so that a test notices a mix-up.
        self.next_id += 1;
        self.next_id
    }

    /// Begins an action on a server.
    pub(super) fn begin(
        &mut self,
        command: &'static str,
        server: u64,
        takes: Duration,
        error: Option<String>,
    ) -> u64 {
        let id = self.new_id();
        let (ends_at, started) = (Instant::now() + takes, clock::now_in_seconds());
        let action = Action { id, command, server, ends_at, started, finished: None, error };
        self.actions.insert(id, action);
        id
    }

    /// Ends the actions whose time has come, in their order.
    pub(super) fn advance(&mut self, now: Instant) -> Vec<Event> {
        let mut due: Vec<_> = self
            .actions
            .values()
            .filter(|action| action.finished.is_none() && action.ends_at <= now)
            .map(|action| (action.ends_at, action.id))
            .collect();
        due.sort_unstable();
        due.into_iter().filter_map(|(_, id)| self.end(id)).collect()
    }

    fn end(&mut self, id: u64) -> Option<Event> {
        let action = self.actions.get_mut(&id)?;
        action.finished = Some(clock::now_in_seconds());
        let (command, number, failed) = (action.command, action.server, action.error.is_some());
        let server = self.servers.get_mut(&number)?;
        match command {
            "create_server" if failed => server.status = "off",
            "create_server" => server.status = "starting",
            "start_server" if server.status == "starting" => {
                server.status = "running";
                return Some(Event::Started(number));
            }
            "delete_server" => {
                self.servers.remove(&number);
                return Some(Event::Gone(number));
            }
            _ => {}
        }
        None
    }

    /// An action that locks the server is running.
    pub(super) fn is_locked(&self, server: u64) -> bool {
        self.actions.values().any(|action| {
            action.server == server
                && action.finished.is_none()
                && matches!(action.command, "create_server" | "delete_server")
        })
    }

    pub(super) fn server_document(&self, server: &Server) -> Value {
        json!({
            "id": server.id,
            "name": server.name,
            "status": server.status,
            "created": server.created,
            "public_net": {
                "ipv4": { "id": server.id, "ip": "192.0.2.10", "blocked": false, "dns_ptr": "" },
                "ipv6": null,
                "floating_ips": [],
                "firewalls": [],
            },
            "private_net": [],
            "server_type": { "id": 22, "name": server.server_type },
            "location": { "id": 1, "name": server.location },
            "image": { "id": 1, "name": server.image },
            "iso": null,
            "rescue_enabled": false,
            "locked": self.is_locked(server.id),
            "backup_window": null,
            "outgoing_traffic": null,
            "ingoing_traffic": null,
            "included_traffic": null,
            "protection": { "delete": server.is_protected, "rebuild": server.is_protected },
            "labels": server.labels,
            "volumes": [],
            "load_balancers": [],
            "primary_disk_size": 40,
            "placement_group": server.group.and_then(|id| self.groups.get(&id)).map(|group| self.group_document(group)),
        })
    }

    pub(super) fn group_document(&self, group: &Group) -> Value {
        let members = self.servers.values().filter(|server| server.group == Some(group.id));
        json!({
            "id": group.id,
            "name": group.name,
            "labels": group.labels,
            "type": "spread",
            "created": group.created,
            "servers": members.map(|server| server.id).collect::<Vec<_>>(),
        })
    }
}

impl Action {
    pub(super) fn document(&self) -> Value {
        let (is_over, failed) = (self.finished.is_some(), self.error.is_some());
        let status = match (is_over, failed) {
            (false, _) => "running",
            (true, false) => "success",
            (true, true) => "error",
        };
        let error = self.error.as_ref().filter(|_| is_over);
        json!({
            "id": self.id,
            "command": self.command,
            "status": status,
            "progress": if is_over { 100 } else { 0 },
            "started": self.started,
            "finished": self.finished,
            "resources": [{ "id": self.server, "type": "server" }],
            "error": error.map(|message| json!({ "code": "action_failed", "message": message })),
        })
    }
}

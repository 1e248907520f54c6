//! The cloud-init document through which a node learns where to enrol and with
//! which token: plexd's two files, and a unit that runs the agent, now and after
//! every boot.

use serde::{Deserialize, Serialize};
use slipway_core::secret::Secret;

/// Where the agent finds its configuration.
pub const CONFIG_PATH: &str = "/etc/plexd/config.yaml";
/// Where the agent finds its token; removed by the agent once it enrolled.
pub const TOKEN_PATH: &str = "/etc/plexd/bootstrap-token";
/// Where the agent finds the authorities that it trusts, if it is given any.
pub const AUTHORITIES_PATH: &str = "/etc/plexd/ca.pem";
/// Where the agent keeps its identity.
pub const STATE_PATH: &str = "/var/lib/plexd";
const UNIT_PATH: &str = "/etc/systemd/system/plexd.service";

/// `plexd up` runs in the foreground. systemd finds the program on its own path,
/// so that an image may have it in any of the usual directories.
const UNIT: &str = "[Unit]
Description=plexd node agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=plexd up
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
";

/// Not `enable --now`: an image may have started the agent before its files were
/// written.
const COMMANDS: [&[&str]; 3] = [
    &["systemctl", "daemon-reload"],
    &["systemctl", "enable", "plexd.service"],
    &["systemctl", "restart", "plexd.service"],
];

const HEADER: &str = "#cloud-config\n";

/// The configuration of a node agent, apart from the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeConfig {
    pub api_url: String,
    pub project_id: String,
    pub resource_handle: String,
    pub hostname: String,
    pub heartbeat_interval_ms: u64,
    pub orphan_after_ms: u64,
    pub busy_seconds: u64,
    /// The content of a file of its own, in PEM.
    #[serde(skip)]
    pub authorities: Option<String>,
}

/// The file in the shape of each reader. Our agent reads the top level. plexd reads
/// sections: generation A knows its keys as its field names in lower case, generation
/// B has underscores in them. Each ignores what it does not know.
#[derive(Serialize)]
struct ConfigFile<'a> {
    #[serde(flatten)]
    config: &'a NodeConfig,
    token_file: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_file: Option<&'static str>,
    data_dir: &'static str,
    api: ApiSection<'a>,
    registration: RegistrationSection<'a>,
    node_api: NodeApiSection,
    heartbeat: HeartbeatSection<'a>,
}

#[derive(Serialize)]
struct ApiSection<'a> {
    base_url: &'a str,
    baseurl: &'a str,
}

#[derive(Serialize)]
struct RegistrationSection<'a> {
    project_id: &'a str,
    resource_handle: &'a str,
    token_file: &'static str,
    tokenfile: &'static str,
    datadir: &'static str,
}

#[derive(Serialize)]
struct NodeApiSection {
    datadir: &'static str,
}

#[derive(Serialize)]
struct HeartbeatSection<'a> {
    /// Generation A refuses to start without it, and sends the id that it was given at
    /// its registration.
    nodeid: &'a str,
    /// As Go writes a duration.
    interval: String,
}

impl<'a> ConfigFile<'a> {
    fn new(config: &'a NodeConfig) -> Self {
        Self {
            config,
            token_file: TOKEN_PATH,
            ca_file: config.authorities.as_ref().map(|_| AUTHORITIES_PATH),
            data_dir: STATE_PATH,
            api: ApiSection { base_url: &config.api_url, baseurl: &config.api_url },
            registration: RegistrationSection {
                project_id: &config.project_id,
                resource_handle: &config.resource_handle,
                token_file: TOKEN_PATH,
                tokenfile: TOKEN_PATH,
                datadir: STATE_PATH,
            },
            node_api: NodeApiSection { datadir: STATE_PATH },
            heartbeat: HeartbeatSection {
                nodeid: &config.resource_handle,
                interval: format!("{}ms", config.heartbeat_interval_ms),
            },
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Document {
    write_files: Vec<File>,
    #[serde(default)]
    runcmd: Vec<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
struct File {
    path: String,
    permissions: String,
    content: String,
}

/// A document that could not be written; the error repeats no content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cloud-init document could not be rendered")]
pub struct RenderFailed;

/// The text of the agent's configuration.
pub(crate) fn config_file(config: &NodeConfig) -> Result<String, RenderFailed> {
    serde_yaml_ng::to_string(&ConfigFile::new(config)).map_err(|_| RenderFailed)
}

/// Writes the document. It carries the token in the clear, as it must.
pub fn enrolment_document(config: &NodeConfig, token: &Secret) -> Result<Secret, RenderFailed> {
    let file = |path: &str, permissions: &str, content: String| File {
        path: path.to_owned(),
        permissions: permissions.to_owned(),
        content,
    };
    let mut write_files = vec![
        file(CONFIG_PATH, "0644", config_file(config)?),
        file(TOKEN_PATH, "0600", format!("{}\n", token.expose())),
        file(UNIT_PATH, "0644", UNIT.to_owned()),
    ];
    if let Some(authorities) = &config.authorities {
        write_files.push(file(AUTHORITIES_PATH, "0644", authorities.clone()));
    }
    let words = |command: &[&str]| command.iter().map(|&word| word.to_owned()).collect();
    let document = Document { write_files, runcmd: COMMANDS.map(words).to_vec() };
    let text = serde_yaml_ng::to_string(&document).map_err(|_| RenderFailed)?;
    Ok(Secret::new(format!("{HEADER}{text}")))
}

/// Reads the token back out of a document that some object carries.
pub fn bootstrap_token_in(document: &Secret) -> Option<Secret> {
    let body = document.expose().strip_prefix(HEADER)?;
    let document: Document = serde_yaml_ng::from_str(body).ok()?;
    let file = document.write_files.into_iter().find(|file| file.path == TOKEN_PATH)?;
    Some(Secret::new(file.content.trim()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn mk_config() -> NodeConfig {
        NodeConfig {
            api_url: "http://127.0.0.1:7700".to_owned(),
            project_id: "00000000-0000-0000-0000-00000000000c".to_owned(),
            resource_handle: "web-1".to_owned(),
            hostname: "web-1".to_owned(),
            heartbeat_interval_ms: 1_000,
            orphan_after_ms: 600_000,
            busy_seconds: 3,
            authorities: None,
        }
    }

    #[test]
    fn the_authorities_are_a_file_that_the_configuration_names() {
        let config = NodeConfig { authorities: Some("PEM\n".to_owned()), ..mk_config() };
        let document = enrolment_document(&config, &Secret::new("psb_live_x_node_y")).unwrap();
        let text = document.expose();
        assert!(text.contains("ca_file: /etc/plexd/ca.pem\n"), "{text}");
        let file = "- path: /etc/plexd/ca.pem\n  permissions: '0644'\n  content: |\n    PEM\n";
        assert!(text.contains(file), "{text}");
    }

    #[test]
    fn the_document_is_what_a_node_agent_reads() {
        let document = enrolment_document(&mk_config(), &Secret::new("psb_live_x_node_y")).unwrap();
        insta::assert_snapshot!(document.expose());
    }

    #[test]
    fn the_token_can_be_read_back() {
        let document = enrolment_document(&mk_config(), &Secret::new("psb_live_x_node_y")).unwrap();
        assert_eq!(bootstrap_token_in(&document).unwrap().expose(), "psb_live_x_node_y");
        for other in ["", "#cloud-config\n", "#cloud-config\nwrite_files: 3\n", "plain text"] {
            assert!(bootstrap_token_in(&Secret::new(other)).is_none(), "{other:?}");
        }
    }
}

//! What `slipway up` keeps for the person who starts it: a context for its own server.

use std::path::PathBuf;

use slipway_core::secret::Secret;

use super::file::Context;
use crate::arguments::ClientOptions;
use crate::error::Error;

/// The name of the first one.
const NAME: &str = "local";

/// The control plane of this machine.
#[derive(Debug, Clone)]
pub struct LocalServer {
    pub url: String,
    /// The key that was drawn at this start, if one was.
    pub key: Option<Secret>,
    pub ca_file: Option<PathBuf>,
    /// Tells the installations of one machine apart.
    pub data_dir: PathBuf,
}

/// The context of a control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    pub name: String,
    /// Whether commands use it unless they name another.
    pub is_current: bool,
    /// The file that has it.
    pub path: PathBuf,
}

/// Writes the context of a control plane that has just drawn its first key, and makes it
/// the current one if there is none. A context of the same data directory is replaced; one
/// of another control plane, or of a person, is left alone, and the next free name is taken.
///
/// Without a new key only the address of a context of this data directory is kept up to
/// date. `None` if there is nothing to keep.
pub fn remember_local(
    options: &ClientOptions,
    server: &LocalServer,
) -> Result<Option<Remembered>, Error> {
    let file = options.contexts_file()?;
    let is_ours = |context: &Context| context.data_dir.as_ref() == Some(&server.data_dir);
    let known = file.read()?.contexts;
    let outdated = |context: &Context| is_ours(context) && context.server != server.url;
    if server.key.is_none() && !known.values().any(outdated) {
        return Ok(None);
    }
    file.change(|all| {
        let known = all.contexts.iter().find(|(_, context)| is_ours(context));
        let known = known.map(|(name, context)| (name.clone(), context.clone()));
        let (name, before) = match known {
            Some((name, context)) => (name, Some(context)),
            None => {
                let names = std::iter::once(NAME.to_owned())
                    .chain((2..).map(|number| format!("{NAME}-{number}")));
                let free = names.into_iter().find(|name| !all.contexts.contains_key(name));
                (free.unwrap_or_else(|| unreachable!("there are more names")), None)
            }
        };
        let context = Context {
            server: server.url.clone(),
            key: server.key.clone().or_else(|| before.as_ref()?.key.clone()),
            ca_file: server.ca_file.clone(),
            project: before.and_then(|before| before.project),
            data_dir: Some(server.data_dir.clone()),
        };
        all.contexts.insert(name.clone(), context);
        let current = all.current.get_or_insert_with(|| name.clone());
        let is_current = *current == name;
        Ok(Some(Remembered { name, is_current, path: file.path() }))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: ClientOptions,
    }

    fn options(folder: &Path) -> ClientOptions {
        let mut options = Line::try_parse_from(["slipway"]).unwrap().options;
        options.config_home = Some(folder.join("slipway"));
        options
    }

    fn server(url: &str, key: Option<&str>, data_dir: &str) -> LocalServer {
        let (url, key) = (url.to_owned(), key.map(Secret::new));
        LocalServer { url, key, ca_file: None, data_dir: PathBuf::from(data_dir) }
    }

    #[test]
    fn each_installation_has_its_own_and_none_takes_that_of_another() {
        let home = tempfile::tempdir().unwrap();
        let options = options(home.path());
        let remember = |server: &LocalServer| {
            let found = remember_local(&options, server).unwrap();
            found.map(|found| (found.name, found.is_current))
        };
        let named = |name: &str, is_current| Some((name.to_owned(), is_current));
        assert_eq!(remember(&server("http://a:1", None, "/a")), None, "nothing to keep");
        assert!(!home.path().join("slipway").exists(), "nor anything written");
        assert_eq!(remember(&server("http://a:1", Some("ka"), "/a")), named("local", true));
        assert_eq!(remember(&server("http://b:1", Some("kb"), "/b")), named("local-2", false));
        // A reset, and a later start at another address.
        assert_eq!(remember(&server("http://a:1", Some("kc"), "/a")), named("local", true));
        assert_eq!(remember(&server("http://a:1", None, "/a")), None);
        assert_eq!(remember(&server("http://a:9", None, "/a")), named("local", true));
        let contexts = options.contexts_file().unwrap().read().unwrap().contexts;
        let found: Vec<_> = contexts
            .iter()
            .map(|(name, context)| (name.as_str(), context.server.as_str(), context.key.as_ref()))
            .map(|(name, server, key)| (name, server, key.unwrap().expose()))
            .collect();
        assert_eq!(found, [("local", "http://a:9", "kc"), ("local-2", "http://b:1", "kb")]);
    }
}

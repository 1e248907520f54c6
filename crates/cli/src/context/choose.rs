//! Which server and which key a command uses: flags over variables over the context over
//! the server of this machine without a key.
//!
//! A context that a flag names wins over variables, which may be left over from something
//! else. The key of a context goes to the server of that context and to no other.

use std::path::PathBuf;

use slipway_core::nearest::nearest;
use slipway_core::secret::Secret;

use super::file::{Context, Contexts, ContextsFile, fault};
use crate::arguments::ClientOptions;
use crate::error::Error;
use crate::exit::Exit;

/// Where `slipway up` listens if nobody says otherwise.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:7700";

/// What a command connects with.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) server: String,
    pub(crate) key: Option<Secret>,
    pub(crate) ca_file: Option<PathBuf>,
    /// The project of resources if a command names none.
    pub(crate) project: Option<String>,
    /// The context that any of it is from.
    pub(crate) context: Option<String>,
}

type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl ClientOptions {
    /// The connection of this process.
    pub(crate) fn connection(&self) -> Result<Connection, Error> {
        self.choose(&|name| std::env::var(name).ok())
    }

    /// What is left if no key can be read: the server that was named, or the usual one.
    pub(crate) fn without_key(&self) -> Connection {
        let server = self.server.clone().unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let ca_file = self.ca_file.clone();
        Connection { server, key: None, ca_file, project: None, context: None }
    }

    pub(crate) fn contexts_file(&self) -> Result<ContextsFile, Error> {
        self.locate(&|name| std::env::var(name).ok()).ok_or_else(no_folder)
    }

    fn locate(&self, environment: Environment<'_>) -> Option<ContextsFile> {
        ContextsFile::locate(self.config_home.as_deref(), environment)
    }

    fn choose(&self, environment: Environment<'_>) -> Result<Connection, Error> {
        let named = self.context.as_deref().filter(|name| !name.is_empty());
        let by_flag = named.is_some() && environment("SLIPWAY_CONTEXT").as_deref() != named;
        // clap has put a variable where no flag is.
        let counts = |variable: &str, value: &str| {
            let is_variable = environment(variable).as_deref() == Some(value);
            !value.is_empty() && (!by_flag || !is_variable)
        };
        let path = |path: &PathBuf, variable: &str| {
            path.to_str().is_none_or(|path| counts(variable, path))
        };
        let given = Self {
            server: self.server.clone().filter(|server| counts("SLIPWAY_SERVER", server)),
            key: self.key.clone().filter(|key| counts("SLIPWAY_KEY", key.expose())),
            key_file: self.key_file.clone().filter(|file| path(file, "SLIPWAY_KEY_FILE")),
            ca_file: self.ca_file.clone().filter(|file| path(file, "SLIPWAY_CA_FILE")),
            ..self.clone()
        };
        let key = given.secret_key()?;
        let complete = given.server.is_some() && key.is_some();
        let context = match (named, complete) {
            (None, true) => None,
            _ => self.chosen(named, environment)?,
        };
        let (server, ca_file) = (given.server, given.ca_file);
        let Some((name, context)) = context.filter(|(_, context)| is_same(&server, context)) else {
            let server = server.unwrap_or_else(|| DEFAULT_SERVER.to_owned());
            return Ok(Connection { server, key, ca_file, project: None, context: None });
        };
        Ok(Connection {
            server: server.unwrap_or(context.server),
            key: key.or(context.key),
            ca_file: ca_file.or(context.ca_file),
            project: context.project,
            context: Some(name),
        })
    }

    /// The context of this name, or the current one.
    fn chosen(
        &self,
        named: Option<&str>,
        environment: Environment<'_>,
    ) -> Result<Option<(String, Context)>, Error> {
        let Some(file) = self.locate(environment) else {
            return if named.is_some() { Err(no_folder()) } else { Ok(None) };
        };
        let contexts = file.read()?;
        let Some(name) = named.map(str::to_owned).or_else(|| contexts.current.clone()) else {
            return Ok(None);
        };
        let context = contexts.get(&name)?.clone();
        Ok(Some((name, context)))
    }
}

/// Whether the context is about the server that was given, if one was.
fn is_same(server: &Option<String>, context: &Context) -> bool {
    let plain = |server: &str| server.trim_end_matches('/').to_owned();
    server.as_deref().is_none_or(|server| plain(server) == plain(&context.server))
}

fn no_folder() -> Error {
    let problem = "there is no folder for contexts: neither SLIPWAY_CONFIG_HOME nor \
                   XDG_CONFIG_HOME nor HOME is set";
    fault("contexts_unreadable", problem.to_owned())
}

impl Contexts {
    pub(crate) fn get(&self, name: &str) -> Result<&Context, Error> {
        self.contexts.get(name).ok_or_else(|| {
            let meant = match nearest(name, self.contexts.keys().map(String::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "`slipway context list` lists them".to_owned(),
            };
            let message = format!("there is no context `{name}`; {meant}");
            Error::Faults {
                code: "context_not_found",
                message,
                errors: Vec::new(),
                exit: Exit::NotFound,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: ClientOptions,
    }

    const FILE: &str = "\
current: dev
contexts:
  dev: {server: 'http://dev:1', key: slipway_dev_x, ca_file: /dev.pem, project: shop}
  prod: {server: 'https://prod', key: slipway_prod_x}
";

    /// Server, key, authorities, project and context for flags and variables.
    fn chosen(flags: &str, variables: &[(&str, &str)]) -> Result<String, Error> {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("slipway");
        let file = ContextsFile::locate(Some(&folder), &|_| None).unwrap();
        file.change(|all| {
            *all = serde_yaml_ng::from_str(FILE).unwrap();
            Ok(())
        })
        .unwrap();
        let words = std::iter::once("slipway").chain(flags.split_whitespace());
        let mut options = Line::try_parse_from(words).unwrap().options;
        options.config_home = Some(folder);
        let value = |name: &str| {
            variables.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned())
        };
        // As clap does, which reads the variables of the process.
        options.server = options.server.or_else(|| value("SLIPWAY_SERVER"));
        options.key = options.key.or_else(|| value("SLIPWAY_KEY").map(Secret::new));
        options.context = options.context.or_else(|| value("SLIPWAY_CONTEXT"));
        let Connection { server, key, ca_file, project, context } = options.choose(&value)?;
        let key = key.as_ref().map_or("-", |key| key.expose()).to_owned();
        let ca_file = ca_file.map_or("-".to_owned(), |path| path.display().to_string());
        let [project, context] = [project, context].map(|text| text.unwrap_or("-".to_owned()));
        Ok(format!("{server} {key} {ca_file} {project} {context}"))
    }

    #[test]
    fn flags_win_over_variables_and_those_over_the_context() {
        let dev = "http://dev:1 slipway_dev_x /dev.pem shop dev";
        let prod = "https://prod slipway_prod_x - - prod";
        let leftover = [("SLIPWAY_SERVER", "http://old"), ("SLIPWAY_KEY", "old")];
        for (flags, variables, expected) in [
            ("", &[][..], dev),
            ("--context prod", &[], prod),
            ("", &[("SLIPWAY_CONTEXT", "prod")], prod),
            ("--context dev", &[("SLIPWAY_CONTEXT", "prod")], dev),
            // One that is set to nothing is not set.
            ("", &[("SLIPWAY_CONTEXT", "")], dev),
            ("", &leftover, "http://old old - - -"),
            ("--context prod", &leftover, prod),
            ("--context prod --key k", &leftover, "https://prod k - - prod"),
            ("--server http://x --key k", &[], "http://x k - - -"),
            ("--key k", &[], "http://dev:1 k /dev.pem shop dev"),
            ("--server http://dev:1/", &[], "http://dev:1/ slipway_dev_x /dev.pem shop dev"),
            // The key of a context is for its server alone.
            ("--server http://x", &[], "http://x - - - -"),
            ("--server http://x --context prod", &[], "http://x - - - -"),
            ("", &leftover[..1], "http://old - - - -"),
        ] {
            assert_eq!(chosen(flags, variables).unwrap(), expected, "{flags:?} {variables:?}");
        }
        let error = chosen("--context prdo", &[]).unwrap_err();
        assert_eq!(error.exit(), Exit::NotFound);
        assert!(error.to_string().contains("did you mean `prod`?"), "{error}");
    }

    #[test]
    fn without_a_home_there_is_no_context() {
        let options = |line: &str| Line::try_parse_from(line.split(' ')).unwrap().options;
        let found = options("slipway --key k").choose(&|_| None).unwrap();
        assert_eq!((found.server.as_str(), found.context), (DEFAULT_SERVER, None));
        let error = options("slipway --context dev").choose(&|_| None).unwrap_err();
        assert!(error.to_string().contains("HOME"), "{error}");
    }
}

//! The main task of the agent: take the lock, boot from the document, enrol,
//! serve, and end when there is a reason to.

use std::convert::Infallible;
use std::path::PathBuf;

use tokio::signal::unix::{SignalKind, signal};

use super::client::Client;
use super::config::Config;
use super::contact::Contact;
use super::directory::{Directory, lock};
use super::enrol::enrol;
use super::error::Error;
use super::identity::Identity;
use super::machine::Evidence;
use super::serve::serve;
use super::status::{State, StatusFile};
use super::user_data::UserData;

#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// The node directory; its files are listed in the docs of this module.
    pub directory: PathBuf,
}

/// Why an agent ended in good order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A signal, or the future given to [`run_until`], asked for it.
    Told,
    /// The directory was removed, or another one has its name.
    DirectoryGone,
    /// The server did not answer for the configured time.
    Orphaned,
}

/// Runs the agent of a directory as the main task of this process, until it
/// receives SIGTERM or SIGINT or ends for another reason, see [`Ending`].
pub async fn run(options: NodeOptions) -> Result<(), Error> {
    // A session of its own: the node outlives the terminal and the server that
    // started it. The kernel refuses it for the leader of a process group, which
    // is not in the group of its starter anyway.
    let _ = rustix::process::setsid();
    // Before the lock: a process that sees the lock may send a signal at once.
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
    let told = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    run_until(options, told).await.map(|_| ())
}

/// The agent without a session and signal handlers. A process may run several
/// agents, but not two for one directory: the lock excludes other processes, not
/// other tasks.
pub async fn run_until(
    options: NodeOptions,
    told: impl Future<Output = ()>,
) -> Result<Ending, Error> {
    let directory = Directory::open(&options.directory)?;
    let _lock = lock(&directory)?;
    let evidence = serde_json::json!(Evidence::collect()?).to_string();
    directory.write_atomically(&directory.evidence(), evidence.as_bytes(), 0o644)?;

    let contact = Contact::new();
    let ending = tokio::select! {
        biased;
        () = told => Ok(Ending::Told),
        () = directory.gone() => Ok(Ending::DirectoryGone),
        () = contact.lost() => Ok(Ending::Orphaned),
        result = live(&directory, &contact) => match result {
            Ok(never) => match never {},
            // Errors of files whose directory is gone are no failure.
            Err(_) if !directory.is_there() => Ok(Ending::DirectoryGone),
            Err(error) => Err(error),
        },
    };
    match &ending {
        Ok(ending) => {
            tracing::info!(?ending, directory = %directory.path().display(), "the agent ends");
        }
        Err(error) => tracing::error!(%error, "the agent cannot go on"),
    }
    ending
}

async fn live(directory: &Directory, contact: &Contact) -> Result<Infallible, Error> {
    let mut status = StatusFile::new(directory);
    loop {
        status.publish(State::Booting, "reading the user-data document");
        let (document, config, enrolled) = match boot(directory) {
            Ok(Some(booted)) => booted,
            Ok(None) => {
                status.publish(State::Refused, "there is no user-data document to enrol with");
                UserData::appeared(directory).await;
                continue;
            }
            Err(error) => {
                status.publish(State::Booting, error.to_string());
                return Err(error);
            }
        };
        contact.allow_silence_of(config.orphan_after);
        let client = Client::new(&config)?;
        let identity = match enrolled {
            Some(identity) => Some(identity),
            None => enrol(directory, &document, &config, &client, contact, &mut status).await?,
        };
        if let Some(identity) = identity {
            // Drops the token, which is spent.
            drop(document);
            return serve(directory, &config, &client, contact, &mut status, identity).await;
        }
    }
}

fn boot(directory: &Directory) -> Result<Option<(UserData, Config, Option<Identity>)>, Error> {
    let Some(document) = UserData::read(directory)? else {
        return Ok(None);
    };
    let identity = Identity::load(directory)?;
    document.install(directory, identity.is_some())?;
    let config = Config::read(directory)?;
    Ok(Some((document, config, identity)))
}

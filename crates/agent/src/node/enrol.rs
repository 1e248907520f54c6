//! Enrols: exchanges a bootstrap token for an identity.
//!
//! *Expected flow:* write the key pair to disk → register → write the identity to
//! disk → remove the token.
//! *Guarantees:* one key pair for the life of the directory; after a lost answer
//! the agent registers again with the same key; after a refusal it waits until the
//! document changes, because the same token would get the same refusal.
//! *Assumes* that the server accepts a consumed token again from the same public
//! key as long as the node has not sent a heartbeat.

use data_encoding::HEXLOWER;
use slipway_wire::nodes::plexd::{CAPABILITY_DRAIN, Capabilities, RegisterReply, RegisterRequest};

use super::client::{Client, Failure};
use super::config::Config;
use super::contact::Contact;
use super::directory::Directory;
use super::error::Error;
use super::identity::{Identity, public_key};
use super::machine::BootMoment;
use super::status::{State, StatusFile};
use super::user_data::{UserData, token_forget, token_read};
use crate::retry_delay::RetryDelay;
use crate::secret::StoredSecret;

/// `None` if the document changed meanwhile and has to be read again.
pub(crate) async fn enrol(
    directory: &Directory,
    document: &UserData,
    config: &Config,
    client: &Client,
    contact: &Contact,
    status: &mut StatusFile<'_>,
) -> Result<Option<Identity>, Error> {
    let Some(token) = token_read(directory)? else {
        status.publish(State::Refused, "the user-data document carries no bootstrap token");
        document.changed(directory).await;
        return Ok(None);
    };
    let public_key = public_key(directory)?;
    status.publish(State::Enrolling, format!("registering with {}", config.api_url));
    let mut delays = RetryDelay::default();
    loop {
        let request = request(config, &token, &public_key)?;
        match client.register(&token, &request).await {
            Ok(reply) => {
                let identity = enrolled(reply, directory, contact)?;
                token_forget(directory)?;
                return Ok(Some(identity));
            }
            Err(failure @ Failure::Refused { .. }) => {
                status.publish(State::Refused, failure.to_string());
                document.changed(directory).await;
                return Ok(None);
            }
            Err(failure) => {
                status.publish(State::Enrolling, failure.to_string());
                let delay = delays.next(failure.retry_after())?;
                tokio::select! {
                    () = tokio::time::sleep(delay) => {}
                    () = document.changed(directory) => return Ok(None),
                }
            }
        }
    }
}

/// Enrols a node again whose key is not accepted: a registry that was restored to
/// an earlier state does not know the node any more, and its token may be unused
/// there, or replaced by a new one in the document. The registry decides: it
/// refuses a node that was removed on purpose, because the token is spent or the
/// resource is being deleted. `None` if the node did not enrol.
pub(crate) async fn again(
    directory: &Directory,
    config: &Config,
    client: &Client,
    contact: &Contact,
) -> Result<Option<Identity>, Error> {
    let Some(document) = UserData::read(directory)? else { return Ok(None) };
    // The key is also refused if the substrate was lost and created anew: then
    // the directory of this name, with its token, belongs to another agent.
    if !directory.is_there() {
        return Ok(None);
    }
    document.install(directory, false)?;
    let Some(token) = token_read(directory)? else { return Ok(None) };
    let request = request(config, &token, &public_key(directory)?)?;
    if !directory.is_there() {
        return Ok(None);
    }
    let identity = match client.register(&token, &request).await {
        Ok(reply) => {
            let identity = enrolled(reply, directory, contact)?;
            tracing::info!(
                node_id = identity.node_id,
                "enrolled again with a server that did not know this node"
            );
            Some(identity)
        }
        Err(failure) => {
            tracing::debug!(%failure, "not enrolled again");
            None
        }
    };
    token_forget(directory)?;
    Ok(identity)
}

/// Stores the identity that the server gave the node.
fn enrolled(
    reply: RegisterReply,
    directory: &Directory,
    contact: &Contact,
) -> Result<Identity, Error> {
    contact.made();
    let identity = Identity {
        node_id: reply.node_id,
        node_secret_key: StoredSecret::new(reply.node_secret_key),
        enrolled_at: BootMoment::now()?,
    };
    identity.store(directory)?;
    Ok(identity)
}

/// The body for both generations of the protocol.
fn request(
    config: &Config,
    token: &StoredSecret,
    public_key: &str,
) -> Result<RegisterRequest, Error> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|error| Error::Random(error.to_string()))?;
    Ok(RegisterRequest {
        token: Some(token.expose().to_owned()),
        bootstrap_token: Some(token.expose().to_owned()),
        public_key: public_key.to_owned(),
        hostname: config.hostname.clone(),
        project_id: config.project_id.clone(),
        resource_handle: config.resource_handle.clone(),
        nonce: Some(HEXLOWER.encode(&nonce)),
        requested_resource_id: None,
        capabilities: Some(Capabilities::Names(vec![CAPABILITY_DRAIN.to_owned()])),
        metadata: None,
    })
}

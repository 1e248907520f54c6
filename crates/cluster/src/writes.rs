//! Conditional writes: server-side apply and delete, each bound to what was read.
//!
//! A request that was given up (a timeout, a cut connection, a killed process)
//! may still be carried out, seconds later and after a newer one. So a write
//! names what it is based on, and the server refuses it if that has changed:
//!
//! | write | condition | refused with a conflict if |
//! |---|---|---|
//! | [`Connection::create_applied`] | there is no such object | anything is there |
//! | [`Connection::update`] | uid and version that were read | it was written since, is gone, or is another object |
//! | [`Connection::apply_on`] | one of the two above, by what was read | as above |
//! | [`Connection::set_finalizers`] | uid and version that were read | it was written since, or is another object |
//! | [`Connection::delete`] | uid | it is another object |
//! | [`Connection::delete_unchanged`] | uid and version that were read | it was written since, or is another object |
//!
//! Not used, because each was tried and does harm:
//! * an apply with a version and without a uid: it re-creates an object that
//!   vanished since the read;
//! * POST for what is applied later: Kubernetes records it under another
//!   operation of the same manager, so that it looks like drift, conflicts with
//!   our next apply, and keeps fields that a later apply drops;
//! * an apply that changes nothing, to fend off a late delete: the version stays
//!   the same, and the delete would still land.

use kube::api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::error::{self, Error, Reason};
use crate::objects::ObjectRef;

/// No object has this version: the store counts from one, and the first write
/// gets two. With it an apply can only create.
const NO_VERSION: &str = "1";

/// What API servers before 1.24 say about [`NO_VERSION`] for the few kinds that do not go
/// through their generic store, such as Service. Those are applied without a condition,
/// since there is none that they take: what appears meanwhile is merged into, unless
/// somebody else owns a field of it, and a request that was given up may land late.
const NO_CONDITIONS: &str = "resourceVersion should not be set on objects to be created";

/// An object as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub uid: String,
    pub resource_version: String,
}

impl Version {
    /// `None` if the metadata lacks what every server sends.
    pub fn of(metadata: &ObjectMeta) -> Option<Self> {
        let (uid, resource_version) = (metadata.uid.clone()?, metadata.resource_version.clone()?);
        Some(Self { uid, resource_version })
    }

    fn preconditions(&self) -> Preconditions {
        Preconditions {
            uid: Some(self.uid.clone()),
            resource_version: Some(self.resource_version.clone()),
        }
    }
}

/// How an apply goes.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    pub field_manager: &'a str,
    /// Whether it takes our fields over from other managers, or is refused then.
    pub takes_over: bool,
    /// Whether the server only says what it would answer.
    pub dry_run: bool,
}

/// The answer to an update.
#[derive(Debug, Clone)]
pub struct Updated {
    pub object: DynamicObject,
    /// The fields that other managers owned and the update took over.
    pub taken_over: Vec<String>,
}

impl Connection {
    /// Server-side apply that creates the object, or fails with a conflict if
    /// anything is there.
    pub async fn create_applied(
        &self,
        object: &ObjectRef,
        body: &Value,
        field_manager: &str,
    ) -> Result<DynamicObject, Error> {
        let terms = Terms { field_manager, takes_over: false, dry_run: false };
        self.apply_on(object, None, body, terms).await.map(|applied| applied.object)
    }

    /// Server-side apply on the object as it was read. Takes our fields over
    /// from other managers; the second request has the same conditions.
    pub async fn update(
        &self,
        object: &ObjectRef,
        read: &Version,
        body: &Value,
        field_manager: &str,
    ) -> Result<Updated, Error> {
        let terms = Terms { field_manager, takes_over: true, dry_run: false };
        self.apply_on(object, Some(read), body, terms).await
    }

    /// Server-side apply on what was read: an object, or that there is none.
    pub async fn apply_on(
        &self,
        object: &ObjectRef,
        read: Option<&Version>,
        body: &Value,
        terms: Terms<'_>,
    ) -> Result<Updated, Error> {
        let mut body = body.clone();
        match read {
            Some(read) => {
                body["metadata"]["uid"] = json!(read.uid);
                body["metadata"]["resourceVersion"] = json!(read.resource_version);
            }
            None => {
                if let Some(metadata) = body["metadata"].as_object_mut() {
                    metadata.remove("uid");
                }
                body["metadata"]["resourceVersion"] = json!(NO_VERSION);
            }
        }
        let refused = match self.apply(object, &body, terms, false).await {
            Ok(object) => return Ok(Updated { object, taken_over: Vec::new() }),
            Err(error) if read.is_none() && error.to_string().contains(NO_CONDITIONS) => {
                if let Some(metadata) = body["metadata"].as_object_mut() {
                    metadata.remove("resourceVersion");
                }
                let object = self.apply(object, &body, terms, false).await?;
                return Ok(Updated { object, taken_over: Vec::new() });
            }
            Err(error) => error,
        };
        let Reason::FieldConflict(fields) = refused.reason() else { return Err(refused) };
        if !terms.takes_over {
            return Err(refused);
        }
        let taken_over = fields.clone();
        let object = self.apply(object, &body, terms, true).await?;
        Ok(Updated { object, taken_over })
    }

    async fn apply(
        &self,
        object: &ObjectRef,
        body: &Value,
        terms: Terms<'_>,
        force: bool,
    ) -> Result<DynamicObject, Error> {
        let mut parameters = PatchParams::apply(terms.field_manager);
        (parameters.force, parameters.dry_run) = (force, terms.dry_run);
        let api = self.api_of(object).await?;
        let answer = error::within(api.patch(&object.name, &parameters, &Patch::Apply(body))).await;
        let verb = if terms.dry_run { "try" } else { "apply" };
        self.answer(&format!("{verb} {object}"), answer).await
    }

    /// Replaces the finalizers of the object as it was read. `None` if it is
    /// gone.
    pub async fn set_finalizers(
        &self,
        object: &ObjectRef,
        read: &Version,
        finalizers: &[&str],
        field_manager: &str,
    ) -> Result<Option<DynamicObject>, Error> {
        let body = json!({ "metadata": { "finalizers": finalizers } });
        self.merge("release", object, read, body, field_manager).await
    }

    /// Merges these fields into the object as it was read. `None` if it is gone.
    pub async fn merge(
        &self,
        verb: &str,
        object: &ObjectRef,
        read: &Version,
        mut body: Value,
        field_manager: &str,
    ) -> Result<Option<DynamicObject>, Error> {
        body["metadata"]["uid"] = json!(read.uid);
        body["metadata"]["resourceVersion"] = json!(read.resource_version);
        let manager = Some(field_manager.to_owned());
        let parameters = PatchParams { field_manager: manager, ..PatchParams::default() };
        let api = self.api_of(object).await?;
        let answer = error::within(api.patch(&object.name, &parameters, &Patch::Merge(body))).await;
        self.unless_gone(verb, object, answer).await
    }

    /// Deletes the object with this uid, whatever was written to it since it was
    /// read: for a deletion that is never taken back. Returns the object that is
    /// left while finalizers keep it, `None` if it is gone.
    pub async fn delete(
        &self,
        object: &ObjectRef,
        uid: &str,
    ) -> Result<Option<DynamicObject>, Error> {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        self.delete_if(object, preconditions).await
    }

    /// Deletes the object as it was read: for a deletion that may be taken back.
    /// A write that changes the object fends it off, however late it arrives.
    pub async fn delete_unchanged(
        &self,
        object: &ObjectRef,
        read: &Version,
    ) -> Result<Option<DynamicObject>, Error> {
        self.delete_if(object, read.preconditions()).await
    }

    async fn delete_if(
        &self,
        object: &ObjectRef,
        preconditions: Preconditions,
    ) -> Result<Option<DynamicObject>, Error> {
        let parameters = DeleteParams::background().preconditions(preconditions);
        let api = self.api_of(object).await?;
        let answer = error::within(api.delete(&object.name, &parameters)).await;
        let answer = self.unless_gone("delete", object, answer).await?;
        Ok(answer.and_then(|answer| answer.left()))
    }
}

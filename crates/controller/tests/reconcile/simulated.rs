//! A substrate in memory that does what it is told, or what a test tells it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_app::ports::substrate::{Address, Error, Substrate};
use slipway_core::blueprint::Engine;
use slipway_core::observation::{CompositeReport, LiveComposite};
use slipway_render::{RenderedComposite, composite};

/// One composite.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) uid: String,
    pub(crate) object: Value,
    pub(crate) ready: bool,
    pub(crate) failure: Option<String>,
    pub(crate) terminating: bool,
}

/// How the substrate behaves from now on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behaviour {
    /// Nothing can be read.
    pub(crate) unreadable: bool,
    /// Applies fail before they do anything.
    pub(crate) apply_fails: bool,
    /// Deletes fail before they do anything.
    pub(crate) delete_fails: bool,
    /// Every action is done twice.
    pub(crate) twice: bool,
    /// Objects come up without being asked again.
    pub(crate) comes_up: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Simulated {
    objects: Mutex<BTreeMap<String, Object>>,
    behaviour: Mutex<Behaviour>,
    journal: Mutex<Vec<String>>,
}

impl Simulated {
    pub(crate) fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    pub(crate) fn object(&self, name: &str) -> Option<Object> {
        self.objects.lock().unwrap().get(name).cloned()
    }

    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Object)) {
        change(self.objects.lock().unwrap().get_mut(name).expect("the object exists"));
    }

    /// Somebody deletes it behind our back.
    pub(crate) fn remove(&self, name: &str) {
        self.objects.lock().unwrap().remove(name).expect("the object existed");
    }

    /// What was done, in order: `apply <name>` and `delete <name>`.
    pub(crate) fn journal(&self) -> Vec<String> {
        self.journal.lock().unwrap().clone()
    }

    fn apply_once(&self, rendered: &RenderedComposite) {
        let comes_up = self.behaviour.lock().unwrap().comes_up;
        let mut objects = self.objects.lock().unwrap();
        let count = objects.len();
        let object = objects.entry(rendered.name().to_owned()).or_insert_with(|| Object {
            uid: format!("uid-{count}"),
            object: Value::Null,
            ready: comes_up,
            failure: None,
            terminating: false,
        });
        object.object = rendered.expose_object().clone();
        self.journal.lock().unwrap().push(format!("apply {}", rendered.name()));
    }

    fn delete_once(&self, address: &Address, uid: &str) -> Result<(), Error> {
        let mut objects = self.objects.lock().unwrap();
        match objects.get(&address.name) {
            None => Ok(()),
            Some(object) if object.uid != uid => Err(Error::Conflict("another object".to_owned())),
            Some(_) => {
                objects.remove(&address.name);
                self.journal.lock().unwrap().push(format!("delete {}", address.name));
                Ok(())
            }
        }
    }
}

#[async_trait]
impl Substrate for Simulated {
    fn engine(&self) -> Engine {
        Engine::Local
    }

    async fn identity(&self) -> Result<String, Error> {
        Ok("simulated".to_owned())
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        let unreadable = self.behaviour.lock().unwrap().unreadable;
        addresses
            .iter()
            .map(|address| match self.object(&address.name) {
                _ if unreadable => {
                    CompositeReport::Unknown { reason: "connection refused".to_owned() }
                }
                None => CompositeReport::Absent,
                Some(found) => CompositeReport::Present(Box::new(LiveComposite {
                    uid: found.uid,
                    ready: found.ready,
                    failure: found.failure,
                    terminating: found.terminating,
                    owned_hash: composite::owned_hash(&found.object),
                    carried: composite::carried(&found.object),
                    injected: composite::injected(&found.object),
                    evidence: json!({ "simulated": true }),
                })),
            })
            .collect()
    }

    async fn apply(&self, rendered: &RenderedComposite) -> Result<(), Error> {
        let behaviour = *self.behaviour.lock().unwrap();
        if behaviour.apply_fails {
            return Err(Error::Failed("no room".to_owned()));
        }
        self.apply_once(rendered);
        if behaviour.twice {
            self.apply_once(rendered);
        }
        Ok(())
    }

    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error> {
        let behaviour = *self.behaviour.lock().unwrap();
        if behaviour.delete_fails {
            return Err(Error::Failed("forbidden".to_owned()));
        }
        self.delete_once(address, uid)?;
        if behaviour.twice {
            self.delete_once(address, uid)?;
        }
        Ok(())
    }
}

//! Fleet: generators, stacks, templates, agents and targets. People give names, which are
//! unique within a project; [`find`] turns them into the ids of requests.

pub(crate) mod find;

pub(crate) mod delete;
pub(crate) mod manifests;
pub(crate) mod parameters;
pub(crate) mod tags;

pub(crate) mod agent;
pub(crate) mod generator;
pub(crate) mod stack;
pub(crate) mod strategy;
pub(crate) mod target;
pub(crate) mod template;

pub(crate) mod demo;

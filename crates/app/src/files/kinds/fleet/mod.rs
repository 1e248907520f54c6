//! Generators, templates, stacks and agents. Their names are unique within a project. Labels,
//! registrations and targets are rows of their own, so an object that has some is written by
//! several transactions; an apply that ends between two of them leaves a difference, which the
//! next one finds.

mod agent;
mod generator;
mod sets;
mod stack;
mod template;

pub(in crate::files) use agent::Agents;
pub(in crate::files) use generator::Generators;
pub(in crate::files) use stack::Stacks;
pub(in crate::files) use template::Templates;

use super::rows;

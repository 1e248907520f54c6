//! Fleet, in the shapes of its protocol: existing clients and agents can be pointed at this
//! server. Lists are whole arrays unless a page is asked for, what nobody knows in a body is
//! ignored, and a deletion is answered with 204 and the `Location` of its record.

mod agents;
mod audit;
mod deleting;
mod explain;
mod generators;
mod links;
mod lists;
mod objects;
mod offers;
mod outside;
mod overview;
mod principals;
mod prunes;
mod put;
mod reports;
mod rows;
mod stacks;
mod tags;
mod templates;

pub(crate) use offers::WAIT_MAX;
pub(crate) use rows::rows;

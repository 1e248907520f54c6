//! The rows of our own API, `/api/v1`. A [`Route`] says all there is to say of
//! one route; the [`table`] concatenates the rows of the rooms. The router, the
//! [`guard`] and the API description are made from it, and tests walk it: a
//! route that is not in the table is not served.

mod guard;
mod row;
mod table;

pub(crate) use guard::Admitted;
pub use row::Route;
pub(crate) use row::{Answer, Document, Schemas, delete, get, patch, post, put};
pub use table::TABLE;
pub(crate) use table::router;

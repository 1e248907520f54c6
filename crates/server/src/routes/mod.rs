//! The rows of our own API, `/api/v1`. A [`Route`] describes one route
//! completely; the [`table`] concatenates the rows of the domain modules. The
//! router, the [`guard`] and the API description are built from the table, and
//! tests iterate over it: a route outside the table is not served.

mod guard;
mod row;
mod table;

pub(crate) use guard::Admitted;
pub use row::Route;
pub(crate) use row::{Answer, Document, Schemas, delete, get, patch, post, put};
pub use table::TABLE;
pub(crate) use table::router;

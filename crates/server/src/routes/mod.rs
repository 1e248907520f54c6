//! The rows of our own API, `/api/v1`. A [`Route`] describes one route
//! completely; [`crate::router`] concatenates the rows of the domain modules. The
//! router, the [`guard`](mod@guard) and the API description are built from that
//! table, and tests iterate over it: a route outside the table is not served.

mod guard;
mod row;

pub(crate) use guard::{Admitted, Guard, guard};
pub use row::Route;
pub(crate) use row::{Answer, Document, Schemas, delete, get, patch, post, put};

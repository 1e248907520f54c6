//! Pure rendering: what is declared becomes the objects that an engine
//! applies. No I/O and no clock; the same input gives the same bytes. Secrets
//! pass through here on their way into an object and must not show up in any
//! `Debug` or error text.

pub mod canonical;
pub mod cloud_init;
pub mod composite;
pub mod local_node;

pub use composite::RenderedComposite;

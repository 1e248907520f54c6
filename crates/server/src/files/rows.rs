//! The rows of documents.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::files::{
    AppliedDocument, Apply, ApplySource, DeclaredObject, Document, FileFault, PutFaults,
    ReadDocuments,
};

use super::{apply, faults, objects};
use crate::routes::{Route, delete, get, post, put};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        post  ("/apply",                          FilesApply,   apply::apply,       "Make objects agree with documents; one answer for each document, in their order")
            .body::<Apply>().all::<AppliedDocument>(),
        post  ("/documents",                      DocumentRead, objects::documents, "Show objects as documents that can be applied")
            .body::<ReadDocuments>().all::<Document>().refuses(404),
        get   ("/apply-sources",                  SourceRead,   objects::sources,   "List the sources that declared something").page::<ApplySource>(),
        get   ("/apply-sources/{source}/objects", SourceRead,   objects::declared,  "List what a source declared and what exists").page::<DeclaredObject>(),
        get   ("/apply-sources/{source}/faults",  SourceRead,   faults::list,       "List what the last apply of a source could not apply").all::<FileFault>(),
        put   ("/apply-sources/{source}/faults",  FilesApply,   faults::put,        "Record what an apply could not apply, instead of what is recorded").body::<PutFaults>().nothing(),
        delete("/apply-sources/{source}/objects", FilesApply,   objects::release,   "End what a source declares of an object: its fields go back to their defaults, the object stays")
            .nothing().query(&["kind", "project", "cloud", "name"]),
    ]
}

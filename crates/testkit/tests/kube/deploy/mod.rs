//! Checks `deploy/` against a real Kubernetes API and against what it refers
//! to. `cargo xtask test`, which has Helm, checks that the manifests are those
//! of the chart.

mod documents;
mod manifests;
mod references;
mod rights;

//! What `deploy/` ships, held against a real Kubernetes API and against what it
//! speaks of. That the manifests are those of the chart is checked by `cargo
//! xtask test`, which has Helm.

mod documents;
mod manifests;
mod references;
mod rights;

//! The allowed dependencies between crates. Arrows point inward, adapters never
//! use each other, and only the binary uses everything.
//!
//! Only what ships counts: `[dependencies]` and `[build-dependencies]`, also
//! those for one target. `[dev-dependencies]` are free.

use super::tree::Tree;

/// Which of our crates a crate may use.
enum MayUse {
    Only(&'static [&'static str]),
    /// Everything that ships.
    AllThatShips,
    Anything,
}

use MayUse::{AllThatShips, Anything, Only};

/// The table, by folder under `crates/`.
const EDGES: [(&str, MayUse); 20] = [
    ("core", Only(&[])),
    ("render", Only(&["core"])),
    ("app", Only(&["core", "render"])),
    ("wire", Only(&[])),
    ("durable", Only(&[])),
    ("cluster", Only(&[])),
    ("store", Only(&["app", "core", "durable", "tenants"])),
    ("tenants", Only(&["durable"])),
    ("substrate", Only(&["app", "cluster", "core", "render"])),
    ("controller", Only(&["app", "core", "durable", "tenants"])),
    ("server", Only(&["app", "core", "wire"])),
    ("agent", Only(&["cluster", "core", "wire"])),
    ("cli", Only(&["core", "wire"])),
    ("nickel", Only(&[])),
    ("slipway", AllThatShips),
    ("testkit", Only(&[])),
    ("standin", Only(&["agent", "wire"])),
    ("bench", Anything),
    ("soak", Only(&["testkit"])),
    ("xtask", Anything),
];

/// Crates that must not ship, whatever depends on them.
const NEVER_SHIPS: [&str; 5] = ["bench", "soak", "standin", "testkit", "xtask"];

/// Third-party crates that would bring I/O, a clock or randomness where
/// decisions are made, or an adapter where only ports belong.
const FORBIDDEN: [(&str, &[&str]); 2] = [
    ("core", &["axum", "getrandom", "kube", "rand", "reqwest", "sqlx", "tokio"]),
    ("app", &["axum", "kube", "reqwest", "sqlx"]),
];

/// Edges that are missing in the table, and forbidden third-party crates.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for (folder, path, text) in tree.manifests() {
        let Some((_, may_use)) = EDGES.iter().find(|(name, _)| *name == folder) else {
            wrong.push(format!(
                "{path}: the crate `{folder}` is not in the table of who may use whom; \
                 add it there and to the code map"
            ));
            continue;
        };
        let manifest = match text.parse::<toml::Table>() {
            Ok(manifest) => manifest,
            Err(error) => {
                wrong.push(format!("{path}: not readable: {}", error.message()));
                continue;
            }
        };
        let forbidden =
            FORBIDDEN.iter().find(|(name, _)| *name == folder).map(|(_, crates)| *crates);
        for used in shipped_dependencies(&manifest) {
            if let Some(ours) = folder_of_package(&used) {
                let allowed = match may_use {
                    Only(crates) => crates.contains(&ours),
                    AllThatShips => !NEVER_SHIPS.contains(&ours),
                    Anything => true,
                };
                if !allowed {
                    wrong.push(format!("{path}: `{folder}` must not use `{ours}`"));
                }
            } else if forbidden.is_some_and(|crates| crates.contains(&used.as_str())) {
                wrong.push(format!("{path}: `{folder}` must not depend on `{used}`"));
            }
        }
    }
    wrong
}

/// Manifests without `[lints] workspace = true`, to which no lint applies.
pub(super) fn check_lints(tree: &Tree) -> Vec<String> {
    tree.manifests()
        .filter(|(_, _, text)| {
            let manifest = text.parse::<toml::Table>().unwrap_or_default();
            manifest.get("lints").and_then(|lints| lints.get("workspace")?.as_bool()) != Some(true)
        })
        .map(|(_, path, _)| format!("{path}: add `[lints] workspace = true`"))
        .collect()
}

/// Our packages are `slipway-<folder>`, the binary's is `slipway`.
fn folder_of_package(package: &str) -> Option<&str> {
    if package == "slipway" { Some(package) } else { package.strip_prefix("slipway-") }
}

/// Package names, also where a dependency is renamed.
fn shipped_dependencies(manifest: &toml::Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let sections = std::iter::once(manifest).chain(
        targets.into_iter().flat_map(|table| table.values()).filter_map(toml::Value::as_table),
    );
    sections
        .flat_map(|section| ["dependencies", "build-dependencies"].map(|kind| section.get(kind)))
        .flatten()
        .filter_map(toml::Value::as_table)
        .flatten()
        .map(|(name, details)| {
            let package = details.get("package").and_then(toml::Value::as_str);
            package.unwrap_or(name).to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Tree, check, check_lints};

    fn check_one(folder: &str, manifest: &str) -> Vec<String> {
        check(&Tree::of(&[(&format!("crates/{folder}/Cargo.toml"), manifest)]))
    }

    #[test]
    fn edges_of_the_table_are_fine() {
        let manifest =
            "[dependencies]\nslipway-app.workspace = true\nslipway-core = {}\nsqlx = '1'";
        assert_eq!(check_one("store", manifest), Vec::<String>::new());
        assert_eq!(check_one("slipway", manifest), Vec::<String>::new());
        assert_eq!(
            check_one("xtask", "[dependencies]\nslipway-testkit = {}"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn an_edge_outside_the_table_is_found() {
        for (folder, used) in [
            ("core", "app"),
            ("controller", "render"),
            ("store", "substrate"),
            ("server", "store"),
            ("tenants", "core"),
            ("testkit", "core"),
            ("slipway", "testkit"),
        ] {
            let manifest = format!("[dependencies]\nslipway-{used}.workspace = true");
            assert_eq!(
                check_one(folder, &manifest),
                [format!("crates/{folder}/Cargo.toml: `{folder}` must not use `{used}`")]
            );
        }
    }

    #[test]
    fn an_edge_does_not_hide_behind_a_name_or_a_target() {
        for manifest in [
            "[dependencies]\nfriend = { package = 'slipway-server' }",
            "[build-dependencies]\nslipway-server = {}",
            "[target.'cfg(unix)'.dependencies]\nslipway-server = {}",
        ] {
            assert_eq!(check_one("core", manifest).len(), 1, "{manifest}");
        }
    }

    #[test]
    fn dependencies_of_tests_are_free() {
        let manifest = "[dev-dependencies]\nslipway-testkit = {}\ntokio = '1'";
        assert_eq!(check_one("core", manifest), Vec::<String>::new());
    }

    #[test]
    fn crates_that_bring_input_and_output_are_kept_out_of_the_inner_ones() {
        let manifest = "[dependencies]\ntokio = '1'\nsqlx = '1'";
        assert_eq!(check_one("core", manifest).len(), 2);
        assert_eq!(
            check_one("app", manifest),
            ["crates/app/Cargo.toml: `app` must not depend on `sqlx`"]
        );
    }

    #[test]
    fn an_unknown_crate_and_an_unreadable_manifest_are_found() {
        assert!(check_one("helpers", "")[0].contains("`helpers` is not in the table"));
        assert!(check_one("core", "[dependencies")[0].contains("not readable"));
    }

    #[test]
    fn a_crate_without_the_lints_is_found() {
        let tree = Tree::of(&[
            ("crates/core/Cargo.toml", "[lints]\nworkspace = true"),
            ("crates/app/Cargo.toml", "[package]"),
            ("crates/wire/Cargo.toml", "[lints]\nworkspace = false"),
        ]);
        let wrong = check_lints(&tree);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].starts_with("crates/app/Cargo.toml"), "{wrong:?}");
    }
}

//! Which migrations are owed: pure.

use std::collections::BTreeMap;

use super::folder::{Migration, Script, Version};
use super::target::Repair;

/// A row of a tenant's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    /// Of a seed the name of its file.
    pub(crate) version: String,
    pub(crate) file: String,
    /// `None` if another tool applied it and the folder did not have it.
    pub(crate) checksum: Option<String>,
    /// It began outside a transaction, and nobody knows whether it ended.
    pub(crate) is_unknown: bool,
}

impl Applied {
    pub(crate) fn of(version: String, script: &Script) -> Self {
        let (file, checksum) = (script.file.clone(), Some(script.checksum.clone()));
        Self { version, file, checksum, is_unknown: false }
    }

    /// From the columns version, file, checksum, and whether it is not done.
    pub(crate) fn of_row(row: (String, String, Option<String>, bool)) -> Self {
        let (version, file, checksum, is_unknown) = row;
        Self { version, file, checksum, is_unknown }
    }
}

/// A row of `flyway_schema_history`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlywayRow {
    pub(crate) version: Option<String>,
    pub(crate) kind: String,
    pub(crate) script: String,
    pub(crate) success: bool,
}

impl FlywayRow {
    /// From the columns version, type, script and success.
    pub(crate) fn of(row: (Option<String>, String, String, bool)) -> Self {
        let (version, kind, script, success) = row;
        Self { version, kind, script, success }
    }
}

/// The migrations that the ledger has not, in their order; the error names the file and what
/// to do.
///
/// A version of the ledger that the folder has not is no error: the folder may be of an older
/// release. Drift shows it.
pub(crate) fn owed<'a>(
    folder: &'a [Migration],
    ledger: &[Applied],
    allow_out_of_order: bool,
) -> Result<Vec<&'a Migration>, String> {
    let mut applied = BTreeMap::new();
    for row in ledger {
        if row.is_unknown {
            return Err(unknown(row));
        }
        let Some(version) = Version::parse(&row.version) else {
            return Err(format!("the ledger has the version `{}`, which is none", row.version));
        };
        applied.insert(version, row);
    }
    let highest = applied.keys().next_back();
    let mut owed = Vec::new();
    for migration in folder {
        let Migration { version, script } = migration;
        match applied.get(version) {
            Some(row) => {
                if row.checksum.as_ref().is_some_and(|checksum| *checksum != script.checksum) {
                    return Err(changed(row, script));
                }
            }
            None if highest.is_some_and(|highest| version < highest) && !allow_out_of_order => {
                return Err(format!(
                    "{} comes before version {}, which is applied: give it a higher version, or \
                     set allow_out_of_order",
                    script.file,
                    highest.map(ToString::to_string).unwrap_or_default()
                ));
            }
            None => owed.push(migration),
        }
    }
    Ok(owed)
}

/// The seeds that the ledger has not. A seed that was changed afterwards does not run again.
pub(crate) fn owed_seeds<'a>(folder: &'a [Script], ledger: &[Applied]) -> Vec<&'a Script> {
    folder.iter().filter(|seed| ledger.iter().all(|row| row.version != seed.file)).collect()
}

fn unknown(row: &Applied) -> String {
    format!(
        "state unknown: {} began without a transaction and nobody knows whether it ended; look \
         at the tenant, then repair version {} as applied or as not applied",
        row.file, row.version
    )
}

fn changed(row: &Applied, script: &Script) -> String {
    format!(
        "{} was changed after it was applied as version {}: restore the file and add a new \
         version, or repair the version as applied",
        script.file, row.version
    )
}

/// The version as the ledger has it, however a person writes it: `7.0` and `07` are `7`.
pub(crate) fn known_version<'a>(ledger: &'a [Applied], version: &str) -> Result<&'a str, String> {
    let wanted = Version::parse(version);
    let same = |row: &&Applied| wanted.is_some() && Version::parse(&row.version) == wanted;
    match ledger.iter().find(same) {
        Some(row) => Ok(&row.version),
        None => Err(format!("the ledger has no version {version}; nothing is to be repaired")),
    }
}

/// The row of a version after a repair; `None` removes it. The version is that of a row.
pub(crate) fn repaired(
    folder: &[Migration],
    ledger: &[Applied],
    version: &str,
    repair: Repair,
) -> Result<Option<Applied>, String> {
    let Some(row) = ledger.iter().find(|row| row.version == version) else {
        return Err(format!("the ledger has no version {version}; nothing is to be repaired"));
    };
    match repair {
        Repair::NotApplied if row.is_unknown => Ok(None),
        Repair::NotApplied => Err(format!("version {version} is applied; write a new version")),
        Repair::Applied => {
            let mut folder = folder.iter();
            let version_of_row = Version::parse(version);
            match folder.find(|migration| Some(&migration.version) == version_of_row.as_ref()) {
                Some(migration) => Ok(Some(Applied::of(version.to_owned(), &migration.script))),
                None => Ok(Some(Applied { is_unknown: false, ..row.clone() })),
            }
        }
    }
}

/// How the ledger differs from the folders: what, expected, found.
pub(crate) fn differences(
    folder: &[Migration],
    ledger: &[Applied],
    seeds: &[Script],
    seeded: &[Applied],
) -> Vec<(String, &'static str, &'static str)> {
    let mut found = Vec::new();
    for Migration { version, script } in folder {
        let row = ledger.iter().find(|row| Version::parse(&row.version).as_ref() == Some(version));
        match row {
            None => found.push((script.file.clone(), "applied", "not applied")),
            Some(row) if row.is_unknown => {
                found.push((script.file.clone(), "applied", "state unknown"));
            }
            Some(row) if row.checksum.as_ref().is_some_and(|sum| *sum != script.checksum) => {
                found.push((script.file.clone(), "as it was applied", "changed afterwards"));
            }
            Some(_) => {}
        }
    }
    for row in ledger {
        let version = Version::parse(&row.version);
        if folder.iter().all(|migration| Some(&migration.version) != version.as_ref()) {
            found.push((row.file.clone(), "in the folder", "applied, but not in the folder"));
        }
    }
    for seed in seeds {
        match seeded.iter().find(|row| row.version == seed.file) {
            None => found.push((seed.file.clone(), "seeded", "not seeded")),
            Some(row) if row.checksum.as_ref() != Some(&seed.checksum) => {
                found.push((seed.file.clone(), "as it was seeded", "changed afterwards"));
            }
            Some(_) => {}
        }
    }
    found
}

/// The rows with which our ledger takes over from Flyway's. The folder's checksums are taken
/// as they are now; a change after this is found.
///
/// A baseline stands for every version of the folder up to it. The last entry of a version
/// decides, since Flyway marks undone and deleted versions by further rows.
pub(crate) fn adopted(rows: &[FlywayRow], folder: &[Migration]) -> Result<Vec<Applied>, String> {
    let mut last: BTreeMap<Version, &FlywayRow> = BTreeMap::new();
    for row in rows {
        let Some(text) = &row.version else { continue };
        let Some(version) = Version::parse(text) else {
            return Err(format!("Flyway applied the version `{text}`, which is no number"));
        };
        if !row.success {
            return Err(format!(
                "Flyway's {} failed: finish or undo it, then run `flyway repair`",
                row.script
            ));
        }
        last.insert(version, row);
    }
    let is_gone = |row: &FlywayRow| row.kind.starts_with("UNDO") || row.kind == "DELETE";
    last.retain(|_, row| !is_gone(row));
    let baseline = last.iter().filter(|(_, row)| row.kind == "BASELINE").map(|(at, _)| at).max();
    let under = |version: &Version| baseline.is_some_and(|baseline| version <= baseline);
    let mut adopted: BTreeMap<Version, Applied> = BTreeMap::new();
    for (version, row) in &last {
        let (file, checksum) = (row.script.clone(), None);
        let row = Applied { version: version.to_string(), file, checksum, is_unknown: false };
        adopted.insert(version.clone(), row);
    }
    for Migration { version, script } in folder {
        if last.contains_key(version) || under(version) {
            adopted.insert(version.clone(), Applied::of(version.to_string(), script));
        }
    }
    Ok(adopted.into_values().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::targets::folder::ordered;

    fn mk_script(version: &str, sql: &str) -> Script {
        Script::new(format!("V{version}__x.sql"), sql.to_owned())
    }

    fn mk_folder(versions: &[&str]) -> Vec<Migration> {
        let scripts = versions.iter().map(|version| mk_script(version, version)).collect();
        ordered(scripts).expect("a folder")
    }

    fn mk_applied(version: &str, sql: &str) -> Applied {
        Applied::of(version.to_owned(), &mk_script(version, sql))
    }

    fn mk_flyway(version: Option<&str>, kind: &str, success: bool) -> FlywayRow {
        let script = format!("V{}__x.sql", version.unwrap_or("?"));
        FlywayRow { version: version.map(str::to_owned), kind: kind.to_owned(), script, success }
    }

    fn versions(owed: &[&Migration]) -> Vec<String> {
        owed.iter().map(|migration| migration.version.to_string()).collect()
    }

    #[test]
    fn gaps_are_fine_and_the_order_is_numeric() {
        let folder = mk_folder(&["10", "9", "1.10", "1.9"]);
        let plan = owed(&folder, &[mk_applied("1.9", "1.9")], false).expect("a plan");
        assert_eq!(versions(&plan), ["1.10", "9", "10"]);
    }

    #[test]
    fn a_changed_file_is_refused_by_its_name() {
        let folder = mk_folder(&["1", "2"]);
        let error = owed(&folder, &[mk_applied("1", "other")], true).unwrap_err();
        assert!(error.contains("V1__x.sql was changed after it was applied"), "{error}");
    }

    #[test]
    fn an_earlier_version_is_refused_unless_allowed() {
        let folder = mk_folder(&["1", "2", "3"]);
        let ledger = [mk_applied("1", "1"), mk_applied("3", "3")];
        let error = owed(&folder, &ledger, false).unwrap_err();
        assert!(error.contains("V2__x.sql comes before version 3"), "{error}");
        assert_eq!(versions(&owed(&folder, &ledger, true).expect("a plan")), ["2"]);
    }

    #[test]
    fn an_unknown_state_is_refused_whatever_else_is_owed() {
        let ledger = [Applied { is_unknown: true, ..mk_applied("2", "2") }];
        let error = owed(&mk_folder(&["1", "2", "3"]), &ledger, true).unwrap_err();
        assert!(error.starts_with("state unknown: V2__x.sql"), "{error}");
    }

    #[test]
    fn flyway_is_taken_over() {
        let folder = mk_folder(&["1", "2", "3", "4", "5"]);
        let rows = [
            mk_flyway(None, "SCHEMA", true),
            mk_flyway(Some("2"), "BASELINE", true),
            mk_flyway(Some("3"), "SQL", true),
            mk_flyway(Some("4"), "SQL", true),
            mk_flyway(Some("4"), "UNDO_SQL", true),
            mk_flyway(Some("2.5"), "SQL", true),
        ];
        let ledger = adopted(&rows, &folder).expect("a ledger");
        let known: Vec<_> = ledger.iter().map(|row| row.version.as_str()).collect();
        assert_eq!(known, ["1", "2", "2.5", "3"]);
        assert_eq!(versions(&owed(&folder, &ledger, false).expect("a plan")), ["4", "5"]);
        let failed = [mk_flyway(Some("3"), "SQL", false)];
        let error = adopted(&failed, &folder).unwrap_err();
        assert!(error.contains("V3__x.sql failed") && error.contains("flyway repair"), "{error}");
    }

    #[test]
    fn differences_are_named() {
        let seed = Script::new("a.sql", "1".to_owned());
        let ledger = [
            mk_applied("1", "changed"),
            Applied { is_unknown: true, ..mk_applied("2", "2") },
            mk_applied("9", "9"),
        ];
        let found = differences(&mk_folder(&["1", "2", "3"]), &ledger, &[seed], &[]);
        let found: Vec<_> =
            found.iter().map(|(what, _, found)| format!("{what} {found}")).collect();
        let expected = [
            "V1__x.sql changed afterwards",
            "V2__x.sql state unknown",
            "V3__x.sql not applied",
            "V9__x.sql applied, but not in the folder",
            "a.sql not seeded",
        ];
        assert_eq!(found, expected);
    }

    proptest! {
        /// Applied in any number of runs, with the folder growing at its end, every version is
        /// applied once, in order.
        #[test]
        fn every_version_is_owed_until_it_is_applied(
            numbers in prop::collection::btree_set(0_u64..1_000, 0..12), cuts in prop::collection::vec(0_usize..12, 0..4),
        ) {
            let names: Vec<_> = numbers.iter().map(u64::to_string).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(names.len())).collect();
            cuts.sort_unstable();
            cuts.push(names.len());
            let mut ledger: Vec<Applied> = Vec::new();
            for cut in cuts {
                let folder = mk_folder(&names[..cut]);
                for migration in owed(&folder, &ledger, false).expect("a plan") {
                    let version = migration.version.to_string();
                    ledger.push(mk_applied(&version, &version));
                }
                prop_assert!(owed(&folder, &ledger, false).expect("a plan").is_empty());
            }
            let applied: Vec<_> = ledger.iter().map(|row| row.version.clone()).collect();
            prop_assert_eq!(applied, names);
        }

        /// Without the permission nothing is ever owed below what is applied.
        #[test]
        fn nothing_is_applied_out_of_order(
            folder in prop::collection::btree_set(0_u64..40, 0..10),
            applied in prop::collection::btree_set(0_u64..40, 0..10),
        ) {
            let names: Vec<_> = folder.iter().map(u64::to_string).collect();
            let folder = mk_folder(&names.iter().map(String::as_str).collect::<Vec<_>>());
            let ledger: Vec<_> = applied.iter().map(u64::to_string).map(|v| mk_applied(&v, &v)).collect();
            let highest = applied.last().map(|highest| Version::parse(&highest.to_string()).expect("one"));
            if let Ok(plan) = owed(&folder, &ledger, false) {
                prop_assert!(plan.iter().all(|m| highest.as_ref().is_none_or(|h| m.version > *h)));
            }
        }
    }
}

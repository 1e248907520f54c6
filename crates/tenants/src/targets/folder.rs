//! A folder of migrations, and one of seeds: what their files are called and what is in them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use ring::digest;

use crate::StepError;

/// The version of a migration: numbers between dots. `1`, `1.0` and `1_0` are the same one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Version(Vec<u64>);

impl Version {
    /// Reads `1`, `1.2.3` or `1_2_3`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(['.', '_']).map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            if digits { part.parse().ok() } else { None }
        });
        let mut numbers = numbers.collect::<Option<Vec<u64>>>()?;
        while numbers.len() > 1 && numbers.last() == Some(&0) {
            numbers.pop();
        }
        Some(Self(numbers))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, number) in self.0.iter().enumerate() {
            let dot = if n == 0 { "" } else { "." };
            write!(f, "{dot}{number}")?;
        }
        Ok(())
    }
}

/// One file of SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) file: String,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub(crate) checksum: String,
    pub(crate) sql: String,
    /// Whether it runs as one transaction with its row of the ledger.
    pub(crate) is_transactional: bool,
}

/// A migration of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Migration {
    pub(crate) version: Version,
    pub(crate) script: Script,
}

/// In one of the first lines of a file it says that no transaction is put around it.
const NO_TRANSACTION: &str = "-- slipway: no-transaction";

/// Lines in which the marker is searched.
const MARKER_LINES: usize = 10;

/// A file of SQL beyond this is a mistake, and would be kept in memory.
const LARGEST: u64 = 64 << 20;

impl Script {
    pub(crate) fn new(file: impl Into<String>, sql: String) -> Self {
        let digest = digest::digest(&digest::SHA256, sql.as_bytes());
        let checksum = data_encoding::HEXLOWER.encode(digest.as_ref());
        let mut first = sql.lines().take(MARKER_LINES);
        let is_transactional = !first.any(|line| line.trim() == NO_TRANSACTION);
        Self { file: file.into(), checksum, sql, is_transactional }
    }
}

/// The version of a file named `V<version>__<name>.sql`; the error says what is wrong.
pub(crate) fn version_of(file: &str) -> Result<Version, String> {
    let expected = format!("{file} is not named V<version>__<name>.sql, such as V1.2__orders.sql");
    if file.starts_with("R__") {
        return Err(format!("{file}: repeatable migrations are not supported; give it a version"));
    }
    let stem = file.strip_suffix(".sql").and_then(|stem| stem.strip_prefix('V'));
    let Some((version, name)) = stem.and_then(|stem| stem.split_once("__")) else {
        return Err(expected);
    };
    if name.is_empty() {
        return Err(expected);
    }
    Version::parse(version).ok_or(expected)
}

/// Migrations in the order of their versions. Two files with one version are an error.
pub(crate) fn ordered(scripts: Vec<Script>) -> Result<Vec<Migration>, String> {
    let mut migrations = BTreeMap::new();
    for script in scripts {
        let version = version_of(&script.file)?;
        let migration = Migration { version: version.clone(), script };
        if let Some(other) = migrations.insert(version.clone(), migration) {
            let file = migrations.get(&version).map_or("", |same| same.script.file.as_str());
            let (first, second) =
                (other.script.file.as_str().min(file), other.script.file.as_str().max(file));
            return Err(format!("{first} and {second} have the same version {version}"));
        }
    }
    Ok(migrations.into_values().collect())
}

/// The migrations of a folder; none without one.
pub(crate) async fn migrations(folder: Option<&Path>) -> Result<Vec<Migration>, StepError> {
    ordered(read(folder).await?).map_err(StepError::permanent)
}

/// The seeds of a folder in the order of their names; none without one.
pub(crate) async fn seeds(folder: Option<&Path>) -> Result<Vec<Script>, StepError> {
    let mut scripts = read(folder).await?;
    scripts.sort_by(|left, right| left.file.cmp(&right.file));
    match scripts.iter().find(|script| !script.is_transactional) {
        Some(seed) => Err(StepError::permanent(format!(
            "{}: a seed runs in a transaction; take its marker away",
            seed.file
        ))),
        None => Ok(scripts),
    }
}

async fn read(folder: Option<&Path>) -> Result<Vec<Script>, StepError> {
    let Some(folder) = folder.map(Path::to_owned) else { return Ok(Vec::new()) };
    let scripts = tokio::task::spawn_blocking(move || read_now(&folder)).await;
    scripts.map_err(StepError::transient)?
}

/// Every `*.sql`; other files, such as a README, are none of ours. A folder that is not there
/// may be one that is not mounted yet.
fn read_now(folder: &Path) -> Result<Vec<Script>, StepError> {
    let failed = |path: &Path, error: std::io::Error| {
        StepError::transient(format!("cannot read {}: {error}", path.display()))
    };
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let path = entry.map_err(|error| failed(folder, error))?.path();
        let Some(file) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if path.extension().is_none_or(|end| end != "sql") || file.starts_with('.') {
            continue;
        }
        let size = std::fs::metadata(&path).map_err(|error| failed(&path, error))?.len();
        if size > LARGEST {
            let problem = format!("{file} has {size} bytes, more than {LARGEST}");
            return Err(StepError::permanent(problem));
        }
        let bytes = std::fs::read(&path).map_err(|error| failed(&path, error))?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| StepError::permanent(format!("{file} is not UTF-8")))?;
        if text.contains('\0') {
            return Err(StepError::permanent(format!("{file} has a NUL character")));
        }
        scripts.push(Script::new(file, text));
    }
    Ok(scripts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_files_are_read() {
        let version = |file| version_of(file).map(|version| version.to_string());
        assert_eq!(version("V1__a.sql").as_deref(), Ok("1"));
        assert_eq!(version("V1_2__a__b.sql").as_deref(), Ok("1.2"));
        assert_eq!(version("V2026.01.0__x.sql").as_deref(), Ok("2026.1"));
        for wrong in [
            "V__a.sql",
            "V1_a.sql",
            "v1__a.sql",
            "V1__.sql",
            "Va__b.sql",
            "V1..2__a.sql",
            "V-1__a.sql",
            "V+1__a.sql",
            "1__a.sql",
            "V99999999999999999999__a.sql",
            "R__a.sql",
        ] {
            let error = version_of(wrong).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn the_marker_is_found_in_the_first_lines_only() {
        let transactional = |sql: &str| Script::new("f", sql.to_owned()).is_transactional;
        assert!(!transactional("-- a\n  -- slipway: no-transaction\nSELECT 1"));
        assert!(transactional("SELECT '-- slipway: no-transaction'"));
        assert!(transactional(&format!("{}{NO_TRANSACTION}", "\n".repeat(10))));
    }

    #[test]
    fn two_files_of_one_version_are_refused() {
        let scripts = ["V1__b.sql", "V1.0__a.sql"].map(|file| Script::new(file, String::new()));
        let error = ordered(scripts.to_vec()).unwrap_err();
        assert_eq!(error, "V1.0__a.sql and V1__b.sql have the same version 1");
    }

    proptest! {
        #[test]
        fn versions_are_ordered_as_numbers(left in prop::collection::vec(0_u64..30, 1..4),
                                           right in prop::collection::vec(0_u64..30, 1..4)) {
            let text = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
            let parse = |numbers: &[u64]| Version::parse(&text(numbers)).expect("a version");
            let padded = |numbers: &[u64]| [0, 1, 2, 3].map(|n| numbers.get(n).copied().unwrap_or(0));
            prop_assert_eq!(parse(&left).cmp(&parse(&right)), padded(&left).cmp(&padded(&right)));
            let shown = parse(&left).to_string();
            prop_assert_eq!(Version::parse(&shown), Some(parse(&left)));
        }

        #[test]
        fn no_name_of_a_file_breaks_the_parser(file in ".{0,40}") {
            if let Ok(version) = version_of(&file) {
                prop_assert!(file.starts_with('V') && file.ends_with(".sql"), "{}", version);
            }
        }
    }
}

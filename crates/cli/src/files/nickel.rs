//! Files in Nickel: a program of its own, `slipway-nickel`, evaluates them, so that this one
//! has no interpreter in it. What it prints is one JSON document, an array or a List.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use slipway_wire::problem::FieldError;

/// Beside this program, or in the PATH.
const PROGRAM: &str = "slipway-nickel";

/// What an evaluation has no use for, and must not get.
const SECRETS: [&str; 2] = ["SLIPWAY_KEY", "SLIPWAY_KEY_FILE"];

/// Characters that are kept of an output which is not understood.
const SHOWN: usize = 400;

/// Whether a file is evaluated before it is read.
pub(super) fn is_nickel(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ncl")
}

/// The JSON that a file evaluates to, or its faults with their places. `origin`: the file within
/// the folder that is applied, which is all that it can import from.
pub(super) fn evaluate(path: &Path, origin: &str) -> Result<Vec<u8>, Vec<FieldError>> {
    let fault = |message: String| vec![fault(origin.to_owned(), message)];
    let above = path.ancestors().nth(Path::new(origin).components().count());
    let root = above.filter(|root| !root.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut command = Command::new(program());
    command.args(["--errors", "json", "--root"]).args([root, path]).stdin(Stdio::null());
    for secret in SECRETS {
        command.env_remove(secret);
    }
    match command.output() {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(faults(&output.stderr, root, origin)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(fault(format!(
            "needs the program `{PROGRAM}`, which is neither beside this one nor in the PATH; \
             install it with `cargo install --path crates/nickel`"
        ))),
        Err(error) => Err(fault(format!("cannot be evaluated: `{PROGRAM}`: {error}"))),
    }
}

/// The program beside this one; its name alone is looked up in the PATH.
fn program() -> PathBuf {
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(PROGRAM)));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM))
}

/// What it writes when it fails.
#[derive(Debug, Deserialize)]
struct Failure {
    errors: Vec<Fault>,
}

#[derive(Debug, Deserialize)]
struct Fault {
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: Option<u64>,
    #[serde(default)]
    column: Option<u64>,
    #[serde(default)]
    field: Option<String>,
    message: String,
}

/// The faults that it names, each with its file, its line and its field; one with its whole
/// output if that is not understood.
fn faults(stderr: &[u8], root: &Path, origin: &str) -> Vec<FieldError> {
    match serde_json::from_slice::<Failure>(stderr.trim_ascii()) {
        Ok(Failure { errors }) if !errors.is_empty() => {
            errors.into_iter().map(|one| one.placed(root, origin)).collect()
        }
        _ => {
            let text = String::from_utf8_lossy(stderr);
            let text: String = text.trim().chars().take(SHOWN).collect();
            let message = match text.as_str() {
                "" => format!("cannot be evaluated: `{PROGRAM}` failed without a word"),
                text => format!("cannot be evaluated: {text}"),
            };
            vec![fault(origin.to_owned(), message)]
        }
    }
}

impl Fault {
    /// `FILE:LINE`, with the field behind it.
    fn placed(self, root: &Path, origin: &str) -> FieldError {
        let Self { file, line, column, field, message } = self;
        // It may be one that the file imports.
        let mut place = file.map_or_else(
            || origin.to_owned(),
            |file| {
                let file = Path::new(&file);
                file.strip_prefix(root).unwrap_or(file).display().to_string()
            },
        );
        if let Some(line) = line {
            place = format!("{place}:{line}");
        }
        if let Some(field) = field.filter(|field| !field.is_empty()) {
            place = format!("{place}: {field}");
        }
        match column {
            Some(column) => fault(place, format!("{message} (column {column})")),
            None => fault(place, message),
        }
    }
}

fn fault(field: String, message: String) -> FieldError {
    FieldError { field, code: "invalid_input".to_owned(), message }
}

/// The files that a Nickel text imports, as it names them. They are parts of others, and no
/// documents.
pub(super) fn imports(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split_once('#').map_or(line, |(code, _)| code));
    code.flat_map(|line| {
        line.split("import").skip(1).filter_map(|rest| {
            let (file, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
            Some(file)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(stderr: &str) -> Vec<(String, String)> {
        let found = faults(stderr.as_bytes(), Path::new("/x"), "shop.ncl");
        found.into_iter().map(|fault| (fault.field, fault.message)).collect()
    }

    #[test]
    fn a_fault_has_its_file_its_line_and_its_field() {
        let stderr = r#"{"errors":[
            {"file":"/x/shop.ncl","line":7,"column":3,"field":"spec.groups","message":"is no array"},
            {"file":"lib/base.ncl","line":2,"message":"contract broken"},
            {"message":"cannot be parsed"}
        ]}"#;
        let expected = [
            ("shop.ncl:7: spec.groups", "is no array (column 3)"),
            ("lib/base.ncl:2", "contract broken"),
            ("shop.ncl", "cannot be parsed"),
        ];
        let expected = expected.map(|(field, message)| (field.to_owned(), message.to_owned()));
        assert_eq!(fields(stderr), expected);
    }

    #[test]
    fn what_is_not_understood_is_shown_as_it_is() {
        assert_eq!(fields("it broke\n")[0].1, "cannot be evaluated: it broke");
        assert!(fields("")[0].1.contains("without a word"));
        assert!(fields(r#"{"errors":[]}"#)[0].1.contains("errors"));
    }

    #[test]
    fn what_a_file_imports_is_found() {
        let text =
            "let a = import \"a.ncl\" in\n# import \"no.ncl\"\n{ b = (import \"lib/b.ncl\") }";
        assert_eq!(imports(text).collect::<Vec<_>>(), ["a.ncl", "lib/b.ncl"]);
    }
}

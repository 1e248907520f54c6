//! The built program: what it prints, what it refuses, and how it ends.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test, with the place named")]

mod bounds;
mod errors;
mod folder;
mod sample;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A folder of files for one test.
struct Files(TempDir);

impl Files {
    fn of(files: &[(&str, &str)]) -> Self {
        let folder = Self(TempDir::new().unwrap());
        for (name, text) in files {
            let path = folder.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Evaluates one of them.
    fn run(&self, name: &str, options: &[&str]) -> Ended {
        evaluate(&self.path(name), options)
    }
}

/// How the program ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    output: String,
    errors: String,
}

impl Ended {
    #[track_caller]
    fn document(&self) -> Value {
        assert_eq!((self.code, &*self.errors), (Some(0), ""), "{self:?}");
        serde_json::from_str(&self.output).unwrap()
    }

    /// Fails unless it ended with this code, no document, and errors that contain the words.
    #[track_caller]
    fn is_refused(&self, code: i32, words: &str) {
        assert_eq!((self.code, &*self.output), (Some(code), ""), "{self:?}");
        assert!(self.errors.contains(words), "{self:?}");
    }

    /// The errors of a run with `--errors json`.
    #[track_caller]
    fn faults(&self) -> Vec<Value> {
        let document: Value = serde_json::from_str(&self.errors).expect(&self.errors);
        document["errors"].as_array().unwrap().clone()
    }
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_slipway-nickel"))
}

/// With a time limit that only a hanging test meets.
fn evaluate(file: &Path, options: &[&str]) -> Ended {
    end(program().args(["--timeout", "5m"]).args(options).arg(file))
}

fn end(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Ended {
        code: status.code(),
        output: String::from_utf8(stdout).unwrap(),
        errors: String::from_utf8(stderr).unwrap(),
    }
}

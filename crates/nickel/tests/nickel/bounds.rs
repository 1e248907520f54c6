//! A file that wants too much ends with a message and the exit code 3.

use super::{Files, end, program};

/// A text of 20 MiB.
const DOUBLED: &str = "(std.array.fold_left (fun text _ => text ++ text) \"0123456789\" \
                       (std.array.range 0 21))";

fn of(main: &str) -> Files {
    Files::of(&[("main.ncl", main)])
}

#[test]
fn a_file_that_loops_ends_with_its_time() {
    let files = of("let rec f = fun n => if n == 0 then f 1 else f 0 in f 0");
    let mut command = program();
    command.args(["--timeout", "300ms"]).arg(files.path("main.ncl"));
    end(&mut command).is_refused(3, "error: the evaluation took longer than 300ms\n");
}

#[test]
fn a_file_that_eats_memory_ends_with_its_memory() {
    let files = of("let rec f = fun s => f (s ++ s) in f \"0123456789\"");
    let ended = files.run("main.ncl", &["--memory", "128MiB", "--errors", "json"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let faults = ended.faults();
    assert_eq!(faults[0]["message"], "the evaluation needs more than 128 MiB of memory");
}

#[test]
fn recursion_without_an_end_is_no_silent_death() {
    let files = of("let rec f = fun n => 1 + f (n + 1) in f 0");
    files.run("main.ncl", &["--memory", "128MiB"]).is_refused(3, "of memory");
}

#[test]
fn a_stack_that_overflows_is_no_silent_death() {
    let syntax = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let value = "let rec f = fun n => if n == 0 then {} else { a = f (n - 1) } in f 30000";
    for main in [&*syntax, value] {
        let ended = of(main).run("main.ncl", &["--memory", "128MiB"]);
        ended.is_refused(3, "error: the evaluation recurses too deeply\n");
    }
}

#[test]
fn a_huge_document_is_not_printed() {
    let files = of(DOUBLED);
    files.run("main.ncl", &[]).is_refused(3, "error: the document is longer than 8 MiB\n");
}

#[test]
fn errors_are_bounded_too() {
    let contract = format!("fun _ => 'Error {{ message = {DOUBLED} }}");
    let files = of(&format!("{{ a | std.contract.from_validator ({contract}) = 1 }}"));
    let ended = files.run("main.ncl", &["--errors", "json"]);
    assert_eq!((ended.code, ended.faults().len()), (Some(1), 1));
    assert!(ended.errors.len() < 10_000, "{} bytes", ended.errors.len());
}

//! What the program says, to people and to programs.

use serde_json::json;

use super::{Files, end, program};

#[test]
fn a_syntax_error_has_file_line_and_column() {
    let files = Files::of(&[
        ("main.ncl", "import \"sub/broken.ncl\""),
        ("sub/broken.ncl", "{\n  \"ö\" = = 1,\n}\n"),
    ]);
    let ended = files.run("main.ncl", &["--errors", "json"]);
    assert_eq!(ended.code, Some(1));
    let expected = json!({
        "file": "sub/broken.ncl", "line": 2, "column": 9, "field": null,
        "message": "unexpected token",
    });
    assert_eq!(ended.faults(), [expected]);
    files.run("main.ncl", &[]).is_refused(1, "sub/broken.ncl:2:9");
}

#[test]
fn a_file_that_ends_too_early_has_a_place() {
    let ended = Files::of(&[("main.ncl", "{\n  a =\n")]).run("main.ncl", &["--errors", "json"]);
    let expected = json!({
        "file": "main.ncl", "line": 3, "column": 1, "field": null,
        "message": "unexpected end of file when parsing main.ncl",
    });
    assert_eq!(ended.faults(), [expected]);
}

#[test]
fn every_field_that_breaks_a_contract_is_named_once() {
    let main = "{ a | Number = 1, b | Number = \"x\", c = [0, { d | String = a }], \
                e | Number, f | optional, g | not_exported = b, h = b, i = fun x => x }";
    let ended = Files::of(&[("main.ncl", main)]).run("main.ncl", &["--errors", "json"]);
    let faults = ended.faults();
    let fields: Vec<_> = faults.iter().map(|fault| fault["field"].as_str().unwrap()).collect();
    assert_eq!((ended.code, &*fields), (Some(1), &["b", "c[1].d", "e"][..]), "{ended:?}");
    assert!(faults.iter().all(|fault| fault["line"] == 1 && fault["file"] == "main.ncl"));

    let text = Files::of(&[("main.ncl", main)]).run("main.ncl", &[]);
    text.is_refused(1, "in the field c[1].d:\nerror: contract broken by the value of `d`");
}

#[test]
fn what_json_cannot_express_has_a_field() {
    let files = Files::of(&[("main.ncl", "{ a.b = [fun x => x] }")]);
    let ended = files.run("main.ncl", &["--errors", "json"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.faults()[0]["field"], "a.b[0]", "{ended:?}");
}

#[test]
fn an_error_of_a_type_has_a_place() {
    let files = Files::of(&[("main.ncl", "{\n  a = (1 + \"x\" : Number),\n}")]);
    let ended = files.run("main.ncl", &["--errors", "json"]);
    let fault = &ended.faults()[0];
    assert_eq!((ended.code, &fault["line"]), (Some(1), &json!(2)), "{ended:?}");
}

#[test]
fn a_missing_import_is_an_error_of_the_file_and_a_missing_file_of_the_caller() {
    let files = Files::of(&[("main.ncl", "{ a = import \"missing.ncl\" }")]);
    files.run("main.ncl", &[]).is_refused(1, "main.ncl:1:7: cannot import missing.ncl: No such");
    files.run("missing.ncl", &[]).is_refused(2, "cannot read missing.ncl: No such");
    files.run("main.ncl", &["--root", "/missing"]).is_refused(2, "cannot open the folder /missing");
}

#[test]
fn the_command_line_names_its_exit_codes_and_limits() {
    let help = end(program().arg("--help"));
    assert_eq!(help.code, Some(0));
    for words in ["0  the document was printed", "4  a file outside", "[default: 10s]"] {
        assert!(help.output.contains(words), "{words}: {}", help.output);
    }
    end(&mut program()).is_refused(2, "<FILE>");
    end(program().args(["--timeout", "0s", "x.ncl"])).is_refused(2, "between 1ms and 10m");
}

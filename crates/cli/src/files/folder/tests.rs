//! Folders as people have them, and as nobody should.

use super::*;

fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, Folder) {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let read = Folder::read(&[root.path().to_owned()]).unwrap();
    (root, read)
}

fn label(name: &str) -> String {
    format!("apiVersion: slipway.dev/v1\nkind: Label\nmetadata:\n  name: {name}\n")
}

fn names(folder: &Folder) -> Vec<&str> {
    folder.documents.iter().map(|found| found.object.name.as_str()).collect()
}

#[test]
fn a_folder_is_read_by_extension_with_the_folders_in_it() {
    let json = r#"{"apiVersion":"slipway.dev/v1","kind":"Label","metadata":{"name":"j"}}"#;
    let (_root, read) = folder(&[
        ("a.yaml", &label("a")),
        ("sub/b.yml", &label("b")),
        ("j.json", json),
        ("README.md", "# no document"),
        (".hidden/c.yaml", "broken: ["),
        (".slipway.yaml", "source: shop\n"),
        ("node/metadata.json", "{}"),
        ("node/xrd.yaml", "kind: X"),
    ]);
    assert_eq!(names(&read), ["a", "j", "b"]);
    assert_eq!((read.broken.len(), read.source.as_deref()), (0, Some("shop")));
}

#[test]
fn marks_line_ends_empty_documents_and_lists_are_read() {
    let many = format!("\u{feff}---\n---\n{}---\n# nothing\n---\r\n{}", label("a"), label("b"));
    let list = "kind: List\nitems:\n- {kind: Label, metadata: {name: c}}\n";
    let crlf = label("d").replace('\n', "\r\n");
    let (_root, read) = folder(&[
        ("1.yaml", &many),
        ("2.yaml", list),
        ("3.yaml", "- {kind: Label, metadata: {name: e}}\n"),
        ("4.yaml", &crlf),
        ("5.yaml", ""),
    ]);
    assert_eq!(names(&read), ["a", "b", "c", "e", "d"]);
    assert!(read.broken.is_empty(), "{:?}", read.broken);
}

#[test]
fn a_broken_document_blocks_only_itself_and_has_its_line() {
    let half = format!("{}---\nkind: [\n---\n{}", label("a"), label("b"));
    let (_root, read) = folder(&[
        ("half.yaml", &half),
        ("nul.yaml", "kind: \0"),
        ("twice.yaml", "kind: Label\nkind: Cloud\n"),
        ("fine.yaml", &label("c")),
    ]);
    assert_eq!(names(&read), ["c", "a", "b"]);
    let places: Vec<_> = read.broken.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(places, ["half.yaml:7", "nul.yaml", "twice.yaml:1"]);
}

#[test]
fn two_documents_of_one_object_are_both_refused() {
    let (_root, read) = folder(&[("a.yaml", &label("x")), ("b.yaml", &label("x"))]);
    assert!(read.documents.is_empty());
    assert_eq!(read.broken[0].field, "a.yaml:1 and b.yaml:1");
}

#[test]
fn bombs_are_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", below.trim_end_matches(", ")));
    }
    let deep = format!("a: {}{}", "[".repeat(10_000), "]".repeat(10_000));
    let long = format!("a: {}", "x".repeat(1 << 20));
    let (_root, read) = folder(&[("1.yaml", &bomb), ("2.yaml", &deep), ("3.yaml", &long)]);
    assert_eq!((read.documents.len(), read.broken.len()), (0, 3), "{:?}", read.broken);
}

#[test]
fn a_link_that_leads_back_ends() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a.yaml"), label("a")).unwrap();
    std::os::unix::fs::symlink(root.path(), root.path().join("again")).unwrap();
    let read = Folder::read(&[root.path().to_owned()]).unwrap();
    assert_eq!(names(&read), ["a"]);
}

#[test]
fn a_field_has_its_line() {
    let text =
        "kind: Cloud\nmetadata:\n  name: a\nspec:\n  provider: x\n  endpoint:\n    name: y\n";
    let (_root, read) = folder(&[("c.yaml", &format!("# first\n{text}"))]);
    let found = &read.documents[0];
    assert_eq!(found.location("spec.endpoint.name"), "c.yaml:8");
    assert_eq!(found.location("metadata.name"), "c.yaml:4");
    assert_eq!(found.location("elsewhere"), "c.yaml:1");
}

#[test]
fn ten_thousand_documents_are_read() {
    let many: Vec<String> = (0..10_000).map(|number| label(&format!("l-{number}"))).collect();
    let files: Vec<(String, String)> = many
        .chunks(1_000)
        .enumerate()
        .map(|(n, c)| (format!("{n}.yaml"), c.join("---\n")))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    assert_eq!(folder(&files).1.documents.len(), 10_000);
}

#[test]
fn a_stack_has_the_manifests_of_its_folder_and_they_are_no_documents() {
    let stack = |more: &str| {
        format!("kind: Stack\nmetadata: {{name: web}}\nspec:\n  generator: ci\n{more}")
    };
    let (_root, read) = folder(&[
        ("fleet/web.yaml", &stack("  folder: ../manifests\n")),
        ("manifests/b.yaml", "kind: Service\n"),
        ("manifests/a/a.yaml", "kind: ConfigMap\n"),
        ("other.yaml", &label("a")),
    ]);
    assert!(read.broken.is_empty(), "{:?}", read.broken);
    assert_eq!(names(&read), ["a", "web"]);
    let spec = &read.documents[1].submitted.document["spec"];
    assert_eq!(spec["objects"], "kind: ConfigMap\n---\nkind: Service\n");
    assert!(spec.get("folder").is_none());

    let (_root, read) = folder(&[("a.yaml", &stack("  objects:\n  - {kind: A}\n  - {kind: B}\n"))]);
    let spec = &read.documents[0].submitted.document["spec"];
    assert_eq!(spec["objects"], "---\nkind: A\n---\nkind: B\n");

    let long = format!("kind: A\nx: {}\n", "y".repeat(950 * 1_024));
    for (more, problem) in [
        ("  folder: none\n", "folder `none`"),
        ("  folder: m\n  objects: 'kind: A'\n", "keep one of them"),
        ("  folder: m\n", "slipway stack submit"),
    ] {
        let (_root, read) = folder(&[("a.yaml", &stack(more)), ("m/long.yaml", &long)]);
        assert!(read.broken[0].message.contains(problem), "{more}: {:?}", read.broken);
    }
}

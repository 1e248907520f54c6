//! Retired and reserved words. A newcomer should need no private dictionary, so
//! an item of ours is not named by a word that the glossary (`docs/concepts.md`)
//! replaced, and the words of rooms to come name nothing outside them.
//!
//! Only names of items count. A retired word inside a sentence, such as the name
//! of a test, is refused if it is a noun of our own making.

use super::tree::Tree;

/// Private words and what to say instead. A component of a name: `LaneView`,
/// `lane_of`.
const RETIRED: &[(&str, &str)] = &[
    ("lane", "partition"),
    ("lanes", "partition"),
    ("witness", "high-water mark"),
    ("beat", "heartbeat"),
    ("stance", "mode"),
    ("deed", "action"),
    ("deeds", "action"),
    ("crossing", "transition"),
    ("crossings", "transition"),
    ("unrest", "flapping window"),
    ("sight", "observation, scan or inventory"),
    ("sighted", "observation, scan or inventory"),
    ("sighting", "observation, scan or inventory"),
    ("sightings", "observation, scan or inventory"),
    ("standing", "status, counts or index state"),
    ("standings", "status, counts or index state"),
    ("surroundings", "dependencies"),
    ("patience", "timeout"),
    ("impatient", "write timeout"),
    ("distrust", "replace the pool"),
    ("keeper", "lease renewer or watchdog"),
    ("tenancy", "project namespace"),
    ("tenancies", "project namespace"),
];

/// Ordinary words that were used as private ones. They are refused as a whole
/// name, and those that [`NOT_IN_TYPES`] has as a part of one, except in functions.
const RETIRED_ALONE: &[(&str, &str)] = &[
    ("look", "observe, scan, probe or inspect"),
    ("looks", "observe, scan, probe or inspect"),
    ("place", "placement or object reference"),
    ("places", "placement or object reference"),
    ("turn", "pass"),
    ("turned", "summary of a pass"),
    ("let_go", "name what is released"),
    ("absence", "deletion verification, or name what is missing"),
    ("settle", "converge"),
    ("settles", "converge"),
    ("stands", "name what is true of it"),
    ("given", "name what was submitted"),
    ("kept", "idle cache, or name what is kept"),
    ("presented", "by token hash"),
    ("around", "related rows"),
    ("whole", "hydrate"),
    ("beginning", "after cursor"),
    ("among", "filter"),
    ("hands", "test client"),
    ("told", "log once"),
    ("reached", "registry"),
    ("rival", "conflict"),
    ("wish", "desired"),
    ("wanted", "desired"),
    ("fold", "parse, normalise or checkpoint"),
    ("trouble", "error classification"),
    ("held", "quarantined, leased or waiting"),
    ("once", "idempotent create"),
    ("converse", "serve connection"),
];

/// Such words that no type, module or constant needs.
const NOT_IN_TYPES: &[&str] = &["look", "looks", "place", "places", "turn", "trouble", "told"];

/// Words of rooms, and the rooms that may use them.
const RESERVED: &[(&str, &str)] = &[
    ("fleet", "fleet"),
    ("delivery", "fleet"),
    ("deliveries", "fleet"),
    ("tenant", "tenants"),
    ("gate", "topology"),
    ("gates", "topology"),
    ("step", "tenants"),
    ("steps", "tenants"),
];

/// What stands before the name of an item.
const INTRODUCTIONS: &[&str] =
    &["fn", "struct", "enum", "trait", "mod", "type", "const", "static", "macro_rules!"];

/// Names of items that use a retired or reserved word.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, text) in tree.rust_files() {
        for (index, line) in text.lines().enumerate() {
            let Some((introduction, name)) = item(line) else { continue };
            if let Some((word, remedy)) = refused(path, introduction, name) {
                wrong.push(format!(
                    "{path}:{}: `{name}`: `{word}` is a retired or reserved word; {remedy}",
                    index + 1
                ));
            }
        }
    }
    wrong
}

/// The item that a line introduces, and by which word.
fn item(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    if line.starts_with("//") || line.starts_with('"') {
        return None;
    }
    let mut words = line.split(' ').skip_while(|word| is_qualifier(word)).peekable();
    let mut introduction = words.next().filter(|word| INTRODUCTIONS.contains(word))?;
    if introduction == "const" && words.peek() == Some(&"fn") {
        introduction = words.next()?;
    }
    let rest = words.next()?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some((introduction, &rest[..end])).filter(|(_, name)| !name.is_empty())
}

/// What may stand before the introduction of an item.
fn is_qualifier(word: &str) -> bool {
    word.starts_with("pub") || ["async", "unsafe"].contains(&word)
}

fn refused(path: &str, introduction: &str, name: &str) -> Option<(&'static str, String)> {
    let parts = components(name);
    let is_part = |word: &str| parts.iter().any(|part| part == word);
    let say = |(word, instead): &(&'static str, &'static str)| (*word, format!("say {instead}"));
    if let Some(found) = RETIRED.iter().find(|(word, _)| is_part(word)) {
        return Some(say(found));
    }
    // The name of a test is a sentence, where these are ordinary words.
    let is_sentence = introduction == "fn" && parts.len() > 2;
    let alone = |word: &str| {
        let in_type = introduction != "fn" && NOT_IN_TYPES.contains(&word) && is_part(word);
        in_type || name.eq_ignore_ascii_case(word)
    };
    if let Some(found) = RETIRED_ALONE.iter().find(|(word, _)| alone(word)) {
        return Some(say(found));
    }
    // The line that declares the room is outside of it.
    let is_room = |room: &str| introduction == "mod" && name == room;
    let is_in = |room: &str| is_room(room) || path.split(['/', '.']).any(|part| part == room);
    RESERVED
        .iter()
        .find(|(word, room)| is_part(word) && !is_in(room) && !is_sentence)
        .map(|(word, room)| (*word, format!("it belongs to the room `{room}`")))
}

/// `LaneView` and `lane_view` are both lane and view.
fn components(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut after_lower = false;
    for c in name.chars() {
        if c == '_' {
            parts.push(String::new());
            after_lower = false;
            continue;
        }
        if parts.is_empty() || (c.is_uppercase() && after_lower) {
            parts.push(String::new());
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        if let Some(part) = parts.last_mut() {
            part.extend(c.to_lowercase());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{Tree, check};

    fn wrong(path: &str, line: &str) -> Vec<String> {
        check(&Tree::of(&[(path, line)]))
    }

    #[test]
    fn a_retired_word_is_refused_as_a_name() {
        for line in [
            "pub struct LaneView {",
            "    fn lane_of(x: u8) {",
            "const LOOK: u8 = 1;",
            "mod trouble;",
            "mod absence;",
            "async fn settle(&self) {",
            "async fn look(&self) {",
            "pub(crate) enum Standing {",
            "async fn a_lane_that_hangs_takes_nothing_from_another() {",
        ] {
            assert_eq!(wrong("crates/a/src/b.rs", line).len(), 1, "{line}");
        }
    }

    #[test]
    fn ordinary_words_stay_in_sentences_and_variables() {
        for line in [
            "let lane = 1;",
            "// fn lane",
            "fn what_is_told_once_is_kept_whole() {",
            "fn control_plane() {",
            "struct Heartbeat;",
            "fn replace_placement() {",
            "fn outlook() {",
        ] {
            assert!(wrong("crates/a/src/b.rs", line).is_empty(), "{line}");
        }
    }

    #[test]
    fn a_reserved_word_names_items_of_its_room_only() {
        assert_eq!(wrong("crates/app/src/broker/x.rs", "struct FleetLoop;").len(), 1);
        assert!(wrong("crates/app/src/fleet/x.rs", "struct FleetLoop;").is_empty());
        assert!(wrong("crates/app/src/lib.rs", "pub mod fleet;").is_empty());
        assert_eq!(wrong("crates/app/src/lib.rs", "mod fleet_loop;").len(), 1);
        assert_eq!(wrong("crates/app/src/gate.rs", "pub struct Gate {").len(), 1);
    }
}

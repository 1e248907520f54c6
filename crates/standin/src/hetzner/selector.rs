//! Label selectors: `key`, `!key`, `key=value`, `key==value`, `key!=value`, `key in (a,b)`,
//! `key notin (a,b)`, joined by commas.

use std::collections::BTreeMap;

/// One requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Missing(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

/// All of them have to be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selector(Vec<Requirement>);

impl Selector {
    /// `None` if the text is no selector.
    pub(super) fn parse(text: &str) -> Option<Self> {
        split(text)
            .into_iter()
            .map(|part| requirement(part.trim()))
            .collect::<Option<_>>()
            .map(Self)
    }

    pub(super) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| match requirement {
            Requirement::Exists(key) => labels.contains_key(key),
            Requirement::Missing(key) => !labels.contains_key(key),
            Requirement::In(key, values) => {
                labels.get(key).is_some_and(|found| values.contains(found))
            }
            Requirement::NotIn(key, values) => {
                !labels.get(key).is_some_and(|found| values.contains(found))
            }
        })
    }
}

/// At the commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn requirement(text: &str) -> Option<Requirement> {
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some((key, values)) = text.split_once(" notin ") {
        return Some(Requirement::NotIn(key_of(key)?, set(values)?));
    }
    if let Some((key, values)) = text.split_once(" in ") {
        return Some(Requirement::In(key_of(key)?, set(values)?));
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Some(Requirement::NotIn(key_of(key)?, one(value)));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Some(Requirement::In(key_of(key)?, one(value)));
    }
    match text.strip_prefix('!') {
        Some(key) => Some(Requirement::Missing(key_of(key)?)),
        None => Some(Requirement::Exists(key_of(text)?)),
    }
}

fn set(text: &str) -> Option<Vec<String>> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some(inner.split(',').map(|value| value.trim().to_owned()).collect())
}

fn key_of(text: &str) -> Option<String> {
    let key = text.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    (!key.is_empty() && key.chars().all(plain)).then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_selects_what_it_says() {
        let labels: BTreeMap<String, String> =
            [("env", "prod"), ("a.dev/x", "1")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        for (text, expected) in [
            ("env", true),
            ("!env", false),
            ("other", false),
            ("env=prod", true),
            ("env==prod,a.dev/x==1", true),
            ("env==prod,a.dev/x==2", false),
            ("env!=prod", false),
            ("other!=prod", true),
            ("env in (dev, prod)", true),
            ("env notin (dev,prod),a.dev/x", false),
        ] {
            assert_eq!(Selector::parse(text).unwrap().matches(&labels), expected, "{text}");
        }
        for bad in ["", "a b", "env in prod", "=x"] {
            assert_eq!(Selector::parse(bad), None, "{bad}");
        }
    }
}

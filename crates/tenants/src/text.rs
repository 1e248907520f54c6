//! Texts that people see or that are stored: errors without secrets, metadata without
//! secrets, ids of a length that every store can keep.
//!
//! No rule here is proof that a text has no secret. They catch what happens in practice:
//! a connection string in an error, a password under its own name.

use crate::Error;
use crate::job::Metadata;

/// Of an id, in characters.
pub(crate) const LONGEST_ID: usize = 255;

/// Of `last_error`, in bytes.
pub(crate) const LONGEST_ERROR: usize = 2_000;

/// Of the name of something that a job makes, in characters.
pub(crate) const LONGEST_OBJECT: usize = 1_000;

/// Of all keys and values together, in bytes.
pub(crate) const LONGEST_METADATA: usize = 64 * 1_024;

const HIDDEN: &str = "***";

/// Words after which a value is a secret, in lower case and without separators.
const SECRETS: [&str; 13] = [
    "password",
    "passwd",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "credential",
    "credentials",
    "passphrase",
    "bearer",
];

/// Ends of keys whose value only says where a secret is.
const REFERENCES: [&str; 9] =
    ["ref", "reference", "name", "path", "file", "id", "env", "arn", "version"];

/// Beginnings of values that are secrets whatever their key.
const BEGINNINGS: [&str; 9] =
    ["-----BEGIN", "AKIA", "ghp_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "sk_live_", "hvs."];

/// Checks an id of a job, a tenant or a partition.
pub(crate) fn check_id(field: &'static str, id: &str) -> Result<(), Error> {
    let problem = if id.is_empty() {
        "is empty".to_owned()
    } else if id.chars().count() > LONGEST_ID {
        format!("is longer than {LONGEST_ID} characters")
    } else if id.chars().any(char::is_control) {
        "has a control character".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::InvalidJob { field, problem })
}

/// Checks that metadata can be stored and has nothing that looks like a secret.
pub(crate) fn check_metadata(metadata: &Metadata) -> Result<(), Error> {
    let invalid = |problem| Err(Error::InvalidJob { field: "metadata", problem });
    let size: usize = metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
    if size > LONGEST_METADATA {
        return invalid(format!("has {size} bytes, more than {LONGEST_METADATA}"));
    }
    for (key, value) in metadata {
        if key.contains('\0') || value.contains('\0') {
            return invalid(format!("`{}` has a NUL character", key.replace('\0', "")));
        }
        if is_secret(key, value) {
            return Err(Error::SecretInMetadata { key: key.clone() });
        }
    }
    Ok(())
}

/// Checks the name of something that a job makes. It is never changed to fit: cleanup has to
/// find the object by it.
pub(crate) fn check_object(object: &str) -> Result<(), Error> {
    let problem = if object.is_empty() {
        "has an empty name".to_owned()
    } else if object.chars().count() > LONGEST_OBJECT {
        format!("has a name of more than {LONGEST_OBJECT} characters")
    } else if object.chars().any(char::is_control) {
        "has a name with a control character".to_owned()
    } else if redacted(object) != object {
        return Err(Error::SecretInMetadata { key: "made".to_owned() });
    } else {
        return Ok(());
    };
    Err(Error::InvalidJob { field: "made", problem })
}

fn is_secret(key: &str, value: &str) -> bool {
    if value.is_empty() {
        return false;
    }
    if BEGINNINGS.iter().any(|beginning| value.starts_with(beginning)) {
        return true;
    }
    redacted(value) != value || names_a_secret(key)
}

/// Whether the last word of a key says that its value is a secret: `db_password` does,
/// `password_file` and `token_count` do not.
fn names_a_secret(key: &str) -> bool {
    let words: Vec<String> = words(key);
    let Some(last) = words.last() else { return false };
    if REFERENCES.contains(&last.as_str()) {
        return false;
    }
    let joined = words.iter().rev().take(2).rev().map(String::as_str).collect::<String>();
    SECRETS.iter().any(|secret| last == secret || joined == *secret)
}

/// The words of a key, in lower case: of `apiKey`, `api-key` and `API_KEY` the same two.
fn words(key: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(key.len() + 4);
    let mut after_lower = false;
    for letter in key.chars() {
        if letter.is_uppercase() && after_lower {
            spaced.push(' ');
        }
        after_lower = letter.is_lowercase();
        spaced.push(if letter.is_alphanumeric() { letter } else { ' ' });
    }
    spaced.split_whitespace().map(str::to_lowercase).collect()
}

/// An error as it may be stored: without secrets, without control characters, and not
/// longer than [`LONGEST_ERROR`]. Secrets go first: a cut in the middle of one would hide
/// it from the rules.
pub(crate) fn storable_error(error: &str) -> String {
    let clean: String = error
        .chars()
        .map(|letter| if letter.is_control() && letter != '\n' { ' ' } else { letter })
        .collect();
    let mut text = redacted(&clean);
    if text.len() > LONGEST_ERROR {
        let cut = "… (cut)";
        let end = (0..=LONGEST_ERROR - cut.len()).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push_str(cut);
    }
    text
}

/// The text with `***` for passwords of connection strings and for values that stand
/// after a word of `SECRETS`: `password=x`, `PASSWORD 'x'`, `"token": "x"`, `Bearer x`.
#[must_use]
pub fn redacted(text: &str) -> String {
    without_named_values(&without_url_passwords(text))
}

/// `scheme://user:password@host` keeps everything but the password.
fn without_url_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        // A password may have signs in it that nobody escaped, `@` and `://` among them: it
        // ends at the last at sign before a blank or a quote. What stands between two URLs
        // without either is hidden with them.
        let end = after.find([' ', '\n', '"', '\'', '`', '<', '>', ',']).unwrap_or(after.len());
        let authority = &after[..end];
        let user = authority.rfind('@');
        let kept = match user.and_then(|at| authority[..at].find(':').map(|colon| (colon, at))) {
            Some((colon, at)) => {
                out.push_str(&authority[..=colon]);
                out.push_str(HIDDEN);
                at
            }
            None => 0,
        };
        out.push_str(&authority[kept..]);
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

fn without_named_values(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let word_end = rest[start..].find(|c| !is_word(c)).map_or(rest.len(), |len| start + len);
        let word = &rest[start..word_end];
        out.push_str(&rest[..word_end]);
        rest = &rest[word_end..];
        if let Some((gap, value)) = value_after(word, rest) {
            out.push_str(&rest[..gap]);
            if !value.is_empty() {
                out.push_str(HIDDEN);
            }
            rest = &rest[gap + value.len()..];
        }
    }
    out.push_str(rest);
    out
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '-'
}

/// The value that a word names, and how many bytes stand between the two. A value follows
/// `=` or `:`, or is quoted, or follows `Bearer`.
fn value_after<'a>(word: &str, rest: &'a str) -> Option<(usize, &'a str)> {
    if !names_a_secret(word) {
        return None;
    }
    let bare = word.eq_ignore_ascii_case("bearer");
    let trimmed = rest.trim_start_matches(['"', ' ']);
    let assigned = trimmed.starts_with(['=', ':']);
    let value = if assigned { trimmed[1..].trim_start_matches(' ') } else { trimmed };
    let quote = value.chars().next().filter(|first| matches!(first, '\'' | '"'));
    // `bearer` after `authorization:` is a word, not a value.
    if (!assigned && quote.is_none() && !bare) || value.len() == rest.len() {
        return None;
    }
    let inside = quote.map_or(value, |_| &value[1..]);
    let end = match quote {
        Some(quote) => inside.find(quote),
        None => inside.find([' ', '\n', ',', ';', '&', '"', '\'', ')', '}']),
    };
    let found = &inside[..end.unwrap_or(inside.len())];
    (found != HIDDEN).then(|| (rest.len() - inside.len(), found))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn passwords_are_hidden_in_errors() {
        let cases = [
            (
                "connect postgres://app:hunter2@db:5432/x failed",
                "connect postgres://app:***@db:5432/x failed",
            ),
            ("mysql://a:p@ss/w@host/db", "mysql://a:***@host/db"),
            ("https://example.com/a?b=c", "https://example.com/a?b=c"),
            ("host=db password=hunter2 user=x", "host=db password=*** user=x"),
            ("ALTER ROLE x PASSWORD 'hunter2' LOGIN", "ALTER ROLE x PASSWORD '***' LOGIN"),
            ("{\"api_key\": \"abc\", \"n\": 1}", "{\"api_key\": \"***\", \"n\": 1}"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
            (
                "password authentication failed for user \"x\"",
                "password authentication failed for user \"x\"",
            ),
            ("x://user://!a@host/db", "x://user:***@host/db"),
            ("http://a/http://u:p@h", "http://a/http:***@h"),
            ("two: amqp://u:p@a then redis://:q@b", "two: amqp://u:***@a then redis://:***@b"),
        ];
        for (text, expected) in cases {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn metadata_refuses_secrets_and_takes_references() {
        let one = |key: &str, value: &str| {
            check_metadata(&Metadata::from([(key.to_owned(), value.to_owned())]))
        };
        for (key, value) in [
            ("db_password", "x"),
            ("apiKey", "x"),
            ("TOKEN", "x"),
            ("dsn", "postgres://u:p@h/d"),
            ("conninfo", "host=h password=p"),
            ("pem", "-----BEGIN PRIVATE KEY-----"),
            ("anything", "ghp_abcdef"),
        ] {
            let error = one(key, value).unwrap_err();
            assert_eq!(error.code(), "secret_in_metadata", "{key}={value}");
            assert!(error.to_string().contains("reference"), "{error}");
        }
        for (key, value) in [
            ("password_file", "/run/secrets/db"),
            ("secret_name", "tenants/a"),
            ("dsn", "postgres://h/d"),
            ("token_count", "7"),
            ("applied", "V1..V9"),
            ("password", ""),
        ] {
            assert_eq!(one(key, value), Ok(()), "{key}={value}");
        }
        assert_eq!(one("a", "b\0").unwrap_err().code(), "invalid_job");
        assert_eq!(one("a", &"x".repeat(LONGEST_METADATA)).unwrap_err().code(), "invalid_job");
    }

    #[test]
    fn ids_are_checked() {
        let ids = ["", "a\0b", "a\nb", &"x".repeat(256)];
        for id in ids {
            let error = check_id("tenant_id", id).unwrap_err();
            assert!(error.to_string().contains("tenant_id"), "{error}");
        }
        assert_eq!(check_id("id", &"ü".repeat(255)), Ok(()));
        assert_eq!(check_id("id", "'; DROP TABLE jobs; --"), Ok(()), "a parameter, never text");
    }

    #[test]
    fn names_of_objects_are_checked_and_never_changed() {
        assert_eq!(check_object("schema \"tenant_a\""), Ok(()));
        for bad in ["", "a\0", "dsn postgres://u:p@h/d", &"x".repeat(LONGEST_OBJECT + 1)] {
            assert!(check_object(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_at_the_cut_is_hidden() {
        let text = format!("{}password=hunter2", "x".repeat(LONGEST_ERROR - 12));
        assert!(!storable_error(&text).contains("hun"), "hidden before the cut");
    }

    proptest! {
        #[test]
        fn a_stored_error_is_bounded_and_clean(text in any::<String>()) {
            let stored = storable_error(&text.repeat(40));
            prop_assert!(stored.len() <= LONGEST_ERROR);
            prop_assert!(!stored.contains('\0'));
        }

        #[test]
        fn no_password_of_a_url_survives(password in "[A-Za-z0-9!#/]{4,20}", noise in "[a-z ]{0,10}") {
            let stored = redacted(&format!("{noise} x://user:{password}@host/db {noise}"));
            prop_assert!(!stored.contains(&format!(":{password}@")), "{}", stored);
        }

        /// The rules hold for what they answer: a stored error is stored again as it is.
        #[test]
        fn redaction_changes_nothing_the_second_time(text in "[a-z:/@'\" =*]{0,40}(password|token)[=: '\"]{0,3}[a-z]{0,5}") {
            let once = redacted(&text);
            prop_assert_eq!(redacted(&once), once);
        }
    }
}

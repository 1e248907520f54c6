//! Turns labels that propagate into cloud tags: a pure function of labels and
//! provider.
//!
//! A label that a provider cannot take is skipped and reported with a reason
//! from a closed set. Nothing is truncated or rewritten: a tag that differs
//! from its label would mislead people and bills.

use std::collections::BTreeMap;

use slipway_core::closed_set;

closed_set!(
    /// Why a label did not become a tag.
    SkipReason {
        /// The provider reserves this prefix.
        KeyReserved => "key_reserved",
        KeyTooLong => "key_too_long",
        KeyCharacters => "key_characters",
        ValueTooLong => "value_too_long",
        ValueCharacters => "value_characters",
        /// The provider takes no more; the first labels in order were taken.
        TooMany => "too_many",
        /// The XRD of the blueprint has no `spec.cloudTags`.
        NoField => "no_field",
    }
);

impl SkipReason {
    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::KeyReserved => "the provider reserves this prefix",
            Self::KeyTooLong => "the key is too long for the provider",
            Self::KeyCharacters => "the provider does not allow these characters in a key",
            Self::ValueTooLong => "the value is too long for the provider",
            Self::ValueCharacters => "the provider does not allow these characters in a value",
            Self::TooMany => "the provider takes no more tags",
            Self::NoField => "the XRD of the blueprint has no spec.cloudTags",
        }
    }
}

/// A label that did not become a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub key: String,
    pub reason: SkipReason,
}

/// What the labels of a resource become.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloudTags {
    pub tags: BTreeMap<String, String>,
    pub skipped: Vec<Skipped>,
}

/// What a provider accepts. Lengths are in characters and include the prefix.
struct Profile {
    prefix: &'static str,
    most: usize,
    key: Text,
    value: Text,
    reserved: &'static [&'static str],
}

struct Text {
    longest: usize,
    allowed: fn(&str) -> bool,
}

/// 50 tags, not counting the provider's own; letters, digits, spaces and a few
/// signs, the same in keys and values.
const AWS: Profile = Profile {
    prefix: "slipway:",
    most: 50,
    key: Text { longest: 128, allowed: amazon },
    value: Text { longest: 256, allowed: amazon },
    reserved: &["aws:"],
};

/// 64 labels; lowercase letters, digits, `_` and `-`, a key beginning with a letter.
const GCP: Profile = Profile {
    prefix: "slipway-",
    most: 64,
    key: Text { longest: 63, allowed: google_key },
    value: Text { longest: 63, allowed: google },
    reserved: &["goog"],
};

/// Labels as in Kubernetes, without the part before a slash. The API documents
/// no maximum number; GCP's is used.
const HETZNER: Profile = Profile {
    prefix: "slipway-",
    most: 64,
    key: Text { longest: 63, allowed: |text| !text.is_empty() && kubernetes(text) },
    value: Text { longest: 63, allowed: kubernetes },
    reserved: &["hcloud"],
};

/// 50 tags; no control characters, and some signs never in a key.
const AZURE: Profile = Profile {
    prefix: "slipway-",
    most: 50,
    key: Text { longest: 512, allowed: azure_key },
    value: Text { longest: 256, allowed: |text| !text.contains(char::is_control) },
    reserved: &["microsoft", "azure", "windows"],
};

/// For an unknown provider: what all of the above accept.
const CONSERVATIVE: Profile = Profile {
    prefix: "slipway-",
    most: 50,
    key: Text { longest: 63, allowed: |text| google_key(text) && kubernetes(text) },
    value: Text { longest: 63, allowed: |text| google(text) && kubernetes(text) },
    reserved: &[],
};

fn profile(provider: &str) -> &'static Profile {
    match provider {
        "aws" => &AWS,
        "gcp" => &GCP,
        "hetzner" => &HETZNER,
        "azure" => &AZURE,
        _ => &CONSERVATIVE,
    }
}

fn amazon(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || " _.:/=+-@".contains(c))
}

fn google(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
}

fn google_key(text: &str) -> bool {
    google(text) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

fn kubernetes(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    text.is_empty()
        || (text.chars().all(|c| edge(c) || matches!(c, '-' | '_' | '.'))
            && text.starts_with(edge)
            && text.ends_with(edge))
}

fn azure_key(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() || "<>%&\\?/".contains(c))
}

impl Profile {
    fn refuses(&self, label: &str, key: &str, value: &str) -> Option<SkipReason> {
        let small = label.to_ascii_lowercase();
        if self.reserved.iter().any(|reserved| small.starts_with(reserved)) {
            Some(SkipReason::KeyReserved)
        } else if key.chars().count() > self.key.longest {
            Some(SkipReason::KeyTooLong)
        } else if !(self.key.allowed)(key) {
            Some(SkipReason::KeyCharacters)
        } else if value.chars().count() > self.value.longest {
            Some(SkipReason::ValueTooLong)
        } else if !(self.value.allowed)(value) {
            Some(SkipReason::ValueCharacters)
        } else {
            None
        }
    }
}

/// The tags of these labels at this provider. Labels are taken in the order of
/// their keys, so the same set always gives the same tags, even if there are
/// too many.
pub fn of<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>, provider: &str) -> CloudTags {
    let profile = profile(provider);
    let labels: BTreeMap<_, _> = labels.into_iter().collect();
    let mut made = CloudTags::default();
    for (label, value) in labels {
        let key = format!("{}{label}", profile.prefix);
        let full = made.tags.len() == profile.most;
        let refused = profile.refuses(label, &key, value);
        match refused.or(full.then_some(SkipReason::TooMany)) {
            Some(reason) => made.skipped.push(Skipped { key: label.to_owned(), reason }),
            None => drop(made.tags.insert(key, value.to_owned())),
        }
    }
    made
}

#[cfg(test)]
mod tests;

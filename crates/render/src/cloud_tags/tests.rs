//! Each reason once by hand, and properties of any set of labels.

use proptest::prelude::*;

use super::*;

const PROVIDERS: [&str; 5] = ["aws", "gcp", "hetzner", "azure", "elsewhere"];

fn reason(provider: &str, key: &str, value: &str) -> Option<SkipReason> {
    of([(key, value)], provider).skipped.first().map(|skipped| skipped.reason)
}

#[test]
fn each_provider_takes_what_it_documents() {
    let long = "x".repeat(257);
    let table = [
        ("aws", "team", "A b:c/d=e+f-g@h", None),
        ("aws", "team", "50%", Some(SkipReason::ValueCharacters)),
        ("aws", "team", long.as_str(), Some(SkipReason::ValueTooLong)),
        ("aws", "aws:x", "1", Some(SkipReason::KeyReserved)),
        ("gcp", "cost_center", "a-1", None),
        ("gcp", "Team", "a", Some(SkipReason::KeyCharacters)),
        ("gcp", "example.org/team", "a", Some(SkipReason::KeyCharacters)),
        ("gcp", "team", "A", Some(SkipReason::ValueCharacters)),
        ("gcp", &long[..56], "a", Some(SkipReason::KeyTooLong)),
        ("gcp", &long[..55], "a", None),
        ("hetzner", "Team.x", "A_b", None),
        ("hetzner", "team", "-a", Some(SkipReason::ValueCharacters)),
        ("hetzner", "team", "a:b", Some(SkipReason::ValueCharacters)),
        ("hetzner", "team", "", None),
        ("azure", "a b", "anything % goes", None),
        ("azure", "a/b", "x", Some(SkipReason::KeyCharacters)),
        ("elsewhere", "team", "a", None),
        ("elsewhere", "Team", "a", Some(SkipReason::KeyCharacters)),
    ];
    for (provider, key, value, expected) in table {
        assert_eq!(reason(provider, key, value), expected, "{provider}: {key}={value}");
    }
}

#[test]
fn the_cap_takes_the_first_in_order() {
    let labels: Vec<_> = (0..60).map(|n| (format!("k{n:02}"), "v".to_owned())).collect();
    let backwards = labels.iter().rev().map(|(key, value)| (key.as_str(), value.as_str()));
    let made = of(backwards, "aws");
    assert_eq!(made.tags.len(), 50);
    assert!(made.tags.contains_key("slipway:k49") && !made.tags.contains_key("slipway:k50"));
    assert!(made.skipped.iter().all(|skipped| skipped.reason == SkipReason::TooMany));
    assert_eq!(made.skipped.len(), 10);
}

proptest! {
    /// Every label becomes a tag with its own value or is reported with a
    /// reason, and every tag is within what the provider accepts.
    #[test]
    fn no_label_is_lost_or_altered(
        labels in proptest::collection::btree_map("[a-zA-Z0-9_./:-]{1,70}", "\\PC{0,70}", 0..70),
        provider in proptest::sample::select(&PROVIDERS[..]),
    ) {
        let pairs = || labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let made = of(pairs(), provider);
        prop_assert_eq!(&made, &of(pairs(), provider));
        prop_assert_eq!(made.tags.len() + made.skipped.len(), labels.len());
        let profile = profile(provider);
        prop_assert!(made.tags.len() <= profile.most);
        for (key, value) in &made.tags {
            let label = key.strip_prefix(profile.prefix).unwrap();
            prop_assert_eq!(labels.get(label), Some(value));
            prop_assert!(key.chars().count() <= profile.key.longest);
            prop_assert!(value.chars().count() <= profile.value.longest);
            prop_assert!((profile.key.allowed)(key) && (profile.value.allowed)(value));
        }
        for skipped in &made.skipped {
            prop_assert!(labels.contains_key(&skipped.key));
        }
    }

    /// More labels never take a tag away from those before them in order.
    #[test]
    fn a_later_label_changes_no_earlier_tag(
        labels in proptest::collection::btree_map("[a-y]{1,8}", "[a-z]{0,8}", 0..70),
        provider in proptest::sample::select(&PROVIDERS[..]),
    ) {
        let pairs = || labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let before = of(pairs(), provider);
        let after = of(pairs().chain([("zz", "z")]), provider);
        for (key, value) in &before.tags {
            prop_assert_eq!(after.tags.get(key), Some(value));
        }
    }
}

//! The name under which the Composition of a blueprint version is installed. Each version has
//! one of its own, so that several versions work side by side on a cluster and a composite says
//! which of them makes it.
//!
//! Crossplane reads all composites of a kind in one API version, the one that the XRD marks as
//! referenceable, and refuses a Composition whose `compositeTypeRef`, which never changes, names
//! another. So a version has one Composition for each API version in which its composites are
//! read, and [`read_as`] names it.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::ids::BlueprintVersionId;

/// The longest name: Crossplane puts it into a label of each revision of the Composition.
const MAX: usize = 63;
/// The longest name in the version's own API version, which leaves room for a dot and another.
const MAX_OWN: usize = 46;
/// The digits of the id. An id begins with the time and ends in random digits.
const DIGITS: usize = 12;
/// How much of a version is shown; the digits tell versions apart.
const MAX_VERSION: usize = 12;

/// The name in the version's own API version: what the author calls the Composition, the
/// version, and the end of its id. A DNS label, whatever the author wrote.
pub fn own(author: &str, version: &str, id: BlueprintVersionId) -> String {
    let id = id.as_uuid().simple().to_string();
    let version = label(version, MAX_VERSION);
    let room = MAX_OWN - DIGITS - version.len() - 2;
    let parts = [label(author, room), version, id[id.len() - DIGITS..].to_owned()];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

/// The name of the Composition for composites that Crossplane reads in this API version.
/// `name` and `version` are the version's own. Only names in another API version have a dot.
pub fn read_as(name: &str, version: &str, api_version: &str) -> String {
    if version == api_version {
        return name.to_owned();
    }
    let shown = format!("{name}.{api_version}");
    if shown.len() <= MAX {
        return shown;
    }
    let digest = HEXLOWER.encode(&Sha256::digest(api_version.as_bytes()));
    format!("{name}.{}", &digest[..DIGITS])
}

/// The text as a part of a DNS label, of at most this length.
fn label(text: &str, longest: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().map(plain).collect();
    let text: String = text.trim_start_matches('-').chars().take(longest).collect();
    text.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn id(number: u128) -> BlueprintVersionId {
        BlueprintVersionId::new(Uuid::from_u128(number))
    }

    fn is_label(text: &str) -> bool {
        let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        text.chars().all(|c| edge(c) || c == '-') && text.starts_with(edge) && text.ends_with(edge)
    }

    #[test]
    fn a_name_shows_author_version_and_the_api_version_it_is_read_in() {
        let name = own("xservers.example.org", "v1", id(0x1234_5678_9abc));
        assert_eq!(name, "xservers-example-org-v1-123456789abc");
        assert_eq!(read_as(&name, "v1", "v1"), name);
        assert_eq!(read_as(&name, "v1", "v2"), "xservers-example-org-v1-123456789abc.v2");
        assert_eq!(own("…", "v1", id(1)), "v1-000000000001");
    }

    proptest! {
        /// Whatever the author writes: a DNS subdomain that fits into a label's value, the same
        /// each time, and never that of another version or another API version.
        #[test]
        fn every_version_has_a_valid_name_of_its_own(
            authors in proptest::array::uniform2(".{0,300}"),
            versions in proptest::array::uniform2("[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?"),
            api_versions in proptest::array::uniform2("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"),
            ids in proptest::array::uniform2(0_u128..1 << 48),
        ) {
            let names = [0, 1].map(|n| own(&authors[n], &versions[n], id(ids[n])));
            let mut all = Vec::new();
            for (name, version) in names.iter().zip(&versions) {
                prop_assert!(is_label(name) && name.len() <= MAX_OWN, "{name}");
                for api_version in &api_versions {
                    let read = read_as(name, version, api_version);
                    prop_assert!(read.split('.').all(is_label) && read.len() <= MAX, "{read}");
                    prop_assert_eq!(&read, &read_as(name, version, api_version));
                    all.push(read);
                }
            }
            if api_versions[0] != api_versions[1] {
                prop_assert!(all[0] != all[1] && all[2] != all[3], "{all:?}");
            }
            if ids[0] != ids[1] {
                prop_assert!(!all[2..].contains(&all[0]) && !all[2..].contains(&all[1]), "{all:?}");
            }
        }
    }
}

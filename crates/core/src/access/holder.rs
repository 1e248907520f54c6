//! Who is behind a key. Two keys are one person's if they have the same owner, or if one
//! of them made the other or gave it its text, however many keys are in between: whoever
//! makes a key has read it.

/// Who is behind a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The name of the key.
    pub key: String,
    pub owner: String,
    /// The names of the keys that made or rotated it, and of those that made or rotated
    /// these.
    pub makers: Vec<String>,
}

impl Holder {
    pub fn is_same_person(&self, other: &Self) -> bool {
        self.key == other.key
            || self.owner.to_lowercase() == other.owner.to_lowercase()
            || self.makers.contains(&other.key)
            || other.makers.contains(&self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(key: &str, owner: &str, makers: &[&str]) -> Holder {
        let makers = makers.iter().map(|&name| name.to_owned()).collect();
        Holder { key: key.to_owned(), owner: owner.to_owned(), makers }
    }

    #[test]
    fn a_person_is_behind_all_their_keys() {
        let ada = holder("ada", "ada", &["admin"]);
        let bob = holder("bob", "bob", &["admin"]);
        let same = [
            (ada.clone(), ada.clone()),
            (ada.clone(), holder("ada-laptop", "Ada", &["admin"])),
            (ada.clone(), holder("other", "other", &["between", "ada", "admin"])),
            (ada.clone(), holder("admin", "admin", &[])),
        ];
        for (one, other) in same {
            assert!(one.is_same_person(&other) && other.is_same_person(&one), "{one:?} {other:?}");
        }
        assert!(!ada.is_same_person(&bob) && !bob.is_same_person(&ada), "two colleagues");
    }
}

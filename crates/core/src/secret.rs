//! A value that must not leak: it has no `Display`, no `Serialize`, and a
//! `Debug` that hides it. Code that needs the bytes calls `expose`.

use std::fmt;

/// A secret text. Compare hashes, not secrets.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself. Reviewers check every call.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_tells_nothing() {
        let text = format!("{:?}", Secret::new("psb_live_abc"));
        assert_eq!(text, "Secret(***)");
    }
}

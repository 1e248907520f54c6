//! A value that must not be shown: a bootstrap token or the key of an agent.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Serializes as its value (the identity file needs it); `Debug` hides it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoredSecret(String);

impl StoredSecret {
    pub(crate) fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Removes this value from a text that somebody else wrote, for instance
    /// a server that quotes the token in its refusal.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "[secret]") }
    }
}

impl fmt::Debug for StoredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_in_its_debug_output_and_is_taken_out_of_texts() {
        let secret = StoredSecret::new("psb_live_abc");
        assert_eq!(format!("{secret:?}"), "[secret]");
        assert_eq!(secret.redact("token psb_live_abc is spent"), "token [secret] is spent");
        assert_eq!(StoredSecret::new("").redact("unchanged"), "unchanged");
    }
}

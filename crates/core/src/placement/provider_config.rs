//! The name of the ProviderConfig through which a resource reaches its cloud.
//!
//! The resources of a project share the one that is named after the provider, as published
//! compositions expect it, and so its credential. A blueprint version that takes the name as
//! a parameter uses one of its own credential instead.

use crate::ids::CloudCredentialId;

/// A blueprint version that declares a string parameter of this name gets the name in it,
/// unless the declaration gives another.
pub const PARAMETER: &str = "providerConfigName";

/// The longest provider in the name of an own ProviderConfig: with a hyphen and twelve
/// digits it is a DNS label.
const MAX_PROVIDER: usize = 50;

/// The shared one of the provider, or the one that this credential has of its own.
pub fn name(provider: &str, own: Option<CloudCredentialId>) -> String {
    let Some(credential) = own else { return provider.to_owned() };
    // An id begins with the time and ends in random digits.
    let id = credential.as_uuid().simple().to_string();
    let provider: String = provider.chars().take(MAX_PROVIDER).collect();
    format!("{}-{}", provider.trim_end_matches('-'), &id[id.len() - 12..])
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::text::Handle;

    #[test]
    fn a_name_is_a_label_of_provider_and_credential() {
        let id = |text: &str| CloudCredentialId::new(Uuid::parse_str(text).unwrap());
        let (one, other) = (
            id("01932f8a-0000-7000-8000-0123456789ab"),
            id("01932f8a-0000-7000-8000-0123456789ac"),
        );
        assert_eq!(name("hetzner", None), "hetzner");
        assert_eq!(name("hetzner", Some(one)), "hetzner-0123456789ab");
        assert_ne!(name("hetzner", Some(one)), name("hetzner", Some(other)));
        for provider in ["a", &"p".repeat(63), &format!("{}-{}", "p".repeat(49), "q".repeat(13))] {
            assert!(Handle::parse(&name(provider, Some(one))).is_ok(), "{provider}");
        }
    }
}

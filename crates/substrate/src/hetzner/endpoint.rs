//! Where the API is. The token goes there, so plain HTTP is for loopback alone.

use reqwest::Url;

/// The address of the API, with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

/// The provider's own.
pub const DEFAULT: &str = "https://api.hetzner.cloud/v1";

/// A text that is no address of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an https URL without user, query and fragment; http only for a loopback address")]
pub struct InvalidEndpoint;

impl Endpoint {
    pub fn parse(text: &str) -> Result<Self, InvalidEndpoint> {
        let url = Url::parse(text).map_err(|_| InvalidEndpoint)?;
        let plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        let loopback = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let safe = url.scheme() == "https" || (url.scheme() == "http" && loopback);
        (plain && safe && url.host_str().is_some()).then_some(Self(url)).ok_or(InvalidEndpoint)
    }

    /// The address of a call.
    pub(super) fn at(&self, path: &[&str]) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// No certificates are needed to talk to loopback in the clear.
    pub(super) fn is_plain(&self) -> bool {
        self.0.scheme() == "http"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_nowhere_in_the_clear() {
        for good in [DEFAULT, "http://127.0.0.1:80/v1/", "http://[::1]:1/v1", "https://a.example"] {
            assert!(Endpoint::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "http://api.hetzner.cloud/v1",
            "http://127.0.0.1.example/v1",
            "https://user@a.example/v1",
            "https://a.example/v1?x=y",
            "ftp://127.0.0.1/v1",
            "v1",
        ] {
            assert_eq!(Endpoint::parse(bad), Err(InvalidEndpoint), "{bad}");
        }
        let endpoint = Endpoint::parse("http://127.0.0.1:80/v1/").unwrap();
        assert_eq!(endpoint.at(&["servers", "7"]).as_str(), "http://127.0.0.1/v1/servers/7");
    }
}

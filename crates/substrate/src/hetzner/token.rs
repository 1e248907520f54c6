//! The API token: a file that the control plane reads whenever it sends a request. The value is
//! in memory for the time of a few requests, and in no row, log or error.

use std::path::{Path, PathBuf};

use reqwest::header::HeaderValue;

use super::error::{ApiError, Reason};

/// Longer than any token.
const LONGEST: u64 = 1_024;

/// Where the token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The header of a request. A new content is used from the next request on.
    pub(super) async fn header(&self) -> Result<HeaderValue, ApiError> {
        let shown = self.0.display();
        let wrong = |problem: String| {
            ApiError::new(Reason::Token, format!("the token file {shown} {problem}"))
        };
        let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
        let metadata = tokio::fs::metadata(&self.0).await.map_err(unreadable)?;
        if !metadata.is_file() || metadata.len() > LONGEST {
            return Err(wrong("is no small file".to_owned()));
        }
        let content = tokio::fs::read(&self.0).await.map_err(unreadable)?;
        let text = content.trim_ascii();
        if text.is_empty() || !text.iter().all(u8::is_ascii_graphic) {
            return Err(wrong("does not hold one word of plain characters".to_owned()));
        }
        let header = HeaderValue::from_bytes(&[b"Bearer ", text].concat());
        let mut header = header.map_err(|_| wrong("holds no token".to_owned()))?;
        header.set_sensitive(true);
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_token_is_read_anew_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let file = TokenFile::new(&path);
        assert_eq!(file.header().await.unwrap_err().reason, Reason::Token);
        for (content, good) in
            [("abc\n", true), ("def", true), ("", false), ("two words", false), ("a\nb", false)]
        {
            std::fs::write(&path, content).unwrap();
            let header = file.header().await;
            assert_eq!(header.is_ok(), good, "{content:?}");
            match header {
                Ok(header) => {
                    assert_eq!(header.to_str().unwrap(), format!("Bearer {}", content.trim()));
                    assert!(!format!("{header:?}").contains(content.trim()));
                }
                Err(error) => assert!(content.is_empty() || !error.message.contains(content)),
            }
        }
    }
}

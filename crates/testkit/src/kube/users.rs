//! The users of the API server, and the kubeconfig of each.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};

use data_encoding::BASE64;

/// The user who may do everything.
pub const ADMIN: &str = "admin";

/// A second such user, for a program whose requests the test has to tell apart
/// from its own.
pub const OTHER_ADMIN: &str = "other-admin";

/// A user that the API server knows by a token. RBAC decides what the user may
/// do: nothing, until a test binds a role to the name or to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub groups: Vec<String>,
}

impl User {
    /// A user without groups.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), groups: Vec::new() }
    }

    /// The same user as a member of `group`.
    #[must_use]
    pub fn in_group(mut self, group: &str) -> Self {
        self.groups.push(group.to_owned());
        self
    }
}

/// A user with the current token.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    pub(super) user: User,
    pub(super) token: String,
}

impl Credentials {
    pub(super) fn issue(user: User) -> io::Result<Self> {
        let token = format!("{}-{}", user.name.replace(':', "-"), random_text()?);
        Ok(Self { user, token })
    }
}

/// The lines of `--token-auth-file`: token, name, uid, groups.
pub(super) fn token_file(credentials: &[Credentials]) -> String {
    let mut lines = String::new();
    for Credentials { user, token } in credentials {
        let groups = user.groups.join(",");
        let _infallible = writeln!(lines, "{token},{0},uid-{0},\"{groups}\"", user.name);
    }
    lines
}

/// A self-contained kubeconfig: it can be sent to a server as it is.
pub(super) fn kubeconfig(server: &str, authority: &str, user: &str, token: &str) -> String {
    let authority = BASE64.encode(authority.as_bytes());
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: test\n  \
           cluster:\n    \
             server: {server}\n    \
             certificate-authority-data: {authority}\n\
         users:\n\
         - name: \"{user}\"\n  \
           user:\n    \
             token: {token}\n\
         contexts:\n\
         - name: test\n  \
           context:\n    \
             cluster: test\n    \
             user: \"{user}\"\n\
         current-context: test\n"
    )
}

/// 128 bits. The servers listen on loopback, which other users of the machine can reach.
fn random_text() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}

#[cfg(test)]
mod tests {
    use super::{Credentials, User, token_file};

    #[test]
    fn a_line_of_the_token_file_has_all_groups_in_one_field() {
        let user = User::named("somebody").in_group("one").in_group("two");
        let line = token_file(&[Credentials { user, token: "secret".to_owned() }]);
        assert_eq!(line, "secret,somebody,uid-somebody,\"one,two\"\n");
    }

    #[test]
    fn no_two_tokens_are_alike() {
        let token = || Credentials::issue(User::named("a:b")).unwrap().token;
        let (one, two) = (token(), token());
        assert_ne!(one, two);
        assert!(one.starts_with("a-b-"), "{one}");
    }
}

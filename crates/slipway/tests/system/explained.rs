//! The output of `slipway explain`, with ids, times, paths and processes
//! masked.

use std::collections::BTreeSet;

use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary};

impl ControlPlane {
    /// Runs `slipway …` against this control plane; returns its output, masked.
    pub(crate) fn says(&self, arguments: &[&str]) -> String {
        let output = binary()
            .env("SLIPWAY_SERVER", self.url())
            .env("SLIPWAY_KEY", KEY)
            .args(arguments)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        self.masked(&String::from_utf8(output.stdout).unwrap())
    }

    /// Removes what differs from run to run: the history, which depends on the
    /// number of observations, and whether the loop is working on the row right
    /// now.
    fn masked(&self, text: &str) -> String {
        let text = text.split("\nHistory:").next().unwrap_or_default();
        let text = text.replace(&self.data_dir().display().to_string(), "<data>");
        let looks =
            ["Next: the loop observes it again", "Next: it is due now", "Next: its row is read"];
        let lines = text.lines().filter(|line| !line.starts_with("Claimed by ")).map(|line| {
            let looks = looks.iter().any(|observe| line.starts_with(observe))
                || (line.starts_with("Next: ") && line.contains(" is working on it; "));
            if looks { "Next: <an observation>" } else { line }
        });
        mask(&without_agents(lines).join("\n"))
    }

    /// Waits until exactly these codes are shown, then returns the output of `explain`.
    pub(crate) async fn explained(&self, id: &str, codes: &[&str]) -> String {
        let wanted: BTreeSet<_> = codes.iter().copied().collect();
        let path = format!("/api/v1/explain/resource/{id}");
        wait::until(TIMEOUT, &format!("{id} to have {codes:?}"), async || {
            let found = self.get(&path).await;
            let blockers = found["blockers"].as_array().unwrap();
            let shown: BTreeSet<_> = blockers.iter().map(|b| b["code"].as_str().unwrap()).collect();
            if shown == wanted { Ok(()) } else { Err(format!("{found}\n{}", self.log_tail())) }
        })
        .await;
        self.says(&["explain", "resource", id])
    }
}

/// Masks what an engine reports of an agent, one line or several below it. The process may
/// be there or not.
fn without_agents<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut below = None;
    for line in lines {
        let indent = line.len() - line.trim_start().len();
        let is_below = below.is_some_and(|below| indent > below);
        if is_below || line.trim_start().starts_with("pid: ") {
            continue;
        }
        below = line.trim_start().starts_with("agent:").then_some(indent);
        let shown = match below {
            Some(indent) => format!("{}agent: <agent>", " ".repeat(indent)),
            None => line.to_owned(),
        };
        kept.push(shown);
    }
    kept
}

/// Masks ids, times, process ids, and the agent's current status.
pub(crate) fn mask(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, shown) = masking(rest).unwrap_or((first.len_utf8(), ""));
        masked.push_str(if shown.is_empty() { &rest[..length] } else { shown });
        rest = &rest[length..];
    }
    masked
}

/// How many leading bytes are masked, and by what.
fn masking(text: &str) -> Option<(usize, &'static str)> {
    let is = |pattern: &str| {
        let of = |(have, want): (char, char)| match want {
            'x' => have.is_ascii_hexdigit(),
            '9' => have.is_ascii_digit(),
            want => have == want,
        };
        text.len() >= pattern.len()
            && text.is_char_boundary(pattern.len())
            && text.chars().zip(pattern.chars()).all(of)
    };
    if is("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
        return Some((36, "<id>"));
    }
    if is("9999-99-99T99:99:99") || is("9999-99-99 99:99:99") {
        return Some((text.find('Z')? + 1, "<time>"));
    }
    for (begin, end, shown) in [
        ("due for ", [' '].as_slice(), "due for <n>"),
        ("failures: ", &['\n'], "failures: <n>"),
        ("lag seconds: ", &['\n'], "lag seconds: <n>"),
        ("failures in a row: ", &['\n'], "failures in a row: <n>"),
        // Depends on whether the first heartbeat has arrived.
        (" registered, ", &['\n'], " registered, <reachability>"),
        ("reachability: ", &['\n'], "reachability: <reachability>"),
        ("127.0.0.1:", &['/', ' ', '"', '\n'], "<address>"),
    ] {
        if let Some(after) = text.strip_prefix(begin) {
            let length = after.find(end).unwrap_or(after.len());
            return Some((begin.len() + length, shown));
        }
    }
    None
}

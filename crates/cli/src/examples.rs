//! The examples that stand in `--help`: a table beside the command line, so
//! that one test can read them all and see that each can be typed.

use clap::Command;

/// A command by its words, and lines that work as they stand.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "resource create",
        &[
            "slipway resource create --handle web-1 --blueprint local-node --wait",
            "slipway resource create --handle web-2 --blueprint local-node -p busy_seconds=5 -l tier=web",
        ],
    ),
    (
        "resource list",
        &[
            "slipway resource list",
            "slipway resource list --project default --phase Ready -o json",
            "slipway resource list --blocked",
        ],
    ),
    ("resource get", &["slipway resource get web-1", "slipway resource get web-1 -o yaml"]),
    ("resource relabel", &["slipway resource relabel web-1 -l tier=web -l team=blue"]),
    (
        "resource delete",
        &[
            "slipway resource delete web-1 --reason replaced",
            "slipway resource delete web-1 --yes --wait --timeout 10m",
        ],
    ),
    ("resource explain", &["slipway resource explain web-1"]),
    ("resource retry", &["slipway resource retry web-1 --reason quota-raised --wait"]),
    ("resource force-drain", &["slipway resource force-drain web-1 --reason node-is-lost --yes"]),
    ("project create", &["slipway project create shop -l team=blue"]),
    ("project list", &["slipway project list", "slipway project list --show-deleted"]),
    ("project get", &["slipway project get shop"]),
    ("project relabel", &["slipway project relabel shop -l team=red"]),
    ("project mesh", &["slipway project mesh shop 10.42.0.0/16"]),
    ("project delete", &["slipway project delete shop --reason closed --yes"]),
    ("cloud create", &["slipway cloud create eu --provider hetzner --endpoint region=eu-central"]),
    ("cloud list", &["slipway cloud list"]),
    ("cloud get", &["slipway cloud get eu"]),
    ("cloud update", &["slipway cloud update eu --endpoint region=eu-north"]),
    ("cloud delete", &["slipway cloud delete eu --yes"]),
    (
        "credential create",
        &["slipway credential create deploy --cloud eu --kv-path clouds/eu/deploy"],
    ),
    ("credential list", &["slipway credential list --project shop"]),
    ("credential get", &["slipway credential get deploy --cloud eu"]),
    ("credential update", &["slipway credential update deploy --kv-path clouds/eu/deploy-2"]),
    ("credential delete", &["slipway credential delete deploy --cloud eu --yes"]),
    ("credential assign", &["slipway credential assign deploy --project shop"]),
    ("credential unassign", &["slipway credential unassign deploy --project shop --yes"]),
    (
        "blueprint create",
        &["slipway blueprint create server --display-name Server --engine crossplane"],
    ),
    (
        "blueprint publish",
        &[
            "slipway blueprint publish --folder blueprints/server",
            "slipway blueprint publish --folder blueprints/server --deliver",
        ],
    ),
    (
        "blueprint import",
        &["slipway blueprint import catalog", "slipway blueprint import catalog/server -o json"],
    ),
    ("blueprint list", &["slipway blueprint list"]),
    ("blueprint get", &["slipway blueprint get local-node"]),
    ("blueprint versions", &["slipway blueprint versions local-node"]),
    ("blueprint retire", &["slipway blueprint retire server v1 --yes"]),
    ("blueprint deliveries", &["slipway blueprint deliveries server"]),
    ("blueprint rbac", &["slipway blueprint rbac server | kubectl apply -f -"]),
    ("label define", &["slipway label define team --description owner --propagate"]),
    ("label list", &["slipway label list"]),
    ("label get", &["slipway label get team"]),
    ("label delete", &["slipway label delete team --yes"]),
    (
        "cluster create",
        &["slipway cluster create eu-1 --engine crossplane --access kubeconfig/eu-1 --region eu"],
    ),
    ("cluster list", &["slipway cluster list"]),
    ("cluster get", &["slipway cluster get local"]),
    ("cluster assign", &["slipway cluster assign eu-1 --project shop"]),
    ("cluster unassign", &["slipway cluster unassign --project shop --yes"]),
    ("cluster assignments", &["slipway cluster assignments"]),
    ("node list", &["slipway node list"]),
    ("node get", &["slipway node get 0192f0c1-2b3c-7d4e-8f50-123456789abc"]),
    ("event list", &["slipway event list --after 100 --limit 20"]),
    ("event follow", &["slipway event follow", "slipway event follow --after 0 -o json"]),
    ("event subscriptions", &["slipway event subscriptions"]),
    ("event unsubscribe", &["slipway event unsubscribe event-log --yes"]),
    ("deletion list", &["slipway deletion list --limit 20"]),
    ("deletion get", &["slipway deletion get 0192f0c1-2b3c-7d4e-8f50-123456789abc"]),
    ("leaks list", &["slipway leaks list --state all"]),
    ("leaks get", &["slipway leaks get 0192f0c1-2b3c-7d4e-8f50-123456789abc"]),
    ("leaks find", &["slipway leaks find"]),
    (
        "leaks resolve",
        &["slipway leaks resolve 0192f0c1-2b3c-7d4e-8f50-123456789abc --reason removed-by-hand"],
    ),
    (
        "leaks remove",
        &["slipway leaks remove 0192f0c1-2b3c-7d4e-8f50-123456789abc --reason nobodys --yes"],
    ),
    ("key create", &["slipway key create --name ci --role operator --project shop --ttl 24h"]),
    ("key list", &["slipway key list"]),
    ("key show", &["slipway key show 0192f0c1-2b3c-7d4e-8f50-123456789abc"]),
    ("key rotate", &["slipway key rotate 0192f0c1-2b3c-7d4e-8f50-123456789abc --overlap 1h"]),
    (
        "key revoke",
        &["slipway key revoke 0192f0c1-2b3c-7d4e-8f50-123456789abc --reason lost --yes"],
    ),
    ("key whoami", &["slipway key whoami"]),
    (
        "token issue",
        &[
            "slipway token issue web-1 --ttl 30m",
            "slipway token issue web-1 --daemon-set secret --image registry.example/plexd:1.0",
        ],
    ),
    ("token list", &["slipway token list web-1"]),
    ("token show", &["slipway token show 0192f0c1-2b3c-7d4e-8f50-123456789abc"]),
    ("token revoke", &["slipway token revoke 0192f0c1-2b3c-7d4e-8f50-123456789abc --yes"]),
    ("audit list", &["slipway audit list --verb resource.delete --limit 20"]),
    ("audit export", &["slipway audit export --since 2026-01-31T12:00:00Z > audit.jsonl"]),
    (
        "explain",
        &[
            "slipway explain resource web-1",
            "slipway explain project default",
            "slipway explain cluster local -o json",
            "slipway explain deletion 0192f0c1-2b3c-7d4e-8f50-123456789abc",
        ],
    ),
    ("freeze", &["slipway freeze --for 2h --reason maintenance --wait"]),
    ("unfreeze", &["slipway unfreeze --reason maintenance-is-over"]),
    ("resume", &["slipway resume --reason looked-at-the-plan"]),
    ("status", &["slipway status", "slipway status -o json"]),
    ("plan", &["slipway plan"]),
    (
        "demo",
        &[
            "slipway demo",
            "slipway demo --timeout 120s",
            "slipway demo --substrate crossplane --kubeconfig east.yaml",
        ],
    ),
];

/// Puts the examples into the help of each command. A command that says
/// something there already keeps it, before them.
#[must_use]
pub fn with_examples(mut command: Command) -> Command {
    for (path, lines) in EXAMPLES {
        let words: Vec<&str> = path.split(' ').collect();
        command = at(command, &words, lines);
    }
    command
}

fn at(command: Command, path: &[&str], lines: &[&str]) -> Command {
    let Some((first, rest)) = path.split_first() else {
        let mut text = String::from("Examples:");
        for line in lines {
            text = format!("{text}\n  {line}");
        }
        let before = command.get_after_help().map(ToString::to_string);
        return command.after_help(match before {
            Some(before) => format!("{before}\n\n{text}"),
            None => text,
        });
    };
    // Some commands are only there in the whole program, or not yet.
    if command.find_subcommand(first).is_none() {
        return command;
    }
    command.mut_subcommand(*first, |inner| at(inner, rest, lines))
}

//! The graph of dependencies between the groups of a workspace. Servers come in its order; a
//! teardown goes through it the other way round.

use std::collections::{BTreeMap, BTreeSet};

/// A group, and what has to be there before its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node<'a> {
    pub name: &'a str,
    pub depends_on: &'a [String],
}

/// The names that the graph lacks, each with who depends on it.
pub fn unknown<'a>(nodes: &[Node<'a>]) -> Vec<(&'a str, &'a str)> {
    let names: BTreeSet<&str> = nodes.iter().map(|node| node.name).collect();
    let lacking = |node: &Node<'a>| {
        let missing = node.depends_on.iter().filter(|on| !names.contains(on.as_str()));
        missing.map(|on| (node.name, on.as_str())).collect::<Vec<_>>()
    };
    nodes.iter().flat_map(lacking).collect()
}

/// The groups of a cycle, if there is one: each depends on the next, the last on the first.
pub fn cycle(nodes: &[Node<'_>]) -> Option<Vec<String>> {
    let edges: BTreeMap<&str, &[String]> =
        nodes.iter().map(|node| (node.name, node.depends_on)).collect();
    let mut left: BTreeMap<&str, BTreeSet<&str>> = edges
        .iter()
        .map(|(name, on)| {
            let known = on.iter().map(String::as_str).filter(|on| edges.contains_key(on));
            (*name, known.collect())
        })
        .collect();
    // Takes away what depends on nothing that is left, until only cycles and what leads to
    // them are there.
    loop {
        let free: Vec<&str> =
            left.iter().filter(|(_, on)| on.is_empty()).map(|(name, _)| *name).collect();
        if free.is_empty() {
            break;
        }
        for name in &free {
            left.remove(name);
        }
        for on in left.values_mut() {
            on.retain(|one| !free.contains(one));
        }
    }
    let mut at = *left.keys().next()?;
    let mut path: Vec<&str> = Vec::new();
    loop {
        if let Some(from) = path.iter().position(|one| *one == at) {
            return Some(path[from..].iter().map(|one| (*one).to_owned()).collect());
        }
        path.push(at);
        at = left.get(at)?.iter().next()?;
    }
}

/// The groups in layers: each depends only on groups of earlier layers. Groups of a cycle are
/// in none.
pub fn layers<'a>(nodes: &[Node<'a>]) -> Vec<Vec<&'a str>> {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut layers = Vec::new();
    loop {
        let ready = |node: &&Node<'a>| {
            !done.contains(node.name) && node.depends_on.iter().all(|on| done.contains(on.as_str()))
        };
        let layer: Vec<&str> = nodes.iter().filter(ready).map(|node| node.name).collect();
        if layer.is_empty() {
            return layers;
        }
        done.extend(&layer);
        layers.push(layer);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nodes<'a>(graph: &'a [(String, Vec<String>)]) -> Vec<Node<'a>> {
        graph.iter().map(|(name, on)| Node { name, depends_on: on }).collect()
    }

    fn graph(edges: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        edges.iter().map(|(name, on)| ((*name).to_owned(), owned(on))).collect()
    }

    #[test]
    fn a_cycle_is_named_and_what_only_leads_to_it_is_not() {
        let looped = graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &[])]);
        let mut found = cycle(&nodes(&looped)).unwrap();
        found.sort();
        assert_eq!(found, ["b", "c"]);
        let own = graph(&[("a", &["a"])]);
        assert_eq!(cycle(&nodes(&own)).unwrap(), ["a"]);
        let straight = graph(&[("a", &["b"]), ("b", &[])]);
        assert_eq!(cycle(&nodes(&straight)), None);
    }

    #[test]
    fn what_is_not_there_is_named_with_who_wants_it() {
        let graph = graph(&[("a", &["b", "x"]), ("b", &[])]);
        assert_eq!(unknown(&nodes(&graph)), [("a", "x")]);
    }

    proptest! {
        /// Every group is in one layer, after all that it depends on; or there is a cycle, and
        /// its groups really depend on each other.
        #[test]
        fn layers_have_every_group_after_what_it_depends_on(
            edges in prop::collection::vec(prop::collection::btree_set(0..8_usize, 0..4), 1..8),
        ) {
            let count = edges.len();
            let graph: Vec<(String, Vec<String>)> = edges
                .iter()
                .enumerate()
                .map(|(number, on)| {
                    let known = on.iter().filter(|on| **on < count).map(|on| format!("g{on}"));
                    (format!("g{number}"), known.collect())
                })
                .collect();
            let nodes = nodes(&graph);
            let layers = layers(&nodes);
            let position = |name: &str| layers.iter().position(|layer| layer.contains(&name));
            match cycle(&nodes) {
                None => {
                    prop_assert_eq!(layers.iter().map(Vec::len).sum::<usize>(), count);
                    for (name, on) in &graph {
                        prop_assert!(on.iter().all(|on| position(on) < position(name)));
                    }
                }
                Some(found) => {
                    for (number, name) in found.iter().enumerate() {
                        let next = &found[(number + 1) % found.len()];
                        let on = graph.iter().find(|(one, _)| one == name).map(|(_, on)| on);
                        prop_assert!(on.is_some_and(|on| on.contains(next)));
                        prop_assert_eq!(position(name), None);
                    }
                }
            }
        }
    }
}

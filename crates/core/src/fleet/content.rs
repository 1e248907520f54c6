//! The content of a deployment object: one or more YAML documents, checked before they are
//! stored. What is stored is the text as it came, byte for byte; this module only reads it.
//!
//! A document may refer to itself by anchors, so that a short text stands for a huge tree. The
//! reader builds no tree: it walks the nodes, counts them, and stops at a limit.

use std::cell::Cell;
use std::fmt;

use data_encoding::HEXLOWER;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use sha2::{Digest, Sha256};

use crate::error::Refusal;
use crate::ids::DeploymentObjectId;

/// The largest content: 4 MiB, twice what an API server takes as one object.
pub const CONTENT_MAX: usize = 4 * 1024 * 1024;

/// The most nodes that the documents of a content stand for, aliases resolved. Content of the
/// largest size with eight bytes a node has half a million.
pub const NODES_MAX: u32 = 1_000_000;

/// The deepest nesting. Kubernetes itself refuses more than 10,000; no real object has 50.
pub const DEPTH_MAX: u32 = 100;

/// Content that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    text: String,
    /// How many documents it has.
    documents: u32,
    has_secret: bool,
}

impl Content {
    /// Reads content. It has at least one document, and every document is a mapping.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if text.len() > CONTENT_MAX {
            let problem = format!(
                "has {} bytes, and at most {CONTENT_MAX} (4 MiB) are taken; split it into several stacks",
                text.len()
            );
            return Err(invalid(problem));
        }
        if text.contains('\0') {
            return Err(invalid("must not contain U+0000"));
        }
        let budget = Cell::new(NODES_MAX);
        let (mut documents, mut has_secret) = (0, false);
        for document in serde_yaml_ng::Deserializer::from_str(text) {
            let found = Walk { budget: &budget, depth: 0 }.deserialize(document);
            match found.map_err(|error| invalid(shown(&error)))? {
                Node::Null => {}
                Node::Mapping(object) => {
                    documents += 1;
                    has_secret |= object.is_secret();
                }
                Node::Text(_) | Node::Sequence(_) | Node::Scalar => {
                    let problem = format!(
                        "must have only mappings as documents, such as `kind: ConfigMap`; document {} is none",
                        documents + 1
                    );
                    return Err(invalid(problem));
                }
            }
        }
        if documents == 0 {
            let problem = "must have a document; to remove what a stack has deployed, submit a deletion marker or delete the stack";
            return Err(invalid(problem));
        }
        Ok(Self { text: text.to_owned(), documents, has_secret })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub const fn documents(&self) -> u32 {
        self.documents
    }

    /// Whether a document is a Secret with values, also one within a List.
    pub const fn has_secret(&self) -> bool {
        self.has_secret
    }

    pub fn checksum(&self) -> String {
        checksum(&self.text)
    }
}

/// SHA-256 of a text, in hexadecimal.
pub fn checksum(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

/// The checksum of a marker. It differs from that of any content and of any other marker, so
/// that an agent which compares checksums acts on each.
pub fn marker_checksum(id: DeploymentObjectId) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"slipway deletion marker\0");
    hasher.update(id.as_uuid().as_bytes());
    HEXLOWER.encode(&hasher.finalize())
}

fn invalid(problem: impl fmt::Display) -> Refusal {
    Refusal::invalid("yaml_content", problem)
}

/// Where the fault is, and what it is. The parser quotes no content but the offending token.
fn shown(error: &serde_yaml_ng::Error) -> String {
    let problem = error.to_string();
    let problem = problem.split(" at line ").next().unwrap_or_default();
    match error.location() {
        Some(at) => {
            format!("is no valid YAML at line {}, column {}: {problem}", at.line(), at.column())
        }
        None => format!("is no valid YAML: {problem}"),
    }
}

/// What a node is, as far as a rule asks.
#[derive(Debug)]
enum Node {
    Null,
    Text(String),
    Scalar,
    /// The mappings in it.
    Sequence(Vec<Object>),
    Mapping(Object),
}

/// What a mapping says about itself.
#[derive(Debug, Default)]
struct Object {
    is_kind_secret: bool,
    has_values: bool,
    /// An item of it is a Secret with values.
    has_secret_item: bool,
}

impl Object {
    const fn is_secret(&self) -> bool {
        self.has_secret_item || (self.is_kind_secret && self.has_values)
    }

    /// Takes over what a merge key (`<<`) brings in.
    fn merge(&mut self, other: &Self) {
        self.is_kind_secret |= other.is_kind_secret;
        self.has_values |= other.has_values;
        self.has_secret_item |= other.has_secret_item;
    }

    fn entry(&mut self, key: &str, value: Node) {
        match (key, value) {
            ("kind", Node::Text(kind)) => self.is_kind_secret |= kind == "Secret",
            ("data" | "stringData", Node::Null) => {}
            ("data" | "stringData", _) => self.has_values = true,
            ("items", Node::Sequence(items)) => {
                self.has_secret_item |= items.iter().any(Self::is_secret);
            }
            ("<<", Node::Mapping(merged)) => self.merge(&merged),
            ("<<", Node::Sequence(all)) => all.iter().for_each(|merged| self.merge(merged)),
            _ => {}
        }
    }
}

/// Walks a node without keeping it.
#[derive(Clone, Copy)]
struct Walk<'a> {
    budget: &'a Cell<u32>,
    depth: u32,
}

impl Walk<'_> {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth >= DEPTH_MAX {
            return Err(E::custom(format!("it is nested deeper than {DEPTH_MAX} levels")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Node;

    fn deserialize<D: serde::Deserializer<'de>>(self, node: D) -> Result<Node, D::Error> {
        let Some(left) = self.budget.get().checked_sub(1) else {
            let problem = format!("it stands for more than {NODES_MAX} nodes");
            return Err(D::Error::custom(problem));
        };
        self.budget.set(left);
        node.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML node")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    /// Only short texts are compared with anything.
    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(if text.len() <= 16 { Node::Text(text.to_owned()) } else { Node::Scalar })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let inner = self.inner()?;
        let mut mappings = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            if let Node::Mapping(object) = item
                && (object.is_kind_secret || object.has_values || object.has_secret_item)
            {
                mappings.push(object);
            }
        }
        Ok(Node::Sequence(mappings))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let inner = self.inner()?;
        let mut object = Object::default();
        while let Some(key) = entries.next_key_seed(inner)? {
            let value = entries.next_value_seed(inner)?;
            if let Node::Text(key) = key {
                object.entry(&key, value);
            }
        }
        Ok(Node::Mapping(object))
    }

    /// A node with a tag of its own, such as `!thing x`.
    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, tagged: A) -> Result<Node, A::Error> {
        use serde::de::VariantAccess as _;
        let (_, value): (Node, _) = tagged.variant_seed(self.inner()?)?;
        value.newtype_variant_seed(self.inner()?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn fault(text: &str) -> String {
        let refusal = Content::parse(text).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("yaml_content"), "{text}");
        refusal.message
    }

    #[test]
    fn several_documents_are_one_content() {
        let text = "---\nkind: Namespace\n---\n# nothing\n---\nkind: ConfigMap\ndata: {a: b}\n";
        let content = Content::parse(text).unwrap();
        assert_eq!((content.documents(), content.as_str()), (2, text));
        assert!(!content.has_secret());
        assert_eq!(content.checksum(), Content::parse(text).unwrap().checksum());
        assert_eq!(content.checksum().len(), 64);
    }

    #[test]
    fn a_fault_is_named_with_its_line_and_column() {
        let message = fault("kind: A\n---\nkind: B\n  bad: [1,\n");
        assert!(message.contains("line 4, column"), "{message}");
        assert!(fault("kind: A\n---\n- 1\n").contains("document 2"), "a list is no object");
        assert!(fault("just text").contains("mappings"));
    }

    #[test]
    fn content_is_never_empty() {
        for empty in ["", " \n", "---\n---\n", "# only a comment\n", "null", "~"] {
            assert!(fault(empty).contains("deletion marker"), "{empty:?}");
        }
    }

    #[test]
    fn four_mebibytes_are_taken_and_a_byte_more_is_not() {
        let text = |bytes: usize| format!("a: {}", "x".repeat(bytes - 3));
        assert!(Content::parse(&text(CONTENT_MAX)).is_ok());
        assert!(fault(&text(CONTENT_MAX + 1)).contains("4 MiB"));
        assert!(fault("a: \0").contains("U+0000"));
    }

    /// Each level refers ten times to the one before: ten to the ninth nodes, were they built.
    #[test]
    fn a_bomb_ends() {
        let mut bomb = "a0: &a0 [x]\n".to_owned();
        for level in 1..10 {
            let before = format!("*a{}", level - 1);
            let ten = vec![before; 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{ten}]\n"));
        }
        let message = fault(&bomb);
        assert!(message.contains("nodes") || message.contains("repetition"), "{message}");
        let deep = format!("a: {}{}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(fault(&deep).contains("nested deeper"));
        let wide = format!("a: [{}1]", "1,".repeat(NODES_MAX as usize));
        assert!(fault(&wide).contains("more than 1000000 nodes"));
    }

    #[test]
    fn a_secret_with_values_is_seen_wherever_it_hides() {
        let secrets = [
            "kind: Secret\ndata: {a: Yg==}",
            "stringData:\n  a: b\nkind: Secret",
            "kind: List\nitems:\n- kind: ConfigMap\n- kind: Secret\n  data: {a: b}",
            "kind: ConfigMap\n---\n\"kind\": \"Secret\"\ndata: {a: b}",
            "base: &base {kind: Secret}\n<<: *base\ndata: {a: b}",
            "<<: [{kind: Secret}, {stringData: {a: b}}]",
            "kind: List\nitems: [{kind: List, items: [{kind: Secret, data: {a: b}}]}]",
        ];
        for text in secrets {
            assert!(Content::parse(text).unwrap().has_secret(), "{text}");
        }
        let others = [
            "kind: Secret\nmetadata: {name: a}",
            "kind: Secret\ndata:\n",
            "kind: ConfigMap\ndata: {kind: Secret}",
            "kind: ExternalSecret\ndata: [{a: b}]",
        ];
        for text in others {
            assert!(!Content::parse(text).unwrap().has_secret(), "{text}");
        }
    }

    #[test]
    fn a_marker_has_a_checksum_of_its_own() {
        let id = |number| DeploymentObjectId::new(Uuid::from_u128(number));
        assert_eq!(marker_checksum(id(1)), marker_checksum(id(1)));
        assert_ne!(marker_checksum(id(1)), marker_checksum(id(2)));
        assert_ne!(marker_checksum(id(1)), HEXLOWER.encode(&Sha256::digest(b"")));
    }

    proptest! {
        #[test]
        fn any_text_is_taken_as_it_is_or_refused(text in any::<String>()) {
            if let Ok(content) = Content::parse(&text) {
                prop_assert_eq!(content.as_str(), text);
                prop_assert!(content.documents() > 0);
            }
        }

        #[test]
        fn what_is_in_yaml_brackets_ends(text in r"[\[\]{}:&*a,\- \n!|>]{0,60}") {
            let _ = Content::parse(&text);
        }
    }
}

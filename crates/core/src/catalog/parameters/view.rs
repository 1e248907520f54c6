//! Reads a schema as people and other checks need it: fields, types and marks, with `$ref`
//! followed. Keywords that combine schemas (`allOf`, `anyOf` and the like) are not looked into.

use std::fmt::Write as _;

use serde_json::Value;

/// The keyword that marks what cannot change in place.
pub const IMMUTABLE: &str = "x-immutable";

/// A reference may lead to a reference; a published schema has no longer chains.
const MAX_HOPS: usize = 16;

/// A part of a schema.
#[derive(Debug, Clone)]
pub struct View<'a> {
    root: &'a Value,
    /// The part itself and what its `$ref` leads to; the first that has a keyword counts.
    chain: Vec<&'a Value>,
}

/// A parameter or a field of one, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// Such as `disk.size`, or `disks[].size` for the items of an array.
    pub name: String,
    /// Such as `integer` or `array of string`.
    pub kind: String,
    pub required: bool,
    pub immutable: bool,
    pub default: Option<Value>,
    /// Such as `1 to 10`.
    pub limits: String,
}

impl<'a> View<'a> {
    pub(super) fn of(root: &'a Value, part: &'a Value) -> Self {
        let mut chain = vec![part];
        while let Some(next) = chain.last().and_then(|part| referenced(root, part)) {
            if chain.len() > MAX_HOPS {
                break;
            }
            chain.push(next);
        }
        Self { root, chain }
    }

    /// A keyword of the schema.
    pub fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.chain.iter().find_map(|part| part.get(keyword))
    }

    pub fn is_immutable(&self) -> bool {
        self.chain.iter().any(|part| part[IMMUTABLE] == true)
    }

    /// The types that are named; none if anything is taken.
    pub fn types(&self) -> Vec<&'a str> {
        match self.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// The fields that are named, in the order of their names.
    pub fn properties(&self) -> Vec<(&'a str, Self)> {
        let named = self.get("properties").and_then(Value::as_object).into_iter().flatten();
        named.map(|(name, part)| (name.as_str(), Self::of(self.root, part))).collect()
    }

    /// The schema of a field: the named one, or the one for all others.
    pub fn field(&self, name: &str) -> Option<Self> {
        let named = self.get("properties").and_then(|named| named.get(name));
        named.map(|part| Self::of(self.root, part)).or_else(|| self.others())
    }

    /// The schema of fields without a name of their own.
    pub fn others(&self) -> Option<Self> {
        let part = self.get("additionalProperties").filter(|part| part.is_object())?;
        Some(Self::of(self.root, part))
    }

    /// Whether fields are taken that have no name and no schema.
    pub fn is_open(&self) -> bool {
        self.get("additionalProperties").is_none_or(|others| *others == true)
    }

    pub fn items(&self) -> Option<Self> {
        self.get("items").filter(|part| part.is_object()).map(|part| Self::of(self.root, part))
    }

    fn requires(&self, name: &str) -> bool {
        let required = self.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|one| one == name))
    }

    /// Every field below this one, each before its own fields.
    pub(super) fn describe(&self, above: &str, rows: &mut Vec<Described>) {
        for (name, field) in self.properties() {
            let name_here = format!("{above}{name}");
            let required = self.requires(name);
            rows.push(field.described(name_here.clone(), required));
            field.describe_below(&name_here, rows);
        }
        if let Some(others) = self.others() {
            let name_here = format!("{above}*");
            rows.push(others.described(name_here.clone(), false));
            others.describe_below(&name_here, rows);
        }
    }

    fn describe_below(&self, name: &str, rows: &mut Vec<Described>) {
        self.describe(&format!("{name}."), rows);
        if let Some(items) = self.items() {
            items.describe(&format!("{name}[]."), rows);
        }
    }

    fn described(&self, name: String, required: bool) -> Described {
        Described {
            name,
            kind: self.kind(),
            required,
            immutable: self.is_immutable(),
            default: self.get("default").cloned(),
            limits: self.limits(),
        }
    }

    /// Its type in words.
    pub fn kind(&self) -> String {
        let types = self.types();
        match (types.as_slice(), self.items()) {
            ([], _) => "any".to_owned(),
            (["array"], Some(items)) => format!("array of {}", items.kind()),
            (several, _) => several.join(" or "),
        }
    }

    /// Its bounds in words.
    fn limits(&self) -> String {
        let mut limits = Vec::new();
        if let Some(only) = self.get("const") {
            limits.push(format!("only {only}"));
        }
        if let Some(Value::Array(options)) = self.get("enum") {
            limits.push(format!("one of {}", listed(options)));
        }
        for (least, most, unit) in [
            ("minimum", "maximum", ""),
            ("minLength", "maxLength", " characters"),
            ("minItems", "maxItems", " items"),
            ("minProperties", "maxProperties", " fields"),
        ] {
            match (self.get(least), self.get(most)) {
                (Some(least), Some(most)) => limits.push(format!("{least} to {most}{unit}")),
                (Some(least), None) => limits.push(format!("at least {}", counted(least, unit))),
                (None, Some(most)) => limits.push(format!("at most {}", counted(most, unit))),
                (None, None) => {}
            }
        }
        for (keyword, words) in [
            ("exclusiveMinimum", "more than"),
            ("exclusiveMaximum", "less than"),
            ("multipleOf", "a multiple of"),
            ("format", "as"),
            ("pattern", "matches"),
        ] {
            match self.get(keyword) {
                Some(Value::String(text)) => limits.push(format!("{words} {text}")),
                Some(other) => limits.push(format!("{words} {other}")),
                None => {}
            }
        }
        limits.join(", ")
    }
}

fn referenced<'a>(root: &'a Value, part: &Value) -> Option<&'a Value> {
    root["$defs"].get(part["$ref"].as_str()?.strip_prefix("#/$defs/")?)
}

/// A number with its unit, which is in the plural.
fn counted(number: &Value, unit: &str) -> String {
    match *number == 1 {
        true => format!("{number}{}", unit.strip_suffix('s').unwrap_or(unit)),
        false => format!("{number}{unit}"),
    }
}

/// Options as people read them, the first few of many.
pub(super) fn listed(options: &[Value]) -> String {
    const MOST: usize = 12;
    let shown: Vec<_> = options.iter().take(MOST).map(short).collect();
    let mut text = shown.join(", ");
    if options.len() > MOST {
        let _ = write!(text, " and {} more", options.len() - MOST);
    }
    text
}

/// A value of a schema in an error text.
pub(super) fn short(value: &Value) -> String {
    let text = value.to_string();
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(63).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

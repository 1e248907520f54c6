//! A workspace as a document declares it, and the checks that need nothing but the document.
//! Every fault names its field, such as `spec.groups.workers.scale.min`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::catalog::Name;
use crate::error::{Refusal, or_fault};
use crate::files::fields::Fields;
use crate::topology::graph;
use crate::topology::group::{GroupSpec, NUMBER, check_pattern};
use crate::topology::role::NodeRole;
use crate::topology::rollout::DELETE_PROTECTION;

/// How many groups and single servers a workspace may have.
pub const GROUPS_MAX: usize = 100;
/// How many servers a group may have.
pub const SERVERS_MAX: u32 = 10_000;

/// The spec of a document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    #[serde(default)]
    pub groups: Vec<DeclaredGroup>,
    #[serde(default)]
    pub servers: Vec<DeclaredServer>,
}

/// Servers that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeclaredGroup {
    pub name: String,
    pub role: String,
    pub count: u32,
    pub scale: ScalePolicy,
    #[serde(flatten)]
    pub made_of: MadeOf,
}

/// How far a group may shrink and grow, and what its servers look like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScalePolicy {
    pub min: u32,
    pub max: u32,
    pub template: HardwareProfile,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HardwareProfile {
    pub hostname_pattern: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hardware: BTreeMap<String, Value>,
}

/// One server on its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeclaredServer {
    pub name: String,
    pub role: String,
    #[serde(flatten)]
    pub made_of: MadeOf,
}

/// What servers are made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MadeOf {
    pub blueprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_lock: Option<bool>,
}

impl Declared {
    /// Checks the declaration as a whole; a refusal names all faults at once.
    pub fn check(&self) -> Result<Vec<GroupSpec>, Refusal> {
        let mut faults = Vec::new();
        if self.groups.len() + self.servers.len() > GROUPS_MAX {
            let problem = format!("has more than {GROUPS_MAX} groups and servers");
            faults.push(Refusal::invalid("spec.groups", problem));
        }
        let groups = self.groups.iter().map(|group| group.check(&mut faults));
        let groups: Vec<_> = groups.collect();
        let servers = self.servers.iter().map(|server| server.check(&mut faults));
        let servers: Vec<_> = servers.collect();
        let specs: Vec<GroupSpec> = groups.into_iter().chain(servers).flatten().collect();
        faults.extend(specs.iter().filter_map(unprotected));
        names(&specs, &mut faults);
        dependencies(&specs, &mut faults);
        Refusal::all(faults)?;
        Ok(specs)
    }
}

impl DeclaredGroup {
    fn field(&self, field: &str) -> String {
        format!("spec.groups.{}.{field}", self.name)
    }

    fn check(&self, faults: &mut Vec<Refusal>) -> Option<GroupSpec> {
        let name = or_fault(Name::parse(&self.field("name"), &self.name), faults);
        let role = or_fault(NodeRole::parse_field(&self.field("role"), &self.role), faults);
        let ScalePolicy { min, max, template } = &self.scale;
        if min > max {
            let problem = format!("is {min}, which is more than `scale.max`, {max}");
            faults.push(Refusal::invalid(self.field("scale.min"), problem));
        }
        if *max > SERVERS_MAX {
            let problem = format!("must be at most {SERVERS_MAX}");
            faults.push(Refusal::invalid(self.field("scale.max"), problem));
        }
        if self.count > SERVERS_MAX {
            let problem = format!("must be at most {SERVERS_MAX}");
            faults.push(Refusal::invalid(self.field("count"), problem));
        }
        if let Err(problem) = check_pattern(&template.hostname_pattern) {
            let field = self.field("scale.template.hostname_pattern");
            faults.push(Refusal::invalid(field, problem));
        }
        let delete_lock = role.and_then(|role| {
            or_fault(lock(role, self.made_of.delete_lock, &self.field("delete_lock")), faults)
        });
        let made_of = &self.made_of;
        Some(GroupSpec {
            name: name?,
            single: false,
            role: role?,
            wanted: self.count,
            min: *min,
            max: *max,
            hostname_pattern: template.hostname_pattern.clone(),
            blueprint: made_of.blueprint.clone(),
            version: made_of.version.clone(),
            credential: made_of.credential.clone(),
            parameters: made_of.parameters.clone(),
            hardware: template.hardware.clone(),
            depends_on: made_of.depends_on.clone(),
            delete_lock: delete_lock?,
        })
    }
}

impl DeclaredServer {
    fn check(&self, faults: &mut Vec<Refusal>) -> Option<GroupSpec> {
        let field = |field: &str| format!("spec.servers.{}.{field}", self.name);
        let name = or_fault(Name::parse(&field("name"), &self.name), faults);
        let role = or_fault(NodeRole::parse_field(&field("role"), &self.role), faults);
        let made_of = &self.made_of;
        let delete_lock = role.and_then(|role| {
            or_fault(lock(role, made_of.delete_lock, &field("delete_lock")), faults)
        });
        Some(GroupSpec {
            name: name?,
            single: true,
            role: role?,
            wanted: 1,
            min: 0,
            max: 1,
            hostname_pattern: self.name.clone(),
            blueprint: made_of.blueprint.clone(),
            version: made_of.version.clone(),
            credential: made_of.credential.clone(),
            parameters: made_of.parameters.clone(),
            hardware: BTreeMap::new(),
            depends_on: made_of.depends_on.clone(),
            delete_lock: delete_lock?,
        })
    }
}

fn lock(role: NodeRole, said: Option<bool>, field: &str) -> Result<bool, Refusal> {
    match (role.is_always_locked(), said) {
        (true, Some(false)) => {
            let problem = format!(
                "cannot be false for role {role}: its servers are always locked; leave it out"
            );
            Err(Refusal::invalid(field, problem))
        }
        (locked, said) => Ok(locked || said.unwrap_or(false)),
    }
}

/// The provider's protection follows the lock, so nobody takes it from locked servers.
fn unprotected(spec: &GroupSpec) -> Option<Refusal> {
    let values = spec.values();
    let is_off = values.get(DELETE_PROTECTION) == Some(&Value::Bool(false));
    (spec.delete_lock && is_off).then(|| {
        let field = format!("{}.parameters.{DELETE_PROTECTION}", path(spec));
        Refusal::invalid(field, "cannot be false where servers are locked; leave it out")
    })
}

/// Groups and servers have different names, and no two would name a server alike.
fn names(specs: &[GroupSpec], faults: &mut Vec<Refusal>) {
    let (mut seen, mut patterns) = (BTreeSet::new(), BTreeMap::new());
    for spec in specs {
        if !seen.insert(spec.name.as_str()) {
            let problem = "is declared twice; names are unique among groups and servers";
            faults.push(Refusal::invalid(format!("{}.name", path(spec)), problem));
        }
        if let Some(other) = patterns.insert(spec.hostname_pattern.as_str(), spec.name.as_str()) {
            faults.push(duplicate(spec, other));
        }
    }
    let patterns = specs.iter().filter(|spec| !spec.single);
    for group in patterns {
        let (prefix, suffix) = group.hostname_pattern.split_once(NUMBER).unwrap_or_default();
        let clash = specs.iter().find(|spec| {
            let middle = spec
                .hostname_pattern
                .strip_prefix(prefix)
                .and_then(|rest| rest.strip_suffix(suffix));
            spec.single
                && middle.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        });
        if let Some(single) = clash {
            faults.push(duplicate(single, group.name.as_str()));
        }
    }
}

fn duplicate(spec: &GroupSpec, other: &str) -> Refusal {
    let field = if spec.single { "name" } else { "scale.template.hostname_pattern" };
    let problem = format!(
        "makes the same names of servers as `{other}`: `{}`; choose another",
        spec.hostname_pattern
    );
    Refusal::invalid(format!("{}.{field}", path(spec)), problem)
}

fn dependencies(specs: &[GroupSpec], faults: &mut Vec<Refusal>) {
    let nodes: Vec<_> = specs.iter().map(GroupSpec::node).collect();
    let of = |name: &str| specs.iter().find(|spec| spec.name.as_str() == name);
    for (name, on) in graph::unknown(&nodes) {
        let Some(spec) = of(name) else { continue };
        let problem = format!("names `{on}`, which is no group or server of the workspace");
        faults.push(Refusal::invalid(format!("{}.depends_on", path(spec)), problem));
    }
    if let Some(cycle) = graph::cycle(&nodes)
        && let Some(spec) = cycle.first().and_then(|name| of(name))
    {
        let mut around = cycle.clone();
        around.extend(cycle.first().cloned());
        let problem = format!("goes in a circle: {}", around.join(" → "));
        faults.push(Refusal::invalid(format!("{}.depends_on", path(spec)), problem));
    }
}

/// The field of a group or a single server.
pub(crate) fn path(spec: &GroupSpec) -> String {
    let list = if spec.single { "servers" } else { "groups" };
    format!("spec.{list}.{}", spec.name)
}

/// The declaration that these groups come from.
pub fn of_specs<'a>(specs: impl IntoIterator<Item = &'a GroupSpec>) -> Declared {
    let mut declared = Declared::default();
    for spec in specs {
        let made_of = MadeOf {
            blueprint: spec.blueprint.clone(),
            version: spec.version.clone(),
            credential: spec.credential.clone(),
            parameters: spec.parameters.clone(),
            depends_on: spec.depends_on.clone(),
            delete_lock: Some(spec.delete_lock),
        };
        let (name, role) = (spec.name.to_string(), spec.role.as_str().to_owned());
        if spec.single {
            declared.servers.push(DeclaredServer { name, role, made_of });
            continue;
        }
        let template = HardwareProfile {
            hostname_pattern: spec.hostname_pattern.clone(),
            hardware: spec.hardware.clone(),
        };
        let scale = ScalePolicy { min: spec.min, max: spec.max, template };
        declared.groups.push(DeclaredGroup { name, role, count: spec.wanted, scale, made_of });
    }
    declared
}

/// The fields of a declaration, one for each part of a group or a server that people change:
/// `spec.groups.workers.count`. Names have no dots.
pub fn to_fields(declared: &Declared) -> Fields {
    let mut fields = Fields::new();
    let lists = [
        ("groups", declared.groups.iter().map(|one| (&one.name, json!(one))).collect::<Vec<_>>()),
        ("servers", declared.servers.iter().map(|one| (&one.name, json!(one))).collect()),
    ];
    for (list, entries) in lists {
        for (name, value) in entries {
            let mut path = format!("spec.{list}.{name}");
            let length = path.len();
            for (field, value) in parts(value) {
                path.truncate(length);
                path.push('.');
                path.push_str(&field);
                fields.insert(path.clone(), value);
            }
        }
    }
    fields
}

/// The fields of a group: those of its scale policy and its template by themselves.
fn parts(value: Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut left = vec![(String::new(), value)];
    while let Some((path, value)) = left.pop() {
        match value {
            Value::Object(fields) if NESTED.contains(&path.as_str()) => {
                for (name, value) in fields {
                    let below = if path.is_empty() { name } else { format!("{path}.{name}") };
                    left.push((below, value));
                }
            }
            // The name is a part of the path.
            value if path != "name" && !value.is_null() => found.push((path, value)),
            _ => {}
        }
    }
    found
}

/// The parts of a group that have fields of their own.
const NESTED: [&str; 3] = ["", "scale", "scale.template"];

/// The declaration that has these fields. A group or server without a role is not declared any
/// more: the fields that are left of it belong to nobody.
pub fn of_fields(fields: &Fields) -> Result<Declared, Refusal> {
    let mut lists: BTreeMap<(&str, &str), Value> = BTreeMap::new();
    for (path, value) in fields {
        let mut parts = path.strip_prefix("spec.").unwrap_or_default().splitn(3, '.');
        let (Some(list), Some(name), Some(field)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let mut at = lists.entry((list, name)).or_insert_with(|| json!({ "name": name }));
        for part in field.split('.') {
            at = &mut at[part];
        }
        *at = value.clone();
    }
    let mut spec = json!({ "groups": [], "servers": [] });
    for ((list, _), value) in lists {
        if let Some(entries) = spec[list].as_array_mut()
            && value.get("role").is_some()
        {
            entries.push(value);
        }
    }
    serde_json::from_value(spec).map_err(|error| Refusal::invalid("spec", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, role: &str) -> Value {
        json!({
            "name": name, "role": role, "count": 1, "blueprint": "local-node",
            "scale": {
                "min": 1, "max": 3, "template": { "hostname_pattern": format!("{name}-{{n}}") },
            },
        })
    }

    fn check(groups: &[Value], servers: &[Value]) -> Result<Vec<GroupSpec>, Refusal> {
        let declared = json!({ "groups": groups, "servers": servers });
        serde_json::from_value::<Declared>(declared).unwrap().check()
    }

    fn fault(groups: &[Value], servers: &[Value]) -> (String, String) {
        let refusal = check(groups, servers).unwrap_err();
        (refusal.field.unwrap(), refusal.message)
    }

    #[test]
    fn a_declaration_comes_back_from_its_groups() {
        let mut workers = group("workers", "Worker");
        workers["depends_on"] = json!(["cp"]);
        workers["scale"]["template"]["hardware"] = json!({ "server_type": "cx22" });
        workers["parameters"] = json!({ "server_type": "cx32" });
        let bastion = json!({ "name": "bastion", "role": "Worker", "blueprint": "local-node" });
        let specs = check(&[group("cp", "ControlPlane"), workers], &[bastion]).unwrap();
        assert!(specs[0].delete_lock && !specs[1].delete_lock);
        assert_eq!(specs[1].values()["server_type"], "cx32", "parameters count more");
        assert_eq!((specs[2].single, specs[2].wanted, specs[2].min), (true, 1, 0));
        assert_eq!(of_specs(&specs).check().unwrap(), specs);
    }

    #[test]
    fn a_declaration_comes_back_from_its_fields() {
        let mut workers = group("workers", "Worker");
        workers["scale"]["template"]["hardware"] = json!({ "server_type": "cx22" });
        workers["depends_on"] = json!(["cp"]);
        let bastion = json!({ "name": "bastion", "role": "Worker", "blueprint": "local-node" });
        let declared = json!({
            "groups": [group("cp", "ControlPlane"), workers], "servers": [bastion],
        });
        let declared: Declared = serde_json::from_value(declared).unwrap();
        let mut fields = to_fields(&declared);
        assert_eq!(fields["spec.groups.workers.scale.max"], 3);
        assert_eq!(fields["spec.groups.workers.scale.template.hardware"]["server_type"], "cx22");
        assert_eq!(fields["spec.servers.bastion.role"], "Worker");
        assert_eq!(of_fields(&fields).unwrap(), declared);
        // What another source still says of a group that is gone declares no group.
        fields
            .retain(|path, _| !path.starts_with("spec.groups.workers") || path.ends_with("count"));
        assert_eq!(of_fields(&fields).unwrap().groups.len(), 1);
    }

    #[test]
    fn every_fault_names_its_field() {
        let with = |path: &str, value: Value| {
            let mut changed = group("workers", "Worker");
            *changed.pointer_mut(path).unwrap() = value;
            fault(&[changed], &[])
        };
        let cases = [
            (with("/scale/min", json!(4)), "spec.groups.workers.scale.min"),
            (with("/scale/max", json!(10_001)), "spec.groups.workers.scale.max"),
            (with("/count", json!(10_001)), "spec.groups.workers.count"),
            (with("/role", json!("Master")), "spec.groups.workers.role"),
            (with("/name", json!("Work ers")), "spec.groups.Work ers.name"),
            (
                with("/scale/template/hostname_pattern", json!("w")),
                "spec.groups.workers.scale.template.hostname_pattern",
            ),
        ];
        for ((field, message), expected) in cases {
            assert_eq!(field, expected, "{message}");
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn an_explicit_false_does_not_unlock_a_control_plane() {
        let mut unlocked = group("cp", "ControlPlane");
        unlocked["delete_lock"] = json!(false);
        let (field, message) = fault(&[unlocked], &[]);
        assert_eq!(field, "spec.groups.cp.delete_lock");
        assert!(message.contains("always locked"), "{message}");
    }

    #[test]
    fn names_and_dependencies_are_checked_as_a_whole() {
        let (field, _) = fault(&[group("a", "Worker"), group("a", "Worker")], &[]);
        assert_eq!(field, "spec.groups.a.name");
        let mut same = group("b", "Worker");
        same["scale"]["template"]["hostname_pattern"] = json!("a-{n}");
        let (field, _) = fault(&[group("a", "Worker"), same], &[]);
        assert_eq!(field, "spec.groups.b.scale.template.hostname_pattern");
        let single = json!({ "name": "a-7", "role": "Worker", "blueprint": "local-node" });
        let (field, message) = fault(&[group("a", "Worker")], &[single]);
        assert_eq!(field, "spec.servers.a-7.name", "{message}");
        let mut lost = group("a", "Worker");
        lost["depends_on"] = json!(["nobody"]);
        assert_eq!(fault(&[lost], &[]).0, "spec.groups.a.depends_on");
        let (mut one, mut two) = (group("a", "Worker"), group("b", "Worker"));
        one["depends_on"] = json!(["b"]);
        two["depends_on"] = json!(["a"]);
        let (field, message) = fault(&[one, two], &[]);
        assert!(field.ends_with("depends_on") && message.contains('→'), "{message}");
    }
}

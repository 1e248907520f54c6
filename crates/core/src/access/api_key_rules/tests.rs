//! Keys: the administrators of the installation are never locked out, a secret
//! is valid for exactly as long as promised, and no withdrawn one comes back.

use std::collections::{BTreeMap, BTreeSet};

use crate::access::AccessWrite;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::access::key_text::ApiKeyText;
use crate::fixtures::{at, mk_actor};
use crate::ids::AuditEntryId;

fn mk_key(id: u128) -> ApiKey {
    ApiKey {
        id: ApiKeyId::new(Uuid::from_u128(id)),
        name: format!("key-{id}"),
        owner: format!("owner-{id}"),
        role: Role::Admin,
        project_id: None,
        project_deleted_at: None,
        principal: Principal::Holder,
        principal_deleted_at: None,
        short: format!("{id:08}"),
        hash: SecretHash::of(&id.to_be_bytes()),
        previous: None,
        created_by: None,
        created_at: at(0),
        rotated_at: None,
        rotated_by: None,
        expires_at: None,
        revoked_at: None,
        revision: Revision::FIRST,
    }
}

fn mk_snapshot(now: i64, keys: &[ApiKey], wanted: Option<&ApiKey>) -> KeySnapshot {
    let now = at(now);
    let usable_admins = keys.iter().filter(|key| key.keeps_administration(now)).cloned().collect();
    KeySnapshot {
        now,
        key: wanted.cloned(),
        project: None,
        usable_admins,
        text: KnownText::default(),
    }
}

fn mk_new(id: u128, role: Role, project: Option<&str>, lifetime: Option<u64>) -> NewKey {
    let key = mk_key(id);
    NewKey {
        id: key.id,
        name: key.name,
        owner: key.owner,
        reach: None,
        role,
        principal: Principal::Holder,
        project: project.map(str::to_owned),
        lifetime: lifetime.map(Duration::from_secs),
        secret: NewSecret { short: key.short, hash: key.hash },
    }
}

fn written(commit: &Commit) -> &ApiKey {
    match commit.writes.first() {
        Some(Write::Access(AccessWrite::ApiKeyInsert(key) | AccessWrite::ApiKeyUpdate(key))) => key,
        other => panic!("{other:?}"),
    }
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    Create {
        role: Role,
        bound: bool,
        lifetime: Option<u64>,
    },
    Revoke(usize),
    Rotate {
        key: usize,
        overlap: u64,
    },
    /// A start with a text that exists or existed, under one of a few names.
    Start {
        text: usize,
        name: usize,
    },
    /// The same with a text that nobody has seen before, drawn or configured.
    StartAnew {
        name: usize,
        when: Install,
    },
    Pass(i64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let role = prop_oneof![Just(Role::Viewer), Just(Role::Operator), Just(Role::Admin)];
    let lifetime = proptest::option::of(60_u64..5_000);
    let overlap = prop_oneof![Just(0), 1..3_000_u64];
    let when = prop_oneof![Just(Install::First), Just(Install::Replace)];
    prop_oneof![
        2 => (role, any::<bool>(), lifetime)
            .prop_map(|(role, bound, lifetime)| Operation::Create { role, bound, lifetime }),
        2 => (0..20_usize).prop_map(Operation::Revoke),
        4 => (0..20_usize, overlap).prop_map(|(key, overlap)| Operation::Rotate { key, overlap }),
        6 => (0..40_usize, 0..4_usize).prop_map(|(text, name)| Operation::Start { text, name }),
        1 => (0..4_usize, when).prop_map(|(name, when)| Operation::StartAnew { name, when }),
        2 => (1..4_000_i64).prop_map(Operation::Pass),
    ]
}

/// An installation as a store keeps it, and beside it what people were promised:
/// `ends_at` has the time from which on each text must never be accepted again.
struct Model {
    now: i64,
    keys: Vec<ApiKey>,
    withdrawn: Vec<SecretHash>,
    audited: BTreeSet<AuditEntryId>,
    texts: Vec<ApiKeyText>,
    ends_at: BTreeMap<String, Timestamp>,
}

impl Model {
    fn started() -> Self {
        let mut model = Self {
            now: 1_000,
            keys: Vec::new(),
            withdrawn: Vec::new(),
            audited: BTreeSet::new(),
            texts: Vec::new(),
            ends_at: BTreeMap::new(),
        };
        let first = model.draw();
        assert_eq!(model.start(&first, 0, Install::Replace), Installed::Inserted);
        model
    }

    fn draw(&mut self) -> ApiKeyText {
        let number = self.texts.len() as u64;
        let (mut short, mut long) = ([7; 6], [9; 24]);
        short[..4].copy_from_slice(&(number as u32).to_be_bytes());
        long[..8].copy_from_slice(&number.to_be_bytes());
        let text = ApiKeyText::parse(ApiKeyText::mint(short, long).expose()).unwrap();
        self.texts.push(text.clone());
        text
    }

    fn snapshot(&self, wanted: Option<&ApiKey>) -> KeySnapshot {
        mk_snapshot(self.now, &self.keys, wanted)
    }

    fn start(&mut self, text: &ApiKeyText, name: usize, when: Install) -> Installed {
        let name = ["admin", "root", "key-2", "key-3"][name];
        let holds = |key: &&ApiKey| {
            let before = key.previous.as_ref().map(|previous| previous.hash);
            key.short == text.short || key.hash == text.hash || before == Some(text.hash)
        };
        let snapshot = KeySnapshot {
            text: KnownText {
                holders: self.keys.iter().filter(holds).cloned().collect(),
                withdrawn: self.withdrawn.contains(&text.hash),
            },
            ..self.snapshot(self.keys.iter().find(|key| key.name == name))
        };
        let new = InstalledKey {
            id: ApiKeyId::new(Uuid::from_u128(1_000 + self.keys.len() as u128)),
            name: name.to_owned(),
            secret: NewSecret { short: text.short.clone(), hash: text.hash },
        };
        let (installed, commit) = install(&snapshot, &new, when, &mk_actor());
        let writes = matches!(installed, Installed::Inserted | Installed::Replaced);
        assert_eq!((commit.is_empty(), commit.audit.len()), (!writes, usize::from(writes)));
        if let (Installed::Replaced, Some(before)) = (installed, &snapshot.key) {
            self.end(before, at(self.now));
        }
        self.write(&commit);
        installed
    }

    /// All texts of the key end, those of an earlier rotation at this time too.
    fn end(&mut self, key: &ApiKey, when: Timestamp) {
        let previous = key.previous.iter().map(|previous| &previous.short);
        for short in previous.chain([&key.short]) {
            let end = self.ends_at.entry(short.clone()).or_insert(when);
            *end = when.min(*end);
        }
    }

    fn write(&mut self, commit: &Commit) {
        for entry in &commit.audit {
            assert!(self.audited.insert(entry.id), "two entries with one id: {entry:?}");
        }
        for write in &commit.writes {
            match write {
                Write::Access(AccessWrite::HashWithdraw(hash)) => self.withdrawn.push(*hash),
                Write::Access(AccessWrite::ApiKeyInsert(key) | AccessWrite::ApiKeyUpdate(key)) => {
                    // The unique indexes of the store.
                    let clash = |other: &&ApiKey| {
                        other.id != key.id && (other.name == key.name || other.short == key.short)
                    };
                    assert_eq!(self.keys.iter().find(clash), None, "{key:?}");
                    match self.keys.iter_mut().find(|known| known.id == key.id) {
                        Some(known) => {
                            *known = ApiKey { revision: key.revision.next(), ..key.clone() }
                        }
                        None => self.keys.push(key.clone()),
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn run(&mut self, operation: Operation) {
        let decided = match operation {
            Operation::Pass(seconds) => {
                self.now += seconds;
                return;
            }
            Operation::Start { text, name } => {
                let text = self.texts[text % self.texts.len()].clone();
                self.start(&text, name, Install::Replace);
                return;
            }
            Operation::StartAnew { name, when } => {
                let text = self.draw();
                self.start(&text, name, when);
                return;
            }
            Operation::Create { role, bound, lifetime } => {
                let text = self.draw();
                let project = bound.then_some("p");
                let mut new = mk_new(self.keys.len() as u128 + 1, role, project, lifetime);
                new.secret = NewSecret { short: text.short, hash: text.hash };
                let holder = self.keys.iter().find(|key| key.name == new.name);
                let mut snapshot = self.snapshot(holder);
                snapshot.project = bound.then(|| ProjectId::new(Uuid::from_u128(9)));
                create(&snapshot, &new, &mk_actor())
            }
            Operation::Revoke(which) => {
                let key = self.keys[which % self.keys.len()].clone();
                let decided = revoke(&self.snapshot(Some(&key)), Expected::Any, None, &mk_actor());
                if decided.is_ok() {
                    self.end(&key, at(self.now));
                }
                decided
            }
            Operation::Rotate { key, overlap } => {
                let key = self.keys[key % self.keys.len()].clone();
                let text = self.draw();
                let secret = NewSecret { short: text.short, hash: text.hash };
                let overlap = Duration::from_secs(overlap);
                let snapshot = self.snapshot(Some(&key));
                let decided = rotate(&snapshot, &secret, overlap, Expected::Any, &mk_actor());
                if decided.is_ok() {
                    let current = ApiKey { previous: None, ..key.clone() };
                    self.end(&current, at(self.now).plus(overlap));
                    if let Some(previous) = key.previous {
                        self.end(&ApiKey { short: previous.short, ..current }, at(self.now));
                    }
                }
                decided
            }
        };
        if let Ok(commit) = decided {
            self.write(&commit);
        }
    }

    fn check(&mut self) {
        let now = at(self.now);
        for key in self.keys.clone() {
            if let Some(expires_at) = key.expires_at {
                self.end(&key, expires_at);
            }
        }
        for text in &self.texts {
            let ended = self.ends_at.get(&text.short).is_some_and(|end| now >= *end);
            let holder = self.keys.iter().find(|key| key.accepts(text, now));
            assert!(!ended || holder.is_none(), "{text:?} ended and is accepted by {holder:?}");
        }
        let admin = self.keys.iter().any(|key| key.keeps_administration(now));
        assert!(admin, "nobody can administer: {:#?}", self.keys);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever is requested and configured, however often it starts and however
    /// much time passes: a text that was withdrawn or has expired is accepted by no
    /// key, and some key can administer.
    #[test]
    fn no_withdrawn_text_comes_back_and_nobody_is_locked_out(
        operations in proptest::collection::vec(operation(), 1..60)
    ) {
        let mut model = Model::started();
        for operation in operations {
            model.run(operation);
            model.check();
        }
    }
}

/// A start with the text of the first configuration, after two rotations: the
/// text stays withdrawn under every name, and the current one stays valid.
#[test]
fn a_start_after_two_rotations_changes_nothing() {
    let mut model = Model::started();
    for overlap in [0, 60] {
        model.run(Operation::Rotate { key: 0, overlap });
    }
    let before = model.keys.clone();
    for (text, name) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let text = model.texts[text].clone();
        assert_eq!(model.start(&text, name, Install::Replace), Installed::Withdrawn);
    }
    let current = model.texts[2].clone();
    for name in [0, 1] {
        assert_eq!(model.start(&current, name, Install::Replace), Installed::Unchanged);
    }
    assert_eq!(model.keys, before);
    // Not even with another short part: the secret was withdrawn.
    let disguised = ApiKeyText { short: "zzzzzzzz".to_owned(), hash: model.texts[0].hash };
    assert_eq!(model.start(&disguised, 0, Install::Replace), Installed::Withdrawn);
}

/// A text of somebody who is no administrator does not become an admin key.
#[test]
fn a_start_promotes_no_other_key() {
    let mut model = Model::started();
    model.run(Operation::Create { role: Role::Viewer, bound: false, lifetime: None });
    let viewer = model.texts[1].clone();
    let disguised = ApiKeyText { short: "zzzzzzzz".to_owned(), hash: viewer.hash };
    let clashing = ApiKeyText { short: viewer.short.clone(), hash: SecretHash::of(b"other") };
    for (text, name) in [(&viewer, 0), (&viewer, 2), (&disguised, 2), (&clashing, 0)] {
        assert_eq!(model.start(text, name, Install::Replace), Installed::Taken, "{text:?} {name}");
    }
    // A key may get another secret with its own short part.
    assert_eq!(model.start(&clashing, 2, Install::Replace), Installed::Replaced);
    assert_eq!(model.start(&viewer, 0, Install::Replace), Installed::Withdrawn);
}

#[test]
fn the_last_admin_key_stays_and_others_go() {
    let lasting = mk_key(1);
    let expiring = ApiKey { expires_at: Some(at(5_000)), ..mk_key(2) };
    let all = [lasting.clone(), expiring.clone()];
    let asked =
        |now, key| revoke(&mk_snapshot(now, &all, Some(key)), Expected::Any, None, &mk_actor());
    // The other key would expire, and no admin key would be left.
    assert_eq!(asked(1_000, &lasting).unwrap_err().kind, ErrorKind::LastAdminKey);
    assert!(asked(1_000, &expiring).is_ok());
    let bound = ApiKey { project_id: Some(ProjectId::new(Uuid::from_u128(9))), ..mk_key(3) };
    assert!(asked(1_000, &bound).is_ok());
    let second = [lasting.clone(), mk_key(4)];
    let snapshot = mk_snapshot(1_000, &second, Some(&lasting));
    let commit = revoke(&snapshot, Expected::Any, Some("left"), &mk_actor()).unwrap();
    assert_eq!(written(&commit).revoked_at, Some(at(1_000)));
    assert_eq!(commit.audit[0].reason.as_deref(), Some("left"));
    let gone = ApiKey { revoked_at: Some(at(900)), ..mk_key(5) };
    assert!(asked(1_000, &gone).unwrap().is_empty(), "revoking twice is the same as once");
}

#[test]
fn a_replaced_secret_is_good_for_the_overlap() {
    let texts = [ApiKeyText::mint([1; 6], [1; 24]), ApiKeyText::mint([2; 6], [2; 24])];
    let [before, after] = texts.map(|text| ApiKeyText::parse(text.expose()).unwrap());
    let key = ApiKey { short: before.short.clone(), hash: before.hash, ..mk_key(1) };
    let secret = NewSecret { short: after.short.clone(), hash: after.hash };
    let snapshot = mk_snapshot(1_000, &[], Some(&key));
    let ask = |overlap| {
        let overlap = Duration::from_secs(overlap);
        rotate(&snapshot, &secret, overlap, Expected::Any, &mk_actor())
    };
    let at_once = ask(0).unwrap();
    assert!(written(&at_once).accepts(&after, at(1_000)));
    assert!(!written(&at_once).accepts(&before, at(1_000)));
    let later = ask(60).unwrap();
    assert!(written(&later).accepts(&before, at(1_059)));
    assert!(!written(&later).accepts(&before, at(1_060)));
    assert!(written(&later).accepts(&after, at(1_060)));
    // The short part of one text with the secret of the other is not valid.
    let mixed = ApiKeyText { short: before.short.clone(), hash: after.hash };
    assert!(!written(&later).accepts(&mixed, at(1_000)));
    let too_long = ask(OVERLAP_MAX.as_secs() + 1).unwrap_err();
    assert_eq!(too_long.field.as_deref(), Some("overlap_seconds"));
    let expired = ApiKey { expires_at: Some(at(1_000)), ..key };
    let snapshot = mk_snapshot(1_000, &[], Some(&expired));
    let refused = rotate(&snapshot, &secret, Duration::ZERO, Expected::Any, &mk_actor());
    assert_eq!(refused.unwrap_err().kind, ErrorKind::KeyNotUsable);
    assert!(!expired.accepts(&before, at(1_000)));
}

#[test]
fn a_key_wants_a_name_of_its_own_a_project_that_is_there_and_a_sensible_life() {
    let ask =
        |snapshot: &KeySnapshot, new: &NewKey| create(snapshot, new, &mk_actor()).unwrap_err();
    let taken =
        ask(&mk_snapshot(1_000, &[], Some(&mk_key(1))), &mk_new(2, Role::Viewer, None, None));
    assert_eq!((taken.kind, taken.field.as_deref()), (ErrorKind::NameTaken, Some("name")));
    let free = mk_snapshot(1_000, &[], None);
    let nowhere = ask(&free, &mk_new(2, Role::Viewer, Some("p"), None));
    assert_eq!(nowhere.kind, ErrorKind::ProjectNotFound);
    for seconds in [0, 59, LIFETIME_MAX.as_secs() + 1] {
        let refused = ask(&free, &mk_new(2, Role::Viewer, None, Some(seconds)));
        assert_eq!(refused.field.as_deref(), Some("ttl_seconds"), "{seconds}");
    }
    let made = create(&free, &mk_new(2, Role::Viewer, None, Some(60)), &mk_actor()).unwrap();
    assert_eq!(written(&made).expires_at, Some(at(1_060)));
}

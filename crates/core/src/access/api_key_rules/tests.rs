//! Keys: the administrators of the installation are never locked out, and a
//! secret is valid for exactly as long as promised.

use crate::access::AccessWrite;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::access::key_text::ApiKeyText;
use crate::fixtures::{at, mk_actor};

fn mk_key(id: u128) -> ApiKey {
    ApiKey {
        id: ApiKeyId::new(Uuid::from_u128(id)),
        name: format!("key-{id}"),
        role: Role::Admin,
        project_id: None,
        project_deleted_at: None,
        short: format!("{id:08}"),
        hash: SecretHash::of(&id.to_be_bytes()),
        previous: None,
        created_by: None,
        created_at: at(0),
        rotated_at: None,
        expires_at: None,
        revoked_at: None,
        revision: Revision::FIRST,
    }
}

fn mk_snapshot(now: i64, keys: &[ApiKey], wanted: Option<&ApiKey>) -> KeySnapshot {
    let now = at(now);
    let usable_admins = keys.iter().filter(|key| key.keeps_administration(now)).cloned().collect();
    KeySnapshot { now, key: wanted.cloned(), project: None, usable_admins }
}

fn mk_new(id: u128, role: Role, project: Option<&str>, lifetime: Option<u64>) -> NewKey {
    let key = mk_key(id);
    NewKey {
        id: key.id,
        name: key.name,
        reach: None,
        role,
        project: project.map(str::to_owned),
        lifetime: lifetime.map(Duration::from_secs),
        secret: NewSecret { short: key.short, hash: key.hash },
    }
}

fn written(commit: &Commit) -> &ApiKey {
    let [Write::Access(write)] = &commit.writes[..] else { panic!("{commit:?}") };
    match write {
        AccessWrite::ApiKeyInsert(key) | AccessWrite::ApiKeyUpdate(key) => key,
        other => panic!("{other:?}"),
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Create { role: Role, bound: bool, lifetime: Option<u64> },
    Revoke(usize),
    Rotate(usize),
    Pass(i64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let role = prop_oneof![Just(Role::Viewer), Just(Role::Operator), Just(Role::Admin)];
    let lifetime = proptest::option::of(60_u64..5_000);
    prop_oneof![
        (role, any::<bool>(), lifetime).prop_map(|(role, bound, lifetime)| Operation::Create {
            role,
            bound,
            lifetime
        }),
        (0..20_usize).prop_map(Operation::Revoke),
        (0..20_usize).prop_map(Operation::Rotate),
        (1..4_000_i64).prop_map(Operation::Pass),
    ]
}

proptest! {
    /// Whatever is requested, and however much time passes, some key can administer.
    #[test]
    fn nobody_is_locked_out(operations in proptest::collection::vec(operation(), 1..60)) {
        let mut keys = vec![mk_key(1)];
        let mut now = 1_000;
        for operation in operations {
            let decided = match operation {
                Operation::Pass(seconds) => { now += seconds; continue }
                Operation::Create { role, bound, lifetime } => {
                    let project = bound.then_some("p");
                    let new = mk_new(keys.len() as u128 + 1, role, project, lifetime);
                    let mut snapshot = mk_snapshot(now, &keys, None);
                    snapshot.project = bound.then(|| ProjectId::new(Uuid::from_u128(9)));
                    create(&snapshot, &new, &mk_actor())
                }
                Operation::Revoke(which) => {
                    let key = &keys[which % keys.len()];
                    let snapshot = mk_snapshot(now, &keys, Some(key));
                    revoke(&snapshot, Expected::Any, None, &mk_actor())
                }
                Operation::Rotate(which) => {
                    let key = &keys[which % keys.len()];
                    let secret = NewSecret { short: "next".to_owned(), hash: SecretHash::of(b"n") };
                    let snapshot = mk_snapshot(now, &keys, Some(key));
                    rotate(&snapshot, &secret, Duration::ZERO, Expected::Any, &mk_actor())
                }
            };
            if let Ok(commit) = decided && !commit.is_empty() {
                let key = written(&commit).clone();
                match keys.iter_mut().find(|known| known.id == key.id) {
                    Some(known) => *known = key,
                    None => keys.push(key),
                }
            }
            prop_assert!(keys.iter().any(|key| key.keeps_administration(at(now))), "{keys:#?}");
        }
    }
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

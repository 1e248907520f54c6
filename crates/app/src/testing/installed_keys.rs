//! Keys that a start installs: the suite's part about who may administer first,
//! and about texts that were withdrawn.

use std::sync::Arc;

use slipway_core::access::AccessWrite;
use slipway_core::access::api_key::ApiKey;
use slipway_core::access::api_key_rules::{
    self, Install, Installed, InstalledKey, KeySnapshot, NewSecret,
};
use slipway_core::access::key_text::ApiKeyText;
use slipway_core::access::role::Role;
use slipway_core::commit::{Commit, Write};
use slipway_core::ids::ApiKeyId;
use slipway_core::precondition::Expected;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::access::port::{AuditFilter, AuditOrder, KeyTarget};
use crate::ports::store::Page;
use crate::testing::races::at_once;
use crate::testing::world::{World, operator};

/// Replicas that start together.
const STARTS: usize = 4;

impl World {
    fn mk_installed(&self, name: &str) -> InstalledKey {
        let id = ApiKeyId::new(self.uuid());
        InstalledKey { id, name: name.to_owned(), secret: self.new_secret() }
    }

    async fn install(&self, new: &InstalledKey, when: Install) -> Installed {
        let target = KeyTarget::Installed { name: new.name.clone(), secret: new.secret.clone() };
        let mut installed = None;
        let mut rule = |snapshot: &KeySnapshot| {
            let (decided, commit) = api_key_rules::install(snapshot, new, when, &operator());
            installed = Some(decided);
            Ok(commit)
        };
        self.store.kind::<ApiKey>().decide(&target, &mut rule).await.expect("an answer");
        installed.expect("the rule was asked")
    }

    /// A start with this text under another name.
    async fn install_as(&self, name: &str, secret: &NewSecret) -> Installed {
        let new = InstalledKey { secret: secret.clone(), ..self.mk_installed(name) };
        self.install(&new, Install::Replace).await
    }

    /// The key that accepts this text now.
    async fn accepting(&self, secret: &NewSecret) -> Option<ApiKey> {
        let text = ApiKeyText { short: secret.short.clone(), hash: secret.hash };
        let found = self.store.access.api_key_candidates(&text.short).await.expect("candidates");
        let found = found.into_iter().find(|found| found.key.accepts(&text, found.now));
        found.map(|found| found.key)
    }

    /// Revokes every admin key as no rule would, and as an older version did:
    /// without a word about its text.
    async fn lose_all_admins(&self) {
        let page = Page { after: None, limit: 10_000 };
        let keys = self.store.kind::<ApiKey>().page(&None, page).await.expect("a list");
        for key in keys.iter().filter(|key| key.revoked_at.is_none() && key.role == Role::Admin) {
            let mut rule = |snapshot: &KeySnapshot| {
                let key = snapshot.key.clone().expect("the key is there");
                let revoked = ApiKey { revoked_at: Some(snapshot.now), ..key };
                let write = Write::Access(AccessWrite::ApiKeyUpdate(revoked));
                Ok(Commit { writes: vec![write], ..Commit::default() })
            };
            let target = KeyTarget::Existing(key.id);
            self.store.kind::<ApiKey>().decide(&target, &mut rule).await.expect("a revocation");
        }
        assert_eq!(self.usable_admins().await, 0);
    }

    async fn verbs_about(&self, id: ApiKeyId) -> Vec<String> {
        let filter = AuditFilter { subject: Some(id.as_uuid()), ..AuditFilter::default() };
        let page = Page { after: None, limit: 100 };
        let lines = self.store.access.audit_list(&filter, AuditOrder::OldestFirst, page).await;
        let lines = lines.expect("a list");
        let mut verbs: Vec<_> = lines.iter().map(|line| line.verb.clone()).collect();
        // Entries of the same millisecond have no order.
        verbs.sort_unstable();
        verbs
    }
}

pub(super) async fn conformance(world: &World) {
    a_first_key_is_installed_once_and_a_replacement_is_told_apart(world).await;
    no_withdrawn_text_is_installed_under_any_name(world).await;
    the_text_of_another_key_is_not_installed(world).await;
}

async fn a_first_key_is_installed_once_and_a_replacement_is_told_apart(world: &World) {
    let name = world.fresh_name("key");
    let first = world.mk_installed(&name);
    assert_eq!(world.install(&first, Install::First).await, Installed::Inserted);
    let key = world.accepting(&first.secret).await.expect("it works");
    assert_eq!((&key.name, key.id, key.role), (&name, first.id, Role::Admin));
    let other = world.mk_installed("other");
    assert_eq!(world.install(&other, Install::First).await, Installed::Occupied);
    assert_eq!(world.accepting(&other.secret).await, None);
    assert_eq!(world.install(&first, Install::Replace).await, Installed::Unchanged);
    assert_eq!(world.key_is(key.id).await, key);

    let second = world.mk_installed(&name);
    assert_eq!(world.install(&second, Install::Replace).await, Installed::Replaced);
    assert_eq!(world.accepting(&first.secret).await, None);
    let replaced = world.accepting(&second.secret).await.expect("it works");
    assert_eq!((replaced.id, replaced.created_at), (key.id, key.created_at));
    assert!(replaced.rotated_at.is_some() && replaced.revision > key.revision);

    world.lose_all_admins().await;
    let third = world.mk_installed(&name);
    assert_eq!(world.install(&third, Install::First).await, Installed::Replaced, "none is usable");
    assert!(world.accepting(&third.secret).await.is_some_and(|key| key.revoked_at.is_none()));
    let verbs = ["api_key.install", "api_key.replace", "api_key.replace"];
    assert_eq!(world.verbs_about(key.id).await, verbs);
}

/// Rotated away with and without an overlap, replaced, revoked; also if an older
/// version revoked the key.
async fn no_withdrawn_text_is_installed_under_any_name(world: &World) {
    let name = world.fresh_name("key");
    let zeroth = world.mk_installed(&name);
    assert_eq!(world.install(&zeroth, Install::Replace).await, Installed::Inserted);
    let texts: Vec<_> = (0..3).map(|_| world.new_secret()).collect();
    for (text, overlap) in texts.iter().zip([0, 60, 60]) {
        world.rotate_key(zeroth.id, text, overlap, Expected::Any).await.expect("a rotation");
    }
    let key = world.key_is(zeroth.id).await;
    for old in [&zeroth.secret, &texts[0], &texts[1]] {
        for name in [&name, &world.fresh_name("key")] {
            assert_eq!(world.install_as(name, old).await, Installed::Withdrawn);
        }
    }
    assert_eq!(world.install_as(&name, &texts[2]).await, Installed::Unchanged);
    let elsewhere = world.fresh_name("key");
    assert_eq!(world.install_as(&elsewhere, &texts[2]).await, Installed::Unchanged);
    assert_eq!(world.key_is(zeroth.id).await, key, "a refused start changes nothing");
    assert_eq!(world.accepting(&zeroth.secret).await, None);
    assert_eq!(world.accepting(&texts[1]).await.as_ref(), Some(&key), "within its overlap");

    let fourth = world.mk_installed(&name);
    assert_eq!(world.install(&fourth, Install::Replace).await, Installed::Replaced);
    assert_eq!(world.accepting(&texts[1]).await, None, "a replacement ends the overlap");
    let fifth = world.mk_installed(&world.fresh_name("key"));
    assert_eq!(world.install(&fifth, Install::Replace).await, Installed::Inserted);
    world.revoke_key(fifth.id).await.expect("a revocation");
    let another = world.fresh_name("key");
    for old in [&texts[1], &texts[2], &fifth.secret] {
        assert_eq!(world.install_as(&another, old).await, Installed::Withdrawn);
    }
    world.lose_all_admins().await;
    assert_eq!(world.install_as(&name, &fourth.secret).await, Installed::Withdrawn);
    let sixth = world.mk_installed(&name);
    assert_eq!(world.install(&sixth, Install::Replace).await, Installed::Replaced);
    assert_eq!(world.usable_admins().await, 1, "a new text is the way out");
}

async fn the_text_of_another_key_is_not_installed(world: &World) {
    let viewer = world.new_key(Role::Viewer, None);
    world.make_key(&viewer).await.expect("a key");
    let name = world.fresh_name("key");
    let clashing = NewSecret { hash: world.hash(), ..viewer.secret.clone() };
    let disguised = NewSecret { short: world.fresh_name("short"), ..viewer.secret.clone() };
    for (name, text) in [
        (&name, &viewer.secret),
        (&viewer.name, &viewer.secret),
        (&viewer.name, &disguised),
        (&name, &clashing),
    ] {
        assert_eq!(world.install_as(name, text).await, Installed::Taken, "{name}");
    }
    let key = world.accepting(&viewer.secret).await.expect("it works as before");
    assert_eq!((key.id, key.role), (viewer.id, Role::Viewer));
    // Under its own name the configured key takes its place, for the whole installation.
    assert_eq!(world.install_as(&viewer.name, &clashing).await, Installed::Replaced);
    let key = world.accepting(&clashing).await.expect("it works");
    assert_eq!((key.id, key.role, key.project_id), (viewer.id, Role::Admin, None));
}

pub(super) async fn races(world: &Arc<World>) {
    of_many_first_keys_one_is_installed(world).await;
    of_many_configured_keys_one_is_valid(world).await;
    a_drawn_and_a_configured_key_leave_the_configured_one(world).await;
    start_with_rotation(world).await;
}

/// Installs all at the same moment. The outcomes are in the order of the keys.
async fn starts(world: &Arc<World>, keys: &[InstalledKey], when: Install) -> Vec<Installed> {
    let barrier = Arc::new(Barrier::new(keys.len()));
    let mut starts = JoinSet::new();
    for (index, key) in keys.iter().cloned().enumerate() {
        let (world, barrier) = (Arc::clone(world), Arc::clone(&barrier));
        starts.spawn(async move {
            barrier.wait().await;
            (index, world.install(&key, when).await)
        });
    }
    let mut outcomes = starts.join_all().await;
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn count(outcomes: &[Installed], outcome: Installed) -> usize {
    outcomes.iter().filter(|found| **found == outcome).count()
}

/// Replicas that start together without a configured key: one shows its key, and
/// that key works.
async fn of_many_first_keys_one_is_installed(world: &Arc<World>) {
    world.lose_all_admins().await;
    let name = world.fresh_name("key");
    let drawn: Vec<_> = (0..STARTS).map(|_| world.mk_installed(&name)).collect();
    let outcomes = starts(world, &drawn, Install::First).await;
    assert_eq!(count(&outcomes, Installed::Inserted), 1, "{outcomes:?}");
    assert_eq!(count(&outcomes, Installed::Occupied), STARTS - 1, "{outcomes:?}");
    for (key, outcome) in drawn.iter().zip(outcomes) {
        let works = world.accepting(&key.secret).await.is_some();
        assert_eq!(works, outcome == Installed::Inserted, "the shown key is the one that works");
    }
    assert_eq!(world.usable_admins().await, 1);
}

/// Replicas that start together with configured keys: the same text, under one
/// name or several, makes one key; of different texts under one name one stays
/// valid, and restarts in any order change nothing any more.
async fn of_many_configured_keys_one_is_valid(world: &Arc<World>) {
    let same = world.mk_installed(&world.fresh_name("key"));
    let text = world.new_secret();
    let renamed =
        |_| InstalledKey { secret: text.clone(), ..world.mk_installed(&world.fresh_name("key")) };
    for keys in [vec![same; STARTS], (0..STARTS).map(renamed).collect()] {
        let outcomes = starts(world, &keys, Install::Replace).await;
        assert_eq!(count(&outcomes, Installed::Inserted), 1, "{outcomes:?}");
        assert_eq!(count(&outcomes, Installed::Unchanged), STARTS - 1, "{outcomes:?}");
        assert!(world.accepting(&keys[0].secret).await.is_some());
    }

    let name = world.fresh_name("key");
    let different: Vec<_> = (0..STARTS).map(|_| world.mk_installed(&name)).collect();
    let outcomes = starts(world, &different, Install::Replace).await;
    assert_eq!(count(&outcomes, Installed::Inserted), 1, "{outcomes:?}");
    assert_eq!(count(&outcomes, Installed::Replaced), STARTS - 1, "{outcomes:?}");
    let restarted = starts(world, &different, Install::Replace).await;
    assert_eq!(count(&restarted, Installed::Unchanged), 1, "{restarted:?}");
    assert_eq!(count(&restarted, Installed::Withdrawn), STARTS - 1, "{restarted:?}");
    for (key, outcome) in different.iter().zip(restarted) {
        let works = world.accepting(&key.secret).await.is_some();
        assert_eq!(works, outcome == Installed::Unchanged);
    }
}

async fn a_drawn_and_a_configured_key_leave_the_configured_one(world: &Arc<World>) {
    world.lose_all_admins().await;
    let name = world.fresh_name("key");
    let [drawn, configured] = [world.mk_installed(&name), world.mk_installed(&name)];
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (first, second) = (drawn.clone(), configured.clone());
    at_once(async move { a.install(&first, Install::First).await }, async move {
        b.install(&second, Install::Replace).await
    })
    .await;
    assert!(world.accepting(&configured.secret).await.is_some());
    assert_eq!(world.accepting(&drawn.secret).await, None);
    assert_eq!(world.usable_admins().await, 1);
}

/// A start with the text that is being rotated away.
async fn start_with_rotation(world: &Arc<World>) {
    let old = world.mk_installed(&world.fresh_name("key"));
    assert_eq!(world.install(&old, Install::Replace).await, Installed::Inserted);
    let new = world.new_secret();
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (id, start, rotated) = (old.id, old.clone(), new.clone());
    let (started, rotation) =
        at_once(async move { a.install(&start, Install::Replace).await }, async move {
            b.rotate_key(id, &rotated, 0, Expected::Any).await
        })
        .await;
    rotation.expect("a rotation");
    assert!(matches!(started, Installed::Unchanged | Installed::Withdrawn), "{started:?}");
    assert!(world.accepting(&new).await.is_some(), "the current text works");
    assert_eq!(world.accepting(&old.secret).await, None, "the one before does not");
}

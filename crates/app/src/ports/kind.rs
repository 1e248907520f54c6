//! The port that all kinds share: find one, list them, decide about one. The
//! port of a room includes it for each of its kinds.

use async_trait::async_trait;
use slipway_core::deletion::door::{DoorInput, Doored};
use slipway_core::subject::Subject;

use super::listed::Listed;
use super::store::{Error, Page, Rule};
use crate::kind::StoredKind;

/// What of a snapshot a decision deletes.
pub type SubjectOf<S> = fn(&S) -> Option<Subject>;

/// The rows of one kind. A reference is a name or an id; something deleted is
/// found by its id only.
#[async_trait]
pub trait KindStore<K: StoredKind>: std::fmt::Debug + Send + Sync {
    async fn fetch(&self, reference: &str, show_deleted: bool) -> Result<Option<K>, Error>;

    /// In the order of their ids.
    async fn page(&self, filter: &K::Filter, page: Page<K::Id>) -> Result<Listed<K>, Error>;

    /// The live rows that have one of these names, in any order.
    async fn named(&self, names: &[String]) -> Result<Vec<K>, Error>;

    /// Calls the rule with the live row of this key, locked, and what goes with
    /// it, and writes its commit.
    async fn decide(&self, key: &K::Key, rule: &mut Rule<'_, K::Snapshot>) -> Result<(), Error>;

    /// The same for its deletion; `subject` says what of the snapshot is deleted.
    async fn decide_deletion(
        &self,
        key: &K::Key,
        subject: SubjectOf<K::Snapshot>,
        input: DoorInput,
        rule: &mut Rule<'_, Doored<K::Snapshot>>,
    ) -> Result<(), Error>;
}

/// Wraps the stores of all kinds, for tests, as the interceptor of a port does.
#[cfg(feature = "testing")]
#[async_trait]
pub trait KindIntercept: std::fmt::Debug + Send + Sync {
    /// The wrapped stores.
    fn inner(&self) -> &super::Stores;

    /// Called before every forwarded method.
    async fn enter(&self) {}

    /// Called before a decision about this kind; an error refuses it.
    async fn before_decision(&self, _kind: &'static str) -> Result<(), Error> {
        Ok(())
    }

    /// Called after a decision that was not refused; an error loses its answer.
    async fn after_decision(&self, _kind: &'static str) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(feature = "testing")]
#[async_trait]
impl<T: KindIntercept, K: StoredKind> KindStore<K> for T {
    async fn fetch(&self, reference: &str, show_deleted: bool) -> Result<Option<K>, Error> {
        self.enter().await;
        K::store(self.inner()).fetch(reference, show_deleted).await
    }

    async fn page(&self, filter: &K::Filter, page: Page<K::Id>) -> Result<Listed<K>, Error> {
        self.enter().await;
        K::store(self.inner()).page(filter, page).await
    }

    async fn named(&self, names: &[String]) -> Result<Vec<K>, Error> {
        self.enter().await;
        K::store(self.inner()).named(names).await
    }

    async fn decide(&self, key: &K::Key, rule: &mut Rule<'_, K::Snapshot>) -> Result<(), Error> {
        self.enter().await;
        self.before_decision(K::KIND).await?;
        K::store(self.inner()).decide(key, rule).await?;
        self.after_decision(K::KIND).await
    }

    async fn decide_deletion(
        &self,
        key: &K::Key,
        subject: SubjectOf<K::Snapshot>,
        input: DoorInput,
        rule: &mut Rule<'_, Doored<K::Snapshot>>,
    ) -> Result<(), Error> {
        self.enter().await;
        self.before_decision(K::KIND).await?;
        K::store(self.inner()).decide_deletion(key, subject, input, rule).await?;
        self.after_decision(K::KIND).await
    }
}

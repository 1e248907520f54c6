//! A page of a list as the store read it. A row that cannot be read is not
//! shown, but it counts: the rows read, and never the items shown, determine
//! whether more follows and from where. Counting items would end a list early
//! after a bad row.

use std::ops::Deref;

use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::ResourceId;
use uuid::Uuid;

use super::store::CorruptRow;

/// Dereferences to its items. `C` is the cursor type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T, C = Uuid> {
    pub items: Vec<T>,
    /// The rows left out because they cannot be read.
    pub quarantined: Vec<Uuid>,
    /// The row after which the next page begins; `None` if this is the last page.
    pub next: Option<C>,
}

impl<T, C> Listed<T, C> {
    /// The only page of a list.
    pub fn only(items: Vec<T>) -> Self {
        Self { items, quarantined: Vec::new(), next: None }
    }

    /// A page in which every row is shown.
    pub fn complete(items: Vec<T>, limit: u32, cursor: impl Fn(&T) -> C) -> Self {
        let next = items.last().filter(|_| is_full(items.len(), limit)).map(cursor);
        Self { items, quarantined: Vec::new(), next }
    }

    /// Converts the items.
    pub fn map<D>(self, show: impl FnMut(&T) -> D) -> Listed<D, C> {
        Listed {
            items: self.items.iter().map(show).collect(),
            quarantined: self.quarantined,
            next: self.next,
        }
    }
}

impl<T> Listed<T> {
    /// From rows in the order of their ids; `None` marks a row that cannot be read.
    pub fn read(rows: impl IntoIterator<Item = (Uuid, Option<T>)>, limit: u32) -> Self {
        let (mut items, mut quarantined, mut last) = (Vec::new(), Vec::new(), None);
        for (id, read) in rows {
            // A row without an id (nil) cannot be a cursor: a list after nil
            // starts from the beginning.
            last = Some(id).filter(|id| !id.is_nil()).or(last);
            match read {
                Some(item) => items.push(item),
                None => quarantined.push(id),
            }
        }
        let next = last.filter(|_| is_full(items.len() + quarantined.len(), limit));
        Self { items, quarantined, next }
    }
}

impl Listed<ResourceSnapshot> {
    /// Resources, paged by resource id. `quarantined` contains attempt ids.
    pub fn resources(rows: Vec<Result<ResourceSnapshot, CorruptRow>>, limit: u32) -> Self {
        let full = is_full(rows.len(), limit);
        let slot = |row: &Result<ResourceSnapshot, CorruptRow>| match row {
            Ok(snapshot) => Some(snapshot.resource.id),
            Err(row) => row.resource_id,
        };
        let next = rows.iter().filter_map(slot).max().filter(|_| full).map(ResourceId::as_uuid);
        let (mut items, mut quarantined) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in rows {
            match row {
                Ok(snapshot) => items.push(snapshot),
                Err(row) => {
                    tracing::warn!(id = %row.id, reason = row.reason, "left a quarantined row out of a list");
                    quarantined.push(row.id);
                }
            }
        }
        items.sort_by_key(|snapshot: &ResourceSnapshot| snapshot.resource.id);
        Self { items, quarantined, next }
    }
}

impl<T, C> Deref for Listed<T, C> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T, C> IntoIterator for Listed<T, C> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

fn is_full(rows: usize, limit: u32) -> bool {
    rows >= usize::try_from(limit).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_not_full_is_the_last() {
        assert_eq!(Listed::complete(vec![1, 2], 2, |item| *item).next, Some(2));
        assert_eq!(Listed::complete(vec![1], 2, |item| *item).next, None);
        assert_eq!(Listed::<i32, i32>::only(vec![1, 2]).next, None);
    }

    #[test]
    fn a_row_that_cannot_be_read_counts() {
        let ids = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let listed = Listed::<i32>::read([(ids[0], Some(7)), (ids[1], None)], 2);
        assert_eq!(
            listed,
            Listed { items: vec![7], quarantined: vec![ids[1]], next: Some(ids[1]) }
        );
        let listed = Listed::<i32>::read([(ids[0], None), (ids[1], None)], 2);
        assert_eq!((listed.len(), listed.next), (0, Some(ids[1])), "also if nothing can be shown");
        let listed = Listed::<i32>::read([(ids[0], None)], 2);
        assert_eq!((listed.quarantined, listed.next), (vec![ids[0]], None));
    }
}

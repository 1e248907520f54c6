//! Positions of events: which cursors are valid, and how far events may be
//! pruned. Positions are dense, so both answers compare numbers and read no
//! event.

use serde_json::json;

use crate::error::{ErrorKind, Refusal};

/// The events that are kept: those after `pruned`, up to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The highest position that was pruned; 0 if none was.
    pub pruned: i64,
    /// The highest position that was assigned; 0 if none was.
    pub last: i64,
}

impl Span {
    /// The span for a reader of one project: it misses nothing when only events of
    /// other projects were pruned. `own` is the highest pruned position of the
    /// project's events; 0 if there was none.
    pub fn of_project(self, own: i64) -> Self {
        Self { pruned: own.min(self.pruned), ..self }
    }
}

/// Whether a reader that has read up to `after` can continue without missing
/// anything. `field` is how the caller named the cursor.
///
/// This database never issued a cursor beyond the end. Such a cursor is refused
/// rather than waited for: it belongs to another installation, or to this one
/// before a restore, and the reader would silently miss events until the
/// positions have caught up with it.
pub fn check_cursor(field: &str, after: i64, span: Span) -> Result<(), Refusal> {
    let Span { pruned, last } = span;
    if after < 0 {
        return Err(Refusal::invalid(field, "must be a position, which is not negative"));
    }
    if after > last {
        return Err(Refusal::invalid(
            field,
            format!(
                "is {after}, and the last position is {last}; \
                 it belongs to another database, or to this one before a restore"
            ),
        )
        .with(json!({ "last_position": last })));
    }
    if after < pruned {
        let oldest = pruned + 1;
        return Err(Refusal::new(
            ErrorKind::CursorExpired,
            format!(
                "`{field}` is {after}, and events up to {pruned} are no longer kept; the oldest \
                 position that is left is {oldest}: read the state anew and go on after {pruned}"
            ),
        )
        .at(field)
        .with(json!({ "oldest_position": oldest, "last_position": last })));
    }
    Ok(())
}

/// The limit of one pruning step of `batch`: neither past the last assigned
/// position nor past the slowest subscriber.
pub fn prune_limit(span: Span, slowest_subscriber: Option<i64>, batch: u32) -> i64 {
    let had = slowest_subscriber.unwrap_or(span.last);
    span.pruned.saturating_add(i64::from(batch)).min(span.last).min(had).max(span.pruned)
}

/// The end of the pruning step: the event before the first one that is still
/// young. Events are pruned from the front only, so that the rest is dense.
pub fn prune_to(span: Span, limit: i64, first_young: Option<i64>) -> i64 {
    first_young.map_or(limit, |young| limit.min(young - 1)).max(span.pruned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(after: i64, pruned: i64, last: i64) -> Option<ErrorKind> {
        check_cursor("cursor", after, Span { pruned, last }).err().map(|refusal| refusal.kind)
    }

    #[test]
    fn an_expired_cursor_names_what_is_left() {
        let refusal = check_cursor("cursor", 3, Span { pruned: 7, last: 9 }).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::CursorExpired);
        assert_eq!(refusal.details, Some(json!({ "oldest_position": 8, "last_position": 9 })));
        assert!(refusal.message.contains("go on after 7"), "{}", refusal.message);
    }

    #[test]
    fn everything_pruned_is_not_the_same_as_nothing_there() {
        assert_eq!(kind(0, 0, 0), None, "nothing has happened yet");
        assert_eq!(kind(0, 9, 9), Some(ErrorKind::CursorExpired));
        assert_eq!(kind(9, 9, 9), None, "it has seen all there was");
    }

    proptest! {
        /// A reader of one project is refused exactly if an event of its own is gone.
        #[test]
        fn a_reader_of_one_project_misses_nothing_of_its_own(
            owners in prop::collection::vec(0_u8..3, 1..40),
            prunes in prop::collection::vec(1_usize..10, 0..8),
            after in 0_i64..40,
        ) {
            let last = i64::try_from(owners.len()).unwrap();
            let mut span = Span { pruned: 0, last };
            let mut pruned_own = 0;
            let own = |position: &i64| owners[usize::try_from(*position - 1).unwrap()] == 0;
            for count in &prunes {
                let to = last.min(span.pruned + i64::try_from(*count).unwrap());
                pruned_own = (span.pruned + 1..=to).filter(own).max().unwrap_or(pruned_own);
                span.pruned = to;
            }
            let after = after.min(last);
            let missed = (after + 1..=span.pruned).any(|position| own(&position));
            let refused = check_cursor("cursor", after, span.of_project(pruned_own)).is_err();
            prop_assert_eq!(refused, missed, "{:?} {}", span, pruned_own);
        }

        /// A cursor is valid exactly if the next event is kept or still to come.
        #[test]
        fn a_cursor_is_good_if_nothing_is_missed(
            pruned in 0_i64..50, kept in 0_i64..50, after in -5_i64..120,
        ) {
            let last = pruned + kept;
            let good = (pruned..=last).contains(&after);
            prop_assert_eq!(kind(after, pruned, last).is_none(), good);
        }

        #[test]
        fn pruning_never_passes_a_subscriber_a_young_event_or_the_end(
            pruned in 0_i64..50, kept in 0_i64..50, batch in 1_u32..30,
            had in prop::option::of(0_i64..100), young in prop::option::of(1_i64..100),
        ) {
            let span = Span { pruned, last: pruned + kept };
            let young = young.map(|young| young + pruned);
            let had = had.map(|had| had + pruned);
            let limit = prune_limit(span, had, batch);
            let to = prune_to(span, limit, young);
            prop_assert!(to >= pruned && to <= span.last);
            prop_assert!(to - pruned <= i64::from(batch));
            prop_assert!(had.is_none_or(|had| to <= had));
            prop_assert!(young.is_none_or(|young| to < young));
        }

        /// A subscriber that is behind the pruned position (a restored cursor)
        /// stops pruning but does not move it back.
        #[test]
        fn what_is_pruned_stays_pruned(pruned in 10_i64..50, had in 0_i64..10) {
            let span = Span { pruned, last: 60 };
            prop_assert_eq!(prune_limit(span, Some(had), 5), pruned);
        }
    }
}

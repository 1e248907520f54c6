//! How much history an attempt keeps while it exists.
//!
//! An object that flaps for months changes its phase up to once a second. Its
//! first lines say how it came up and its newest what it does now; the middle is
//! more of the same, and retention removes it.

/// The lines that are kept, counted from both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryBounds {
    pub first: u32,
    pub newest: u32,
}

/// A life without flapping has less than thirty lines. A thousand, of some 200
/// bytes each, are ten pages of a list, and at one change a second the newest of
/// them cover a quarter of an hour.
pub const HISTORY_BOUNDS: HistoryBounds = HistoryBounds { first: 100, newest: 900 };

impl HistoryBounds {
    pub const fn total(self) -> u32 {
        self.first + self.newest
    }
}

/// The numbers between which every line goes, both excluded: that of the last line
/// of the first ones, and that of the first line of the newest. `None` if nothing
/// is between them, also if there are fewer lines.
pub fn removable(last_of_first: Option<i64>, first_of_newest: Option<i64>) -> Option<(i64, i64)> {
    let between = (last_of_first?, first_of_newest?);
    (between.0 < between.1).then_some(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of lines with these numbers.
    fn left(numbers: &[i64], kept: HistoryBounds) -> Vec<i64> {
        let at = |count: u32| usize::try_from(count).unwrap().checked_sub(1);
        let last_of_first = at(kept.first).and_then(|at| numbers.get(at)).copied();
        let first_of_newest = at(kept.newest).and_then(|at| numbers.iter().rev().nth(at)).copied();
        let between = removable(last_of_first, first_of_newest);
        let goes = |number: i64| between.is_some_and(|(low, high)| low < number && number < high);
        numbers.iter().copied().filter(|number| !goes(*number)).collect()
    }

    #[test]
    fn the_first_and_the_newest_lines_stay() {
        let kept = HistoryBounds { first: 2, newest: 3 };
        assert_eq!(kept.total(), 5);
        assert_eq!(left(&[1, 2, 4, 5, 7, 8, 9], kept), [1, 2, 7, 8, 9]);
        assert_eq!(left(&[1, 2, 7, 8, 9], kept), [1, 2, 7, 8, 9], "once more");
        assert_eq!(left(&[1, 2, 7, 8, 9, 12], kept), [1, 2, 8, 9, 12], "it goes on");
        for short in [&[1, 2, 3, 4][..], &[1], &[]] {
            assert_eq!(left(short, kept), short);
        }
    }
}

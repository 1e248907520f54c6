//! The widths of columns in a terminal. Pure.

/// Between two columns.
const GAP: usize = 2;

/// A column that is longer than this may be shortened: it has a text or a long name, and
/// not a state, a time or a short id.
const RIGID: usize = 24;

/// So much of a column is always shown, or it is left out.
const LEAST: usize = 16;

/// The columns that are shown, from the left, with their widths.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fit {
    pub(super) widths: Vec<usize>,
    /// No column is left out.
    pub(super) complete: bool,
}

/// Fits columns with these longest cells and headings into a line. The first column is
/// never left out; long columns give way first, then the last ones.
pub(super) fn fit(natural: &[usize], headings: &[usize], width: usize) -> Fit {
    let least = |(natural, heading): (&usize, &usize)| match *natural {
        natural if natural > RIGID => natural.min(LEAST.max(*heading)),
        natural => natural,
    };
    let least: Vec<usize> = natural.iter().zip(headings).map(least).collect();
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len() - GAP;
    let fits = |shown: &usize| {
        // The heading `…` of what is left out takes room, too.
        let more = if *shown < least.len() { GAP + 1 } else { 0 };
        total(&least[..*shown]) + more <= width
    };
    let Some(shown) = (1..=least.len()).rev().find(fits) else {
        let only = natural.first().map(|first| (*first).min(width)).into_iter().collect();
        // Not even a `…` beside it.
        return Fit { widths: only, complete: true };
    };
    let complete = shown == least.len();
    let mut widths = least[..shown].to_vec();
    let mut room = width - total(&widths) - if complete { 0 } else { GAP + 1 };
    for (width, natural) in widths.iter_mut().zip(natural) {
        let more = (natural - *width).min(room);
        *width += more;
        room -= more;
    }
    Fit { widths, complete }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_columns_give_way_before_the_last_one_goes() {
        let headings = [6, 5, 3, 8];
        let natural = [8, 10, 3, 40];
        let fit = |width| fit(&natural, &headings, width);
        assert_eq!(fit(80), Fit { widths: natural.to_vec(), complete: true });
        assert_eq!(fit(50), Fit { widths: vec![8, 10, 3, 23], complete: true });
        assert_eq!(fit(40), Fit { widths: vec![8, 10, 3], complete: false });
        assert_eq!(fit(5), Fit { widths: vec![5], complete: true });
    }

    proptest! {
        #[test]
        fn a_line_never_exceeds_the_width(
            columns in prop::collection::vec((1_usize..90, 1_usize..12), 1..9),
            width in 1_usize..200,
        ) {
            let natural: Vec<_> = columns.iter().map(|(cell, heading)| *cell.max(heading)).collect();
            let headings: Vec<_> = columns.iter().map(|(_, heading)| *heading).collect();
            let Fit { widths, complete } = fit(&natural, &headings, width);
            let more = if complete { 0 } else { GAP + 1 };
            let used = widths.iter().sum::<usize>() + GAP * (widths.len() - 1) + more;
            prop_assert!(used <= width && !widths.is_empty());
            prop_assert!(widths.iter().zip(&natural).all(|(shown, natural)| shown <= natural));
            let whole = natural.iter().sum::<usize>() + GAP * (natural.len() - 1);
            prop_assert!(whole > width || widths == natural, "nothing is cut without need");
        }
    }
}

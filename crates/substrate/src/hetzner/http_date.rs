//! The time in a `Date` header, which the rate limit is compared with.

/// Seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that a
/// server may write today.
pub(super) fn seconds(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, date) = text.split_once(", ")?;
    let [day, month, year, time, "GMT"] = date.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let number = |text: &str| text.parse::<u64>().ok();
    let (day, year) = (number(day)?, number(year)?);
    let month = u64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()? + 1;
    let [hours, minutes, seconds] = time.split(':').collect::<Vec<_>>()[..] else {
        return None;
    };
    let seconds = number(hours)? * 3_600 + number(minutes)? * 60 + number(seconds)?;
    // Days of the civil calendar, with years that begin in March, so that a leap day is last.
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day.checked_sub(1)?;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    Some(days.checked_sub(719_468)? * 86_400 + seconds)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn dates_are_counted_from_1970() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 12:00:00 GMT", Some(1_709_208_000)),
            ("Fri, 31 Dec 2027 23:59:59 GMT", Some(1_830_297_599)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}

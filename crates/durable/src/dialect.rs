//! The few expressions that SQLite and PostgreSQL spell differently.
//!
//! [`fragment!`](crate::fragment) expands to string literals, so that `concat!`
//! joins a statement at compile time and it stays a `&'static str`. A store
//! writes each statement once and compiles it for both databases.
//!
//! Times are `timestamptz` in PostgreSQL and whole microseconds since the Unix
//! epoch in SQLite.

/// One piece of SQL in a dialect: `fragment!(postgres, now)`. A string literal
/// stands for itself.
///
/// | fragment | meaning |
/// |---|---|
/// | `now` | the database's clock; not `now()`, which is stale after a lock wait |
/// | `(plus_micros "$2")` | adds a parameter of microseconds to a time |
/// | `(minus_micros "$2")` | subtracts them |
/// | `greatest`, `least` | functions of several values |
/// | `for_update`, `for_share` | row locks; SQLite has one writer and needs none |
/// | `(for_update_of "a")` | the same for one table of a join |
/// | `skip_locked` | a row lock for update that skips locked rows |
/// | `(one_of "$1")` | membership in a list parameter |
/// | `picked_from`, `picked_end` | membership in a subquery that runs exactly once |
/// | `(as_micros "a")` | a time as whole microseconds since the Unix epoch |
/// | `(from_micros "a")` | the time of such a number |
/// | `given_micros` | the column `micros` of [`rows_from_json!`](crate::rows_from_json), to be added to a time |
///
/// The locks for update are PostgreSQL's NO KEY kind: they exclude one another
/// and FOR SHARE, and let the foreign key checks of other transactions pass,
/// which read the same parent rows all the time.
///
/// `picked_from` exists because PostgreSQL may run an `IN (SELECT … LIMIT …
/// FOR UPDATE SKIP LOCKED)` more than once, locking and updating more rows than
/// the limit says; `= ANY(ARRAY(…))` is evaluated once.
#[macro_export]
macro_rules! fragment {
    (postgres, now) => {
        "clock_timestamp()"
    };
    (sqlite, now) => {
        "CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)"
    };
    (postgres, (plus_micros $parameter:literal)) => {
        concat!(" + ", $parameter, "::bigint * interval '1 microsecond'")
    };
    (sqlite, (plus_micros $parameter:literal)) => {
        concat!(" + ", $parameter)
    };
    (postgres, (minus_micros $parameter:literal)) => {
        concat!(" - ", $parameter, "::bigint * interval '1 microsecond'")
    };
    (sqlite, (minus_micros $parameter:literal)) => {
        concat!(" - ", $parameter)
    };
    (postgres, greatest) => {
        "greatest"
    };
    (sqlite, greatest) => {
        "max"
    };
    (postgres, least) => {
        "least"
    };
    (sqlite, least) => {
        "min"
    };
    (postgres, for_update) => {
        " FOR NO KEY UPDATE"
    };
    (sqlite, for_update) => {
        ""
    };
    (postgres, (for_update_of $table:literal)) => {
        concat!(" FOR NO KEY UPDATE OF ", $table)
    };
    (sqlite, (for_update_of $table:literal)) => {
        ""
    };
    (postgres, for_share) => {
        " FOR SHARE"
    };
    (sqlite, for_share) => {
        ""
    };
    (postgres, skip_locked) => {
        " FOR NO KEY UPDATE SKIP LOCKED"
    };
    (sqlite, skip_locked) => {
        ""
    };
    (postgres, (one_of $parameter:literal)) => {
        concat!("= ANY(", $parameter, ")")
    };
    (sqlite, (one_of $parameter:literal)) => {
        concat!("IN (SELECT unhex(value) FROM json_each(", $parameter, "))")
    };
    (postgres, picked_from) => {
        "= ANY(ARRAY("
    };
    (sqlite, picked_from) => {
        "IN ("
    };
    (postgres, picked_end) => {
        "))"
    };
    (sqlite, picked_end) => {
        ")"
    };
    (postgres, (as_micros $time:literal)) => {
        concat!("(extract(epoch FROM ", $time, ") * 1000000)::bigint")
    };
    (sqlite, (as_micros $time:literal)) => {
        $time
    };
    (postgres, (from_micros $number:literal)) => {
        concat!("timestamptz 'epoch' + ", $number, " * interval '1 microsecond'")
    };
    (sqlite, (from_micros $number:literal)) => {
        $number
    };
    (postgres, given_micros) => {
        "given.micros * interval '1 microsecond'"
    };
    (sqlite, given_micros) => {
        "given.micros"
    };
    (postgres, json_rows) => {
        "json_agg"
    };
    (sqlite, json_rows) => {
        "json_group_array"
    };
    (postgres, json_array) => {
        "json_build_array"
    };
    (sqlite, json_array) => {
        "json_array"
    };
    (postgres, (uuid_text $column:literal)) => {
        $column
    };
    (sqlite, (uuid_text $column:literal)) => {
        concat!("hex(", $column, ")")
    };
    (postgres, (hex_of $column:literal)) => {
        concat!("encode(", $column, ", 'hex')")
    };
    (sqlite, (hex_of $column:literal)) => {
        concat!("hex(", $column, ")")
    };
    ($dialect:ident, $literal:literal) => {
        $literal
    };
}

/// A JSON parameter, an array of objects, as rows named `given`:
/// `rows_from_json!(postgres, "$1", id: uuid, at: time)`. A missing field is null.
/// It is one parameter whatever the length, so a statement is prepared once and a
/// batch is one round trip.
#[macro_export]
macro_rules! rows_from_json {
    (@list $dialect:ident $column:ident $kind:ident) => {
        $crate::rows_from_json!(@column $dialect $kind, stringify!($column))
    };
    (@list $dialect:ident $column:ident $kind:ident, $($rest:tt)+) => {
        concat!(
            $crate::rows_from_json!(@list $dialect $column $kind),
            ", ",
            $crate::rows_from_json!(@list $dialect $($rest)+)
        )
    };
    (@column postgres json, $column:expr) => { concat!($column, " jsonb") };
    (@column postgres bytes, $column:expr) => { concat!($column, " bytea") };
    (@column postgres time, $column:expr) => { concat!($column, " timestamptz") };
    (@column postgres $kind:ident, $column:expr) => { concat!($column, " ", stringify!($kind)) };
    (@column sqlite uuid, $column:expr) => {
        concat!("unhex(value ->> '", $column, "', '-') AS ", $column)
    };
    (@column sqlite bytes, $column:expr) => {
        concat!("unhex(value ->> '", $column, "') AS ", $column)
    };
    // A JSON null is an SQL null, as in PostgreSQL.
    (@column sqlite json, $column:expr) => {
        concat!("nullif(value -> '", $column, "', 'null') AS ", $column)
    };
    (@column sqlite $kind:ident, $column:expr) => {
        concat!("value ->> '", $column, "' AS ", $column)
    };
    (postgres, $parameter:literal, $($column:ident: $kind:ident),+ $(,)?) => {
        concat!(
            "jsonb_to_recordset(",
            $parameter,
            ") AS given (",
            $crate::rows_from_json!(@list postgres $($column $kind),+),
            ")"
        )
    };
    (sqlite, $parameter:literal, $($column:ident: $kind:ident),+ $(,)?) => {
        concat!(
            "(SELECT ",
            $crate::rows_from_json!(@list sqlite $($column $kind),+),
            " FROM json_each(",
            $parameter,
            ")) AS given"
        )
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn fragments_join_into_one_literal() {
        const STATEMENT: &str = concat!(
            "SELECT id FROM jobs WHERE id ",
            fragment!(sqlite, (one_of "$1")),
            fragment!(sqlite, for_update),
            fragment!(sqlite, " -- end"),
        );
        assert_eq!(
            STATEMENT,
            "SELECT id FROM jobs WHERE id IN (SELECT unhex(value) FROM json_each($1)) -- end"
        );
    }

    #[test]
    fn postgres_reads_the_clock_and_not_the_start_of_the_transaction() {
        assert_eq!(fragment!(postgres, now), "clock_timestamp()");
        assert_eq!(
            fragment!(postgres, (plus_micros "$2")),
            " + $2::bigint * interval '1 microsecond'"
        );
    }
}

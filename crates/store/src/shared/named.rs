//! The shapes of the fragments by which a room says what its things are called. Each room
//! has them for its own tables in its `named.rs`, and [`super::access::names`] asks them.

/// The names of those of the ids `$1` that are in a table.
macro_rules! names_of {
    ($from:literal, $name:expr) => {
        concat!("SELECT d.id, ", $name, " AS name FROM ", $from, " WHERE d.id ", sql!((one_of "$1")))
    };
}

/// What a person may mean by the name `$1` or by an id from `$2` to `$3`, within the project
/// `$4` if there is one, at most `$5`. The parts: the table, what it is called in full, the ids
/// of those that are called `$1`, whether the row lives, whether it is of the project. Ids are
/// gathered first, each by its index.
macro_rules! called {
    ($table:literal, $name:expr, $ids:expr, $live:literal, $project:expr) => {
        concat!(
            "SELECT d.id, ",
            $name,
            " AS name, CASE WHEN d.id IN (",
            $ids,
            ") THEN 1 ELSE 0 END AS named, CASE WHEN ",
            $live,
            " THEN 1 ELSE 0 END AS live FROM ",
            $table,
            " d WHERE d.id ",
            one_of!(concat!(
                $ids,
                " UNION ALL SELECT id FROM ",
                $table,
                " WHERE id BETWEEN $2 AND $3"
            )),
            " AND ($4 IS NULL OR ",
            $project,
            ") ORDER BY live DESC, d.id DESC LIMIT $5"
        )
    };
}

/// The same for a kind without names; the parameter of the name has to occur.
macro_rules! by_id {
    ($table:literal, $project:expr) => {
        called!($table, "NULL", "SELECT $2 WHERE $1 IS NULL", "1 = 1", $project)
    };
}

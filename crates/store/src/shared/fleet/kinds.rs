//! What the tables of generators, stacks, templates and agents have alike: their names are
//! unique within a project only, so their ids refer to them.

/// Three of the queries of a table, from its `SELECT … FROM table alias ` and the alias.
macro_rules! queries_by_id {
    ($select:expr, $alias:literal) => {
        const NAMED: &'static str = concat!(
            $select,
            "WHERE ",
            $alias,
            ".deleted_at IS NULL AND ",
            $alias,
            ".name IN (SELECT given.name FROM ",
    rows_from_json!(name: text),
            ")"
        );

        fn fetch_query(reference: &str, show_deleted: bool) -> table::Query<'_> {
            let statement = concat!(
                $select,
                "WHERE ",
                $alias,
                ".id = $1 AND ($2 OR ",
                $alias,
                ".deleted_at IS NULL)"
            );
            sqlx::query(statement).bind(as_id(reference)).bind(show_deleted)
        }

        fn lock_query(reference: &str, lock: table::Lock) -> table::Query<'_> {
            let statement = match lock {
                table::Lock::Update => concat!(
                    $select,
                    "WHERE ",
                    $alias,
                    ".id = $1 AND ",
                    $alias,
                    ".deleted_at IS NULL",
                    sql!(for_update)
                ),
                table::Lock::Share => concat!(
                    $select,
                    "WHERE ",
                    $alias,
                    ".id = $1 AND ",
                    $alias,
                    ".deleted_at IS NULL",
                    sql!(for_share)
                ),
            };
            sqlx::query(statement).bind(as_id(reference))
        }
    };
}

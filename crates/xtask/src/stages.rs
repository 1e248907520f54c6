//! Timed stages of a run, and the table of where the time went.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The stages so far. A run stops at the first that fails, and the table is
/// printed all the same.
#[derive(Debug, Default)]
pub struct Stages {
    taken: Vec<Taken>,
}

#[derive(Debug)]
struct Taken {
    name: String,
    time: Duration,
    succeeded: bool,
    /// Whether its time is part of the stage before it.
    is_part: bool,
}

impl Stages {
    /// Runs one stage. `None` if it failed; the reason was printed.
    pub fn take<T>(&mut self, name: &str, stage: impl FnOnce() -> anyhow::Result<T>) -> Option<T> {
        println!("\n== {name}");
        let started = Instant::now();
        let outcome = stage();
        let time = started.elapsed();
        let succeeded = outcome.is_ok();
        self.taken.push(Taken { name: name.to_owned(), time, succeeded, is_part: false });
        outcome.inspect_err(|error| eprintln!("{name}: {error:#}")).ok()
    }

    /// Adds a row for a part of the last stage. Parts may run side by side, so
    /// their times do not add up.
    pub fn note(&mut self, name: &str, time: Duration, succeeded: bool) {
        self.taken.push(Taken { name: format!("  {name}"), time, succeeded, is_part: true });
    }

    /// Whether every stage so far succeeded.
    pub fn all_succeeded(&self) -> bool {
        self.taken.iter().all(|stage| stage.succeeded)
    }

    /// The table "Where the time went".
    pub fn table(&self) -> String {
        let stages = self.taken.iter().filter(|stage| !stage.is_part);
        let total = stages.map(|stage| stage.time).sum::<Duration>();
        let verdict = |succeeded| if succeeded { "ok" } else { "failed" };
        let rows =
            self.taken.iter().map(|stage| (&*stage.name, stage.time, verdict(stage.succeeded)));
        let total_row = ("total", total, verdict(self.all_succeeded()));
        let width = self.taken.iter().map(|stage| stage.name.len()).max().unwrap_or(0).max(5);
        let mut table = String::from("\nWhere the time went\n");
        for (name, time, verdict) in rows.chain([total_row]) {
            let seconds = time.as_secs_f64();
            let _infallible = writeln!(table, "  {name:width$}  {seconds:8.1} s  {verdict}");
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Stages;

    #[test]
    fn a_part_has_a_row_and_adds_nothing_to_the_total() {
        let mut stages = Stages::default();
        stages.take("tests", || Ok(()));
        stages.note("kube", Duration::from_secs(300), true);
        let table = stages.table();
        let rows: Vec<Vec<&str>> =
            table.lines().skip(3).map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["kube", "300.0", "s", "ok"]);
        assert_eq!(rows[1], ["total", "0.0", "s", "ok"]);
    }

    #[test]
    fn a_failed_step_is_in_the_table_and_fails_the_run() {
        let mut stages = Stages::default();
        assert_eq!(stages.take("first", || Ok(1)), Some(1));
        assert!(stages.all_succeeded());
        assert_eq!(stages.take::<()>("the second", || anyhow::bail!("no")), None);
        assert!(!stages.all_succeeded());

        let table = stages.table();
        let rows: Vec<Vec<&str>> =
            table.lines().skip(2).map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["first", "0.0", "s", "ok"]);
        assert_eq!(rows[1], ["the", "second", "0.0", "s", "failed"]);
        assert_eq!(rows[2], ["total", "0.0", "s", "failed"]);
    }
}

//! The matrix: every scenario, on each database, with a fault at every point.
//!
//! For each scenario and kind of succession one run without faults counts the
//! points; then one run per registered point crashes there. A third round fails
//! instead of crashing: every action once without effect, every action and
//! every commit once with only the answer lost, and every action performed
//! twice.
//!
//! The test fails on anything that would hide a point: a run that does not
//! reach its point, a first life that passed other points on the way than the
//! run without faults, a registered point that was never hit, and a last run
//! without faults that passes other points than the first.
//!
//! All runs of one cell share a database, one after the other; between runs the
//! leftovers are made invisible to the loop. Some cells run side by side, since
//! much of their time is waiting for the next tick of a row.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use futures::stream;

use super::checks::{self, Reader};
use super::fate::{Fault, Point};
use super::plane::{Plane, Succession};
use super::raw::Raw;
use super::registry::Registry;
use super::scenarios::Scenario;
use crate::world::World;

/// Cells that run side by side. With all of them at once the loops that only wait
/// for their turn take a third more of the cores.
const AT_ONCE: usize = 8;
/// A run takes a second at most; only a hanging one takes longer.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// Timing may add a tick of the loop once in a while, which makes it another
/// run than the intended one; not three times in a row.
const TRIES: u32 = 3;

#[tokio::test]
async fn sqlite_survives_a_fault_at_every_point() {
    let worlds = || async { World::sqlite().await }.boxed_local();
    matrix("sqlite", worlds).await;
}

#[tokio::test]
async fn postgres_survives_a_fault_at_every_point() {
    const TEST: &str = "postgres_survives_a_fault_at_every_point";
    if World::postgres(TEST).await.is_none() {
        return;
    }
    let worlds = || async { World::postgres(TEST).await.unwrap() }.boxed_local();
    matrix("postgres", worlds).await;
}

async fn matrix(database: &str, world: impl Fn() -> LocalBoxFuture<'static, World>) {
    let started = Instant::now();
    let mut cells = Vec::new();
    for scenario in Scenario::ALL {
        for part in [
            Part::Crashes(Succession::Restart),
            Part::Crashes(Succession::Takeover),
            Part::Failures,
        ] {
            if part == Part::Crashes(Succession::Takeover) && !scenario.has_takeover() {
                continue;
            }
            let world = world();
            cells.push(
                async move {
                    let world = world.await;
                    Cell::new(&world, scenario, part).await.run().await
                }
                .boxed_local(),
            );
        }
    }
    let reports: Vec<_> = stream::iter(cells).buffered(AT_ONCE).collect().await;
    let mut text = String::new();
    let (mut points, mut runs) = (0, 0);
    for report in &reports {
        points += report.points;
        runs += report.runs;
        writeln!(
            text,
            "faults on {database}: {:?}, {:?}: {} points ({} of them only after a crash), {} runs",
            report.scenario, report.part, report.points, report.found_later, report.runs
        )
        .unwrap();
    }
    let seconds = started.elapsed().as_secs_f64();
    writeln!(text, "faults on {database}: {points} points, {runs} runs, {seconds:.1} s").unwrap();
    // Not `eprintln!`: the test harness captures it.
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Crashes(Succession),
    Failures,
}

struct Report {
    scenario: Scenario,
    part: Part,
    points: usize,
    found_later: usize,
    runs: usize,
}

/// One scenario on one database, with one kind of faults.
struct Cell<'a> {
    world: &'a World,
    raw: Raw,
    reader: Reader,
    scenario: Scenario,
    part: Part,
    runs: usize,
}

/// The points that a run passed.
struct Ran {
    /// Per life.
    passed: Vec<Vec<Point>>,
    /// Whether the fault of each life struck.
    struck: Vec<bool>,
}

impl<'a> Cell<'a> {
    async fn new(world: &'a World, scenario: Scenario, part: Part) -> Self {
        let raw = Raw::open(&world.url).await;
        Self { world, raw, reader: Reader::default(), scenario, part, runs: 0 }
    }

    async fn run(mut self) -> Report {
        let counted = self.count().await;
        let (points, found_later) = match self.part {
            Part::Crashes(_) => self.crash_everywhere(&counted).await,
            Part::Failures => (self.fail_everywhere(&counted).await, 0),
        };
        if self.scenario.is_steady() {
            let again = self.run_once(Vec::new()).await.passed.remove(0);
            assert_eq!(names(&again), names(&counted), "{:?}: points came or went", self.scenario);
        }
        let Self { scenario, part, runs, .. } = self;
        Report { scenario, part, points, found_later, runs }
    }

    /// A run without faults. Of two loops that would do the same the first one does it, so a run
    /// that lacks a point is followed by another one.
    async fn count(&mut self) -> Vec<Point> {
        let mut counted = Vec::new();
        for _ in 0..TRIES {
            counted = self.run_once(Vec::new()).await.passed.remove(0);
            if self.scenario.passes().iter().all(|name| names(&counted).contains(name)) {
                break;
            }
        }
        counted
    }

    async fn crash_everywhere(&mut self, counted: &[Point]) -> (usize, usize) {
        let steady = self.scenario.is_steady();
        for name in self.scenario.passes() {
            assert!(names(counted).contains(name), "{:?} never passed {name}", self.scenario);
        }
        let mut registry = Registry::new(self.part == Part::Crashes(Succession::Takeover));
        registry.register(&self.reliable(counted), steady);
        let mut found_later = 0;
        while let Some((index, target)) = registry.unhit() {
            let path = target.path();
            let ran = self.strike(&path, counted).await;
            registry.hit(index);
            // The life after the last fault is the one that took this way.
            if let Some(passed) = ran.passed.get(path.len()).filter(|_| steady) {
                found_later += registry.discover(&path, passed);
            }
        }
        let unhit = registry.never_hit();
        assert!(unhit.is_empty(), "{:?}: never hit: {unhit:?}", self.scenario);
        (registry.len(), found_later)
    }

    async fn fail_everywhere(&mut self, counted: &[Point]) -> usize {
        let mut registry = Registry::new(false);
        let mut breakable = self.reliable(counted);
        breakable
            .retain(|point| self.scenario.fails_at(&point.name) && !faults_at(point).is_empty());
        registry.register(&breakable, self.scenario.is_steady());
        while let Some((index, target)) = registry.unhit() {
            for fault in faults_at(&target.point) {
                self.strike(&[(target.point.clone(), *fault)], counted).await;
            }
            registry.hit(index);
        }
        registry.len()
    }

    /// The points that every run passes.
    fn reliable(&self, counted: &[Point]) -> Vec<Point> {
        let every = counted.iter().filter(|point| self.scenario.always_passes(&point.name));
        every.cloned().collect()
    }

    /// A run in which every fault of the path strikes.
    async fn strike(&mut self, path: &[(Point, Fault)], counted: &[Point]) -> Ran {
        let mut missed = String::new();
        for _ in 0..TRIES {
            let ran = self.run_once(path.to_vec()).await;
            let struck =
                path.iter().enumerate().all(|(life, _)| ran.struck.get(life) == Some(&true));
            let first = &ran.passed[0];
            let on_the_way =
                first.iter().position(|point| point.is(&path[0].0)).unwrap_or(first.len());
            let same = counted.get(..on_the_way).map(names) == Some(names(&first[..on_the_way]));
            if struck && (same || !self.scenario.is_steady()) {
                return ran;
            }
            write!(
                missed,
                "\n  passed {:?}",
                ran.passed.iter().map(|p| names(p)).collect::<Vec<_>>()
            )
            .unwrap();
        }
        panic!("{:?}, {:?}: no run got to {}: {missed}", self.scenario, self.part, show(path));
    }

    /// Performs one run and checks it.
    async fn run_once(&mut self, path: Vec<(Point, Fault)>) -> Ran {
        self.runs += 1;
        let context =
            format!("{:?}, {:?}, run {}: {}", self.scenario, self.part, self.runs, show(&path));
        let ran = tokio::time::timeout(RUN_LIMIT, self.checked(path, context.clone())).await;
        let (ran, wrong) = ran.unwrap_or_else(|_| panic!("{context}: it hangs"));
        assert!(wrong.is_empty(), "{context}:\n  {}", wrong.join("\n  "));
        ran
    }

    async fn checked(&mut self, path: Vec<(Point, Fault)>, title: String) -> (Ran, Vec<String>) {
        let succession = match self.part {
            Part::Crashes(succession) => succession,
            Part::Failures => Succession::Restart,
        };
        let mut wrong = Vec::new();
        let mut plane = Plane::new(self.world, succession, path, title);
        let handle = format!("web-{}", self.runs);
        let fillings = self.scenario.play(&mut plane, &handle).await;
        plane.relay_all().await;
        let events = self.reader.read(self.world, &mut wrong).await;
        wrong.extend(checks::check(&plane, &mut self.raw, &fillings, &events).await);
        for filling in fillings.iter().filter(|filling| filling.purged.is_none()) {
            self.raw.retire(filling.attempt).await;
        }
        let passed = plane.fates.iter().map(|fate| fate.passed()).collect();
        let struck = plane.fates.iter().map(|fate| fate.struck()).collect();
        (Ran { passed, struck }, wrong)
    }
}

/// The faults other than a crash that are possible at a point. A commit that
/// fails before it is done is left out: it was rolled back, and the next
/// attempt finds the same state, as after a crash there.
fn faults_at(point: &Point) -> &'static [Fault] {
    let action = point.name.starts_with("action:");
    match (action, point.name.ends_with("/before")) {
        (true, true) => &[Fault::Fail, Fault::Twice],
        (false, true) => &[],
        (_, false) => &[Fault::Fail],
    }
}

fn names(points: &[Point]) -> Vec<&str> {
    points.iter().map(|point| point.name.as_str()).collect()
}

fn show(path: &[(Point, Fault)]) -> String {
    let faults: Vec<_> =
        path.iter().map(|(point, fault)| format!("{fault:?} at {point}")).collect();
    if faults.is_empty() { "no fault".to_owned() } else { faults.join(", then ") }
}

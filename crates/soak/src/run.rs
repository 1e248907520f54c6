//! The course of a soak: start, perform the schedule, take everything down,
//! report.

use std::env;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use slipway_testkit::postgres::DATABASE_URL_VARIABLE;

use super::agents;
use super::cluster::{Cluster, Frozen};
use super::events::Events;
use super::model::Slot;
use super::options::{Options, Scenario};
use super::perform::Done;
use super::program;
use super::report::Tally;
use super::schedule::{Operation, Schedule, Scheduled, draw, fingerprint};
use super::world::{Programs, World};

/// The state of a running soak.
#[derive(Debug)]
pub(super) struct Soak {
    pub(super) world: World,
    pub(super) slots: Vec<Slot>,
    pub(super) events: Events,
    pub(super) tally: Tally,
    pub(super) violations: Vec<String>,
    /// While a freeze is settled.
    pub(super) frozen: Option<Frozen>,
    started: Instant,
}

/// Runs a soak; true if nothing was violated.
pub(super) fn run(options: &Options) -> anyhow::Result<bool> {
    let steps = schedule(options);
    println!("schedule {} of {} steps", fingerprint(&steps), steps.len());
    if options.print {
        for step in &steps {
            println!("{:6} ms later {:?}", step.delay, step.operation);
        }
        return Ok(true);
    }
    let slipway = match &options.binary {
        Some(binary) => binary.clone(),
        None => program::build("slipway", "slipway", options.debug)?,
    };
    let standin = match (&options.standin, options.scenario) {
        (_, Scenario::Mixed | Scenario::Replicas) => None,
        (Some(standin), _) => Some(standin.clone()),
        (None, _) => Some(program::build("slipway-standin", "crossplane-standin", options.debug)?),
    };
    let programs = Programs { slipway, standin };
    let server = env::var(DATABASE_URL_VARIABLE).ok().filter(|url| !url.is_empty());
    go(options, &steps, &programs, server.as_deref())
}

fn schedule(options: &Options) -> Vec<Scheduled> {
    draw(&Schedule {
        scenario: options.scenario,
        seed: options.seed,
        seconds: options.seconds,
        slots: options.resources,
        planes: options.replicas,
    })
}

/// True if nothing was violated. `server` is an existing PostgreSQL.
fn go(
    options: &Options,
    steps: &[Scheduled],
    programs: &Programs,
    server: Option<&str>,
) -> anyhow::Result<bool> {
    let started = Instant::now();
    let mut soak = Soak {
        world: World::start(options, programs, server)?,
        slots: (0..options.resources).map(Slot::new).collect(),
        events: Events::default(),
        tally: Tally::default(),
        violations: Vec::new(),
        frozen: None,
        started,
    };
    let root = soak.world.root();
    let went = soak.go_through(steps).and_then(|()| soak.take_down());
    if let Err(error) = went {
        soak.violation(None, &format!("{error:#}"));
    }
    if options.keep {
        println!("kept: {}", soak.world.keep().display());
    }
    let Soak { world, mut tally, mut violations, .. } = soak;
    tally.cluster = world.cluster.as_ref().map(Cluster::summary);
    drop(world);
    // Our agents are killed with the world, so any agent left has escaped.
    let left = agents::living(&root)?;
    if !left.is_empty() {
        violations.push(format!("processes are left: {left:?}"));
    }
    let count = violations.len();
    println!("{}", tally.last_line(options, &fingerprint(steps), started.elapsed(), count));
    Ok(violations.is_empty())
}

impl Soak {
    /// Stops at the first violation: later results prove nothing.
    fn go_through(&mut self, steps: &[Scheduled]) -> anyhow::Result<()> {
        for step in steps {
            self.world.pass(Duration::from_millis(step.delay))?;
            let done = self
                .perform(step.operation)
                .with_context(|| format!("while at {:?}", step.operation))?;
            match done {
                Done::Yes => self.tally.done(step.operation),
                Done::Skipped => self.tally.skipped += 1,
                Done::Refused => self.tally.refused += 1,
            }
            self.check_changes();
            if !self.violations.is_empty() {
                return Ok(());
            }
            if step.operation == Operation::Converge {
                self.say();
            }
        }
        Ok(())
    }

    /// Deletes everything, uses handles once more, and checks that only empty
    /// folders are left.
    fn take_down(&mut self) -> anyhow::Result<()> {
        for again in [true, false] {
            if !self.violations.is_empty() {
                return Ok(());
            }
            for slot in 0..self.slots.len() {
                self.perform(Operation::Delete { slot })?;
            }
            self.converge()?;
            if again && self.violations.is_empty() {
                self.use_every_handle_again()?;
            }
        }
        if self.violations.is_empty() && self.world.cluster.is_some() {
            self.withdraw_all()?;
            self.check_at_rest()?;
        }
        if self.violations.is_empty() {
            self.world.stop()?;
        }
        Ok(())
    }

    fn use_every_handle_again(&mut self) -> anyhow::Result<()> {
        // A few are enough: the schedule has covered the rest.
        for slot in 0..self.slots.len().min(3) {
            self.perform(Operation::Declare { slot, busy_seconds: 0 })?;
        }
        self.converge()
    }

    fn say(&self) {
        let living = self.slots.iter().filter(|slot| slot.is_wanted()).count();
        println!(
            "{:5} s: at rest with {living} resources; {} operations, {} events, {} declared so far",
            self.started.elapsed().as_secs(),
            self.tally.operations,
            self.tally.events,
            self.tally.resources,
        );
    }

    /// Notes an operation on a slot.
    pub(super) fn note(&mut self, slot: usize, line: &str) {
        let at = self.started.elapsed().as_secs_f64();
        self.slots[slot].note(format!("{at:9.3} s {line}"));
    }

    /// Notes an operation on all slots.
    pub(super) fn note_all(&mut self, line: &str) {
        for slot in 0..self.slots.len() {
            self.note(slot, line);
        }
    }

    /// Reports a violation, with all that is known about it.
    pub(super) fn violation(&mut self, slot: Option<usize>, text: &str) {
        eprintln!("\nVIOLATION at {:.3} s: {text}", self.started.elapsed().as_secs_f64());
        if let Some(slot) = slot.map(|slot| &self.slots[slot]) {
            eprintln!("what was done to {}:", slot.handle);
            for line in slot.trace() {
                eprintln!("  {line}");
            }
            for (number, plane) in self.world.planes.iter().enumerate() {
                eprintln!("the log of plane {number} on it:\n{}", plane.log_tail(&slot.names()));
            }
            if let (Some(cluster), Some(filling)) = (&self.world.cluster, &slot.current) {
                eprintln!("its agents:\n{}", cluster.journal_of(&filling.xr_name));
            }
        }
        self.violations.push(text.to_owned());
    }
}

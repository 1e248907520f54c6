//! The schedule: operations, their targets and the delays between them. A pure
//! function of its [`Schedule`], drawn as a whole before anything starts.
//!
//! Handles are numbered *slots*. The schedule assumes that every declaration
//! and deletion is accepted. If the product is slower, an operation has no
//! target and counts as skipped.

use std::fmt::Write as _;

use slipway_testkit::random::Random;

use super::cluster::HANDLES_PER_PROJECT;
use super::options::{Options, Scenario};

/// The inputs of the schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) scenario: Scenario,
    pub(super) seed: u64,
    pub(super) seconds: u64,
    pub(super) slots: usize,
    pub(super) planes: usize,
}

/// A fault of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hurt {
    /// SIGKILL, and a restart after this time.
    Kill { down: u64 },
    /// SIGSTOP for longer than its lease, then SIGCONT.
    Pause { frozen: u64 },
}

/// A network line, by the number of its control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Between it and its database.
    Database(usize),
    /// Between agents and it.
    Agents(usize),
}

/// A fault of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoil {
    Cut,
    /// Nothing passes; later everything arrives.
    Silence,
    /// Bytes are lost, and connections stay open for good.
    Swallow,
    Slow,
}

/// One operation. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Declare {
        slot: usize,
        busy_seconds: u64,
    },
    /// Declares a handle that is in use.
    DeclareAgain {
        slot: usize,
    },
    Delete {
        slot: usize,
    },
    DeleteTwice {
        slot: usize,
    },
    ForceDrain {
        slot: usize,
    },
    FreezeAgent {
        slot: usize,
        frozen: u64,
    },
    KillAgent {
        slot: usize,
    },
    RemoveDirectory {
        slot: usize,
    },
    /// Marks the node as permanently failed, which is what a retry is for.
    FailNode {
        slot: usize,
    },
    Retry {
        slot: usize,
    },
    SpoilLine {
        line: Line,
        how: Spoil,
        time: u64,
    },
    /// Kills the database server and restarts it after this time.
    CrashDatabase {
        down: u64,
    },
    HurtPlane {
        plane: usize,
        hurt: Hurt,
    },
    /// A request whose answer is lost: the control plane is killed first.
    DeclareUnanswered {
        slot: usize,
        plane: usize,
        after: u64,
        down: u64,
    },
    DeleteUnanswered {
        slot: usize,
        plane: usize,
        after: u64,
        down: u64,
    },
    /// A control plane gets a fault right after it accepted a declaration; the
    /// other one has to continue with it once the lease has expired.
    TakeOver {
        slot: usize,
        plane: usize,
        hurt: Hurt,
    },
    /// Replaces the labels, which become tags of the composite.
    Relabel {
        slot: usize,
        value: u64,
    },
    /// Freezes the installation, and waits until the freeze is settled.
    Freeze,
    /// Checks that the freeze was kept, and lifts it.
    Unfreeze,
    /// Withdraws a project from the cluster.
    Withdraw {
        project: usize,
    },
    /// Places a project on the cluster again.
    Place {
        project: usize,
    },
    Wait,
    /// Undoes all process faults, waits for convergence and checks.
    Converge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scheduled {
    /// Since the previous step.
    pub(super) delay: u64,
    pub(super) operation: Operation,
}

/// One round: this long at random, and about as long to converge.
const ROUND: u64 = 15_000;
const ROUND_AT_RANDOM: u64 = 12_000;

/// Convergence on a cluster takes longer: what was declared last comes up, and
/// what is released waits for the deletion verification.
const CLUSTER_ROUND: u64 = 24_000;
const CLUSTER_ROUND_AT_RANDOM: u64 = 18_000;

const LEASE: u64 = Options::LEASE.as_millis() as u64;

/// The whole schedule.
pub(super) fn draw(schedule: &Schedule) -> Vec<Scheduled> {
    let mut drawing = Drawing {
        random: Random::new(schedule.seed),
        declared: vec![false; schedule.slots],
        planes: schedule.planes,
        steps: Vec::new(),
        now: 0,
    };
    match schedule.scenario {
        Scenario::Mixed => {
            for _ in 0..(schedule.seconds * 1_000).div_ceil(ROUND) {
                drawing.mixed_round();
            }
        }
        Scenario::Replicas => drawing.replicas(schedule.seconds * 1_000),
        Scenario::Cluster => {
            for _ in 0..(schedule.seconds * 1_000).div_ceil(CLUSTER_ROUND) {
                drawing.cluster_round();
            }
        }
    }
    drawing.steps
}

/// FNV-1a over the steps: a short text that shows whether two runs have the same schedule.
pub(super) fn fingerprint(steps: &[Scheduled]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut text = String::new();
    for step in steps {
        text.clear();
        let _infallible = write!(text, "{step:?}");
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

struct Drawing {
    random: Random,
    /// As the schedule assumes.
    declared: Vec<bool>,
    planes: usize,
    steps: Vec<Scheduled>,
    now: u64,
}

impl Drawing {
    fn mixed_round(&mut self) {
        let until = self.now + ROUND_AT_RANDOM;
        while self.now < until {
            let delay = self.random.between(10, 300);
            self.mixed_operation(delay);
        }
        self.push(0, Operation::Converge);
    }

    /// Weights out of 115. There are about twice as many declarations as
    /// deletions, so that most handles are in use and faults have targets.
    fn mixed_operation(&mut self, delay: u64) {
        let (free, used) = (self.slots(false), self.slots(true));
        let dice = self.random.between(0, 115);
        let (a_free, a_used) = (self.random.pick(&free), self.random.pick(&used));
        match (dice, a_free, a_used) {
            (0..38, Some(slot), _) => self.declare(delay, slot),
            (38..44, _, Some(slot)) => self.delete(delay, Operation::Delete { slot }, slot),
            (44..46, _, Some(slot)) => self.delete(delay, Operation::DeleteTwice { slot }, slot),
            (46..51, Some(slot), _) => {
                // Deletes it at any point while it comes up.
                self.declare(delay, slot);
                let later = self.random.between(0, 700);
                self.delete(later, Operation::Delete { slot }, slot);
            }
            (51..53, _, Some(slot)) => self.push(delay, Operation::DeclareAgain { slot }),
            (53..61, _, Some(slot)) => {
                let frozen = self.random.between(300, 6_000);
                self.push(delay, Operation::FreezeAgent { slot, frozen });
            }
            (61..69, _, Some(slot)) => self.push(delay, Operation::KillAgent { slot }),
            (69..75, _, Some(slot)) => self.push(delay, Operation::RemoveDirectory { slot }),
            (75..80, _, Some(slot)) => {
                self.push(delay, Operation::FreezeAgent { slot, frozen: 8_000 });
                self.delete(0, Operation::Delete { slot }, slot);
                let later = self.random.between(200, 2_500);
                self.push(later, Operation::ForceDrain { slot });
            }
            (80..86, _, _) => {
                let (plane, down) = (self.plane(), self.random.between(100, 3_000));
                self.push(delay, Operation::HurtPlane { plane, hurt: Hurt::Kill { down } });
            }
            (86..90, _, _) => {
                let plane = self.plane();
                let hurt = self.pause();
                self.push(delay, Operation::HurtPlane { plane, hurt });
            }
            (90..93, Some(slot), _) => {
                let (plane, after, down) = self.unanswered();
                self.push(delay, Operation::DeclareUnanswered { slot, plane, after, down });
                self.declared[slot] = true;
            }
            (93..96, _, Some(slot)) => {
                let (plane, after, down) = self.unanswered();
                let operation = Operation::DeleteUnanswered { slot, plane, after, down };
                self.delete(delay, operation, slot);
            }
            (96..100, Some(slot), _) if self.planes > 1 => {
                let (plane, hurt) = (self.plane(), self.hurt());
                self.push(delay, Operation::TakeOver { slot, plane, hurt });
                self.declared[slot] = true;
            }
            (100..106, _, Some(slot)) => {
                self.push(delay, Operation::FailNode { slot });
                // Too early for some, which are retried during convergence.
                let later = self.random.between(50, 1_500);
                self.push(later, Operation::Retry { slot });
            }
            (106..112, _, _) => {
                let (line, how, time) =
                    (self.line(), self.spoil(), self.random.between(200, 4_000));
                self.push(delay, Operation::SpoilLine { line, how, time });
            }
            (112..114, _, _) => {
                let down = self.random.between(0, 1_500);
                self.push(delay, Operation::CrashDatabase { down });
            }
            (_, Some(slot), _) => self.declare(delay, slot),
            (_, None, Some(slot)) => self.delete(delay, Operation::Delete { slot }, slot),
            (_, None, None) => {}
        }
    }

    /// Declares everything, injects faults into control planes one after the
    /// other, then deletes everything with a few more faults.
    fn replicas(&mut self, until: u64) {
        // The last handles are reserved for takeovers.
        let kept = (self.declared.len() / 20).max(1);
        let (many, few) = (self.declared.len() - kept, kept);
        for slot in 0..many {
            let delay = self.random.between(0, 40);
            self.declare(delay, slot);
        }
        let mut taken_over = 0;
        while self.now < until {
            let (plane, hurt) = (self.plane(), self.hurt());
            let delay = self.random.between(300, 1_500);
            if taken_over < few && self.random.between(0, 3) == 0 {
                let slot = many + taken_over;
                self.push(delay, Operation::TakeOver { slot, plane, hurt });
                self.declared[slot] = true;
                taken_over += 1;
            } else {
                self.push(delay, Operation::HurtPlane { plane, hurt });
            }
            self.wait_out(hurt);
        }
        for slot in self.slots(false) {
            self.declare(0, slot);
        }
        self.push(0, Operation::Converge);
        for slot in self.slots(true) {
            let delay = self.random.between(0, 40);
            self.delete(delay, Operation::Delete { slot }, slot);
            if slot % 40 == 20 {
                let (plane, hurt) = (self.plane(), self.hurt());
                self.push(0, Operation::HurtPlane { plane, hurt });
            }
        }
        self.push(0, Operation::Converge);
    }

    fn cluster_round(&mut self) {
        let until = self.now + CLUSTER_ROUND_AT_RANDOM;
        while self.now < until {
            let delay = self.random.between(20, 500);
            self.cluster_operation(delay);
        }
        self.push(0, Operation::Converge);
    }

    /// Weights out of 100.
    fn cluster_operation(&mut self, delay: u64) {
        let (free, used) = (self.slots(false), self.slots(true));
        let dice = self.random.between(0, 100);
        let (a_free, a_used) = (self.random.pick(&free), self.random.pick(&used));
        match (dice, a_free, a_used) {
            (0..30, Some(slot), _) => self.declare(delay, slot),
            (30..40, _, Some(slot)) => self.delete(delay, Operation::Delete { slot }, slot),
            (40..46, Some(slot), _) => {
                self.declare(delay, slot);
                let later = self.random.between(0, 2_500);
                self.delete(later, Operation::Delete { slot }, slot);
            }
            (46..58, _, Some(slot)) => self.empty_project(delay, slot / HANDLES_PER_PROJECT),
            (58..70, _, Some(slot)) => {
                let value = self.random.between(0, 1_000);
                self.push(delay, Operation::Relabel { slot, value });
            }
            (70..77, _, Some(slot)) => {
                self.push(delay, Operation::FailNode { slot });
                let later = self.random.between(50, 2_000);
                self.push(later, Operation::Retry { slot });
            }
            (77..84, _, _) => {
                let (plane, down) = (self.plane(), self.random.between(50, 2_000));
                self.push(delay, Operation::HurtPlane { plane, hurt: Hurt::Kill { down } });
            }
            (84..87, _, _) => {
                let plane = self.plane();
                let hurt = self.pause();
                self.push(delay, Operation::HurtPlane { plane, hurt });
            }
            (87..90, Some(slot), _) => {
                let (plane, after, down) = self.unanswered();
                self.push(delay, Operation::DeclareUnanswered { slot, plane, after, down });
                self.declared[slot] = true;
            }
            (90..93, _, Some(slot)) => {
                let (plane, after, down) = self.unanswered();
                let operation = Operation::DeleteUnanswered { slot, plane, after, down };
                self.delete(delay, operation, slot);
            }
            (93..97, _, _) => self.freeze(delay),
            (_, Some(slot), _) => self.declare(delay, slot),
            (_, None, Some(slot)) => self.delete(delay, Operation::Delete { slot }, slot),
            (_, None, None) => {}
        }
    }

    /// Deletes all resources of a project. Then one is declared again while what
    /// they shared is being released, or the project is withdrawn meanwhile.
    fn empty_project(&mut self, delay: u64, project: usize) {
        let first = project * HANDLES_PER_PROJECT;
        let handles = first..(first + HANDLES_PER_PROJECT).min(self.declared.len());
        for slot in handles.filter(|slot| self.declared[*slot]).collect::<Vec<_>>() {
            self.delete(delay, Operation::Delete { slot }, slot);
        }
        let later = self.random.between(500, 6_000);
        match self.random.between(0, 3) {
            0 => {
                self.push(later, Operation::Withdraw { project });
                let later = self.random.between(50, 2_000);
                self.push(later, Operation::Place { project });
            }
            // Its own handle may not be free yet.
            _ => self.declare(later, first),
        }
    }

    /// Freezes for a while, in which requests and kills go on.
    fn freeze(&mut self, delay: u64) {
        self.push(delay, Operation::Freeze);
        for _ in 0..self.random.between(2, 6) {
            let delay = self.random.between(50, 600);
            let (free, used) = (self.slots(false), self.slots(true));
            let (a_free, a_used) = (self.random.pick(&free), self.random.pick(&used));
            match (self.random.between(0, 4), a_free, a_used) {
                (0, Some(slot), _) => self.declare(delay, slot),
                (1, _, Some(slot)) => self.delete(delay, Operation::Delete { slot }, slot),
                (2, _, Some(slot)) => {
                    let value = self.random.between(0, 1_000);
                    self.push(delay, Operation::Relabel { slot, value });
                }
                _ => {
                    let (plane, down) = (self.plane(), self.random.between(50, 800));
                    self.push(delay, Operation::HurtPlane { plane, hurt: Hurt::Kill { down } });
                }
            }
        }
        let delay = self.random.between(500, 3_000);
        self.push(delay, Operation::Unfreeze);
    }

    /// Only one of two gets a fault at a time: with both down nothing can be proven.
    fn wait_out(&mut self, hurt: Hurt) {
        let (Hurt::Kill { down: away } | Hurt::Pause { frozen: away }) = hurt;
        self.push(away, Operation::Wait);
    }

    fn slots(&self, declared: bool) -> Vec<usize> {
        (0..self.declared.len()).filter(|slot| self.declared[*slot] == declared).collect()
    }

    fn plane(&mut self) -> usize {
        let planes: Vec<usize> = (0..self.planes).collect();
        self.random.pick(&planes).unwrap_or(0)
    }

    fn line(&mut self) -> Line {
        let plane = self.plane();
        if self.random.between(0, 3) == 0 { Line::Agents(plane) } else { Line::Database(plane) }
    }

    fn spoil(&mut self) -> Spoil {
        let all = [Spoil::Cut, Spoil::Silence, Spoil::Swallow, Spoil::Slow];
        self.random.pick(&all).unwrap_or(Spoil::Cut)
    }

    fn hurt(&mut self) -> Hurt {
        if self.random.between(0, 2) == 0 {
            Hurt::Kill { down: self.random.between(200, 3_000) }
        } else {
            self.pause()
        }
    }

    fn pause(&mut self) -> Hurt {
        Hurt::Pause { frozen: LEASE + self.random.between(300, 2_500) }
    }

    fn unanswered(&mut self) -> (usize, u64, u64) {
        (self.plane(), self.random.between(0, 25), self.random.between(100, 1_500))
    }

    fn declare(&mut self, delay: u64, slot: usize) {
        // Most nodes have nothing to finish; some delay their drain for a while.
        let busy_seconds = self.random.between(0, 8).saturating_sub(5);
        self.push(delay, Operation::Declare { slot, busy_seconds });
        self.declared[slot] = true;
    }

    fn delete(&mut self, delay: u64, operation: Operation, slot: usize) {
        self.push(delay, operation);
        self.declared[slot] = false;
    }

    fn push(&mut self, delay: u64, operation: Operation) {
        self.now += delay + self.nominal(operation);
        self.steps.push(Scheduled { delay, operation });
    }

    /// About how long an operation blocks the schedule, so that a round has
    /// about its nominal length: a takeover is observed to its end, and while
    /// the only control plane is down nobody can answer.
    fn nominal(&self, operation: Operation) -> u64 {
        const START: u64 = 700;
        match operation {
            // Both have to be up for it, so earlier faults have to end first.
            Operation::TakeOver { .. } => LEASE + 2_500,
            // Heartbeats report every two seconds what is under way.
            Operation::Freeze => 3_000,
            // Nobody answers requests meanwhile.
            Operation::CrashDatabase { down } => down + START,
            Operation::SpoilLine { line: Line::Database(_), how, time }
                if self.planes == 1 && how != Spoil::Slow =>
            {
                time + START
            }
            Operation::HurtPlane { hurt, .. } if self.planes == 1 => match hurt {
                Hurt::Kill { down } => down + START,
                Hurt::Pause { frozen } => frozen,
            },
            Operation::DeclareUnanswered { down, .. }
            | Operation::DeleteUnanswered { down, .. }
                if self.planes == 1 =>
            {
                down + START
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Operation, Scenario, Schedule, Scheduled, draw, fingerprint};

    const SCHEDULE: Schedule =
        Schedule { scenario: Scenario::Mixed, seed: 1, seconds: 600, slots: 16, planes: 2 };

    #[test]
    fn the_same_seed_is_the_same_schedule_and_another_is_another() {
        assert_eq!(draw(&SCHEDULE), draw(&SCHEDULE));
        let other = draw(&Schedule { seed: 2, ..SCHEDULE });
        assert_ne!(fingerprint(&draw(&SCHEDULE)), fingerprint(&other));
        let longer = draw(&Schedule { seconds: 1_200, ..SCHEDULE });
        assert!(longer.starts_with(&draw(&SCHEDULE)), "a longer soak begins like a shorter one");
    }

    /// Ten minutes are enough for every operation of the soak.
    #[test]
    fn every_operation_is_drawn_and_every_round_settles() {
        let steps = draw(&SCHEDULE);
        let name = |step: &Scheduled| {
            let text = format!("{:?}", step.operation);
            text.split([' ', '{']).next().unwrap_or_default().to_owned()
        };
        let drawn: std::collections::BTreeSet<String> = steps.iter().map(name).collect();
        for expected in [
            "CrashDatabase",
            "Declare",
            "DeclareAgain",
            "DeclareUnanswered",
            "Delete",
            "DeleteTwice",
            "DeleteUnanswered",
            "ForceDrain",
            "FailNode",
            "FreezeAgent",
            "HurtPlane",
            "KillAgent",
            "RemoveDirectory",
            "Retry",
            "Converge",
            "SpoilLine",
            "TakeOver",
        ] {
            assert!(drawn.contains(expected), "{expected} is not in {drawn:?}");
        }
        let settled = steps.iter().filter(|step| step.operation == Operation::Converge).count();
        assert_eq!(settled, 600 / 15);
        assert_eq!(steps.last().map(|step| step.operation), Some(Operation::Converge));
    }

    #[test]
    fn on_a_cluster_every_freeze_is_lifted_and_every_round_settles() {
        let schedule = Schedule { scenario: Scenario::Cluster, slots: 12, planes: 1, ..SCHEDULE };
        let steps = draw(&schedule);
        let count = |wanted: fn(&Operation) -> bool| {
            steps.iter().filter(|step| wanted(&step.operation)).count()
        };
        let freezes = count(|operation| *operation == Operation::Freeze);
        assert!(freezes > 5, "{freezes}");
        assert_eq!(count(|operation| *operation == Operation::Unfreeze), freezes);
        assert_eq!(count(|operation| *operation == Operation::Converge), 600 / 24);
        for wanted in [
            |operation: &Operation| matches!(operation, Operation::Relabel { .. }),
            |operation: &Operation| matches!(operation, Operation::Withdraw { .. }),
            |operation: &Operation| matches!(operation, Operation::Retry { .. }),
            |operation: &Operation| matches!(operation, Operation::HurtPlane { .. }),
            |operation: &Operation| matches!(operation, Operation::DeleteUnanswered { .. }),
        ] {
            assert!(count(wanted) > 0);
        }
    }

    #[test]
    fn replicas_are_hurt_one_at_a_time_and_everything_is_deleted() {
        let schedule =
            Schedule { scenario: Scenario::Replicas, seconds: 60, slots: 200, ..SCHEDULE };
        let steps = draw(&schedule);
        let count = |wanted: fn(&Operation) -> bool| {
            steps.iter().filter(|step| wanted(&step.operation)).count()
        };
        let declared = count(|operation| {
            matches!(operation, Operation::Declare { .. } | Operation::TakeOver { .. })
        });
        assert_eq!(declared, 200);
        assert_eq!(count(|operation| matches!(operation, Operation::Delete { .. })), declared);
        assert!(count(|operation| matches!(operation, Operation::HurtPlane { .. })) > 10);
    }
}

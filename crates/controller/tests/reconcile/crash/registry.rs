//! Every point that was ever passed, with the faults that lead to it. None may
//! stay unhit.
//!
//! Points of the first life are those of the run without faults, each passage
//! separately. Lives after a fault pass others: a token minted again, claims
//! taken back, an enrolment answered again. Such a point is registered when its
//! name first appears, with the faults that led there, and is then struck as
//! well. This continues until no run shows a new name; it ends because names
//! are finite.

use std::collections::BTreeSet;

use super::fate::{Fault, Point};

#[derive(Debug)]
pub(super) struct Registry {
    /// Only points with a claim: without one there is nothing to take over, and
    /// the result is that of a restart.
    only_holding: bool,
    targets: Vec<Target>,
    names: BTreeSet<String>,
}

/// A point, and the faults in the lives before the one that passes it.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) way: Vec<(Point, Fault)>,
    pub(super) point: Point,
    hit: bool,
}

impl Target {
    /// The faults of a run that crashes there.
    pub(super) fn path(&self) -> Vec<(Point, Fault)> {
        let mut path = self.way.clone();
        path.push((self.point.clone(), Fault::Crash));
        path
    }
}

impl Registry {
    pub(super) fn new(only_holding: bool) -> Self {
        Self { only_holding, targets: Vec::new(), names: BTreeSet::new() }
    }

    /// Adds the points of a run without faults.
    pub(super) fn register(&mut self, passed: &[Point], every_passage: bool) {
        let only_holding = self.only_holding;
        for point in passed.iter().filter(|point| point.holding || !only_holding) {
            if every_passage || !self.names.contains(&point.name) {
                self.names.insert(point.name.clone());
                self.push(Vec::new(), point.clone());
            }
        }
    }

    /// Adds the points of the last life of a run that took this way.
    pub(super) fn discover(&mut self, way: &[(Point, Fault)], passed: &[Point]) -> usize {
        let before = self.targets.len();
        let only_holding = self.only_holding;
        for point in passed.iter().filter(|point| point.holding || !only_holding) {
            if self.names.insert(point.name.clone()) {
                self.push(way.to_vec(), point.clone());
            }
        }
        self.targets.len() - before
    }

    fn push(&mut self, way: Vec<(Point, Fault)>, point: Point) {
        self.targets.push(Target { way, point, hit: false });
    }

    /// The next point that no fault has struck yet.
    pub(super) fn unhit(&self) -> Option<(usize, Target)> {
        let index = self.targets.iter().position(|target| !target.hit)?;
        Some((index, self.targets[index].clone()))
    }

    pub(super) fn hit(&mut self, index: usize) {
        self.targets[index].hit = true;
    }

    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }

    pub(super) fn never_hit(&self) -> Vec<String> {
        let unhit = self.targets.iter().filter(|target| !target.hit);
        unhit.map(|target| target.point.to_string()).collect()
    }
}

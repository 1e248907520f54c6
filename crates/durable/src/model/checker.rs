//! A small explicit-state checker: breadth first over hashed states, so that
//! the counterexample of a property is among the shortest there are.
//!
//! The checker notes a broken property and continues the search behind it, so
//! that a report names everything that a missing rule leads to.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::config::Config;
use super::properties::{self, Property};
use super::state::State;
use super::transition::Transition;

/// What an exhaustive run found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) states: usize,
    pub(super) transitions: usize,
    /// The length of the longest of the shortest paths to a state.
    pub(super) depth: usize,
    /// The transitions that no state allowed.
    pub(super) never_taken: Vec<Transition>,
    /// For each broken property, a path from the initial state to where it
    /// breaks, with the counters not renamed.
    pub(super) broken: BTreeMap<Property, String>,
}

/// Visits every state that the configuration can reach.
pub(super) fn check(config: &Config) -> Report {
    let mut space = Space::new(State::initial().canonical());
    let mut broken: BTreeMap<Property, Vec<Transition>> = BTreeMap::new();
    let possible: Vec<Transition> = Transition::all().collect();
    let mut taken = vec![0_usize; possible.len()];
    // Edges that are no disturbance, from and to, for the check of convergence.
    let mut hoped_for: Vec<(u32, u32)> = Vec::new();
    let mut index = 0;
    while let Some(state) = space.states.get(index).copied() {
        for (&transition, taken) in possible.iter().zip(&mut taken) {
            let Some(successor) = config.successor(&state, transition) else { continue };
            *taken += 1;
            let next = successor.state.canonical();
            for property in successor.broken.into_iter().chain(properties::broken_in(&next)) {
                broken.entry(property).or_insert_with(|| {
                    let mut successors = space.way_to(index);
                    successors.push(transition);
                    successors
                });
            }
            // A state has room for one action, so the search does not follow an overlap.
            if successor.broken == Some(Property::NoActionsOverlap) {
                continue;
            }
            let found = space.enter(next, index, transition);
            if !transition.is_disturbance() {
                hoped_for.push((position(index), position(found)));
            }
        }
        index += 1;
    }
    // Not checked in a space with parts cut off: a path may lead through them.
    if !broken.contains_key(&Property::NoActionsOverlap)
        && let Some(stuck) = first_stuck(&space.states, &hoped_for)
    {
        broken.insert(Property::Converges, space.way_to(stuck));
    }
    let broken =
        broken.into_iter().map(|(property, successors)| (property, tell(config, &successors)));
    let never = possible.iter().zip(&taken).filter(|(_, taken)| **taken == 0);
    Report {
        states: space.states.len(),
        transitions: taken.iter().sum(),
        depth: space.depth_of_last(),
        never_taken: never.map(|(transition, _)| *transition).collect(),
        broken: broken.collect(),
    }
}

/// The states found, in the order of breadth-first search.
struct Space {
    states: Vec<State>,
    /// From which state and by what each was first found; the first from itself.
    found_by: Vec<(u32, Transition)>,
    positions: HashMap<State, u32, BuildHasherDefault<Mix>>,
}

impl Space {
    fn new(initial: State) -> Self {
        let mut positions = HashMap::default();
        positions.insert(initial, 0);
        Self { states: vec![initial], found_by: vec![(0, Transition::Tick)], positions }
    }

    fn enter(&mut self, state: State, from: usize, by: Transition) -> usize {
        match self.positions.entry(state) {
            Entry::Occupied(known) => *known.get() as usize,
            Entry::Vacant(new) => {
                let index = self.states.len();
                new.insert(position(index));
                self.states.push(state);
                self.found_by.push((position(from), by));
                index
            }
        }
    }

    fn way_to(&self, mut index: usize) -> Vec<Transition> {
        let mut successors = Vec::new();
        while index != 0 {
            let (from, by) = self.found_by[index];
            successors.push(by);
            index = from as usize;
        }
        successors.reverse();
        successors
    }

    fn depth_of_last(&self) -> usize {
        self.way_to(self.states.len() - 1).len()
    }
}

/// Four bytes per position: the edges take most of the memory.
fn position(index: usize) -> u32 {
    u32::try_from(index).expect("a space of fewer than 2^32 states")
}

/// The first state from which no path of undisturbed edges reaches a settled one.
fn first_stuck(states: &[State], edges: &[(u32, u32)]) -> Option<usize> {
    // The edges into each state, grouped by state, and where each group begins.
    let mut begins = vec![0_usize; states.len() + 1];
    for (_, to) in edges {
        begins[*to as usize + 1] += 1;
    }
    for index in 1..begins.len() {
        begins[index] += begins[index - 1];
    }
    let mut sources = vec![0_u32; edges.len()];
    let mut filled = begins.clone();
    for (from, to) in edges {
        let slot = &mut filled[*to as usize];
        sources[*slot] = *from;
        *slot += 1;
    }
    let mut reaches: Vec<bool> = states.iter().map(properties::is_settled).collect();
    let mut open: Vec<usize> = (0..states.len()).filter(|index| reaches[*index]).collect();
    while let Some(index) = open.pop() {
        for from in &sources[begins[index]..begins[index + 1]] {
            let from = *from as usize;
            if !reaches[from] {
                reaches[from] = true;
                open.push(from);
            }
        }
    }
    reaches.iter().position(|reaches| !reaches)
}

/// Replays the steps without renaming the counters and describes what each changes.
fn tell(config: &Config, successors: &[Transition]) -> String {
    let mut state = State::initial();
    let mut text = describe(&state).join("\n");
    for (number, transition) in successors.iter().enumerate() {
        let before = describe(&state);
        state = config.successor(&state, *transition).expect("a step that was taken before").state;
        text.push_str(&format!("\n{:>3}. {transition:?}", number + 1));
        for (line, _) in describe(&state).iter().zip(&before).filter(|(now, then)| now != then) {
            text.push('\n');
            text.push_str(line);
        }
    }
    text
}

fn describe(state: &State) -> [String; 4] {
    let State { row, workers: [a, b], actual, action, renewals: [c, d] } = state;
    [
        format!(
            "     row: wanted {:?}, recorded {:?}, revision {}, due {:?}, wake {} (claimed at {}), \
             claim {} by {:?}, lease {:?}",
            row.wanted,
            row.recorded,
            row.revision,
            row.due,
            row.wake,
            row.claimed_wake,
            row.claim_token,
            row.claimed_by,
            row.lease,
        ),
        format!("     outside: {actual:?}, under way {action:?}"),
        format!("     A: {a:?}, renewal {c:?}"),
        format!("     B: {b:?}, renewal {d:?}"),
    ]
}

/// A hasher for our small keys: a rotation and a product for each part, by 2^64
/// over the golden ratio. The standard one resists chosen keys, which nobody
/// chooses here, and takes most of the run in a debug build.
#[derive(Debug, Default)]
struct Mix(u64);

impl Mix {
    fn mix(&mut self, part: u64) {
        self.0 = (self.0.rotate_left(5) ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, part: u8) {
        self.mix(u64::from(part));
    }

    fn write_u16(&mut self, part: u16) {
        self.mix(u64::from(part));
    }

    fn write_isize(&mut self, part: isize) {
        // The discriminant of an enum.
        self.mix(part.unsigned_abs() as u64);
    }

    fn finish(&self) -> u64 {
        // The table takes the top seven bits as a tag and the low ones as the
        // slot; the product is best mixed at the top.
        self.0 ^ (self.0 >> 32)
    }
}

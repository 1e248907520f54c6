//! A small explicit-state checker: breadth first over hashed states, so that
//! the counterexample of a property is among the shortest there are.
//!
//! The checker notes a broken property and continues the search behind it, so
//! that a report names everything that a missing rule leads to.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A protocol with finitely many states.
pub(super) trait Model {
    type State: Debug + Copy + Eq + Hash;
    type Transition: Debug + Copy;
    type Property: Debug + Copy + Ord;

    /// From every state there is a path without disturbances to a settled one.
    const CONVERGES: Self::Property;

    fn initial() -> Self::State;

    /// The state with its counters renamed, so that states that behave alike are equal.
    fn canonical(state: Self::State) -> Self::State;

    fn transitions() -> Vec<Self::Transition>;

    /// The step, or none if the transition cannot happen in this state.
    fn successor(
        &self,
        state: &Self::State,
        transition: Self::Transition,
    ) -> Option<Successor<Self::State, Self::Property>>;

    /// The property of single states that this state breaks.
    fn broken_in(&self, state: &Self::State) -> Option<Self::Property>;

    /// Nothing is left to do and nobody is working.
    fn is_settled(&self, state: &Self::State) -> bool;

    /// Whether the check of convergence leaves the transition out.
    fn is_disturbance(transition: Self::Transition) -> bool;

    /// Whether the search ends where this property breaks, because a state has no
    /// room for what follows.
    fn ends_at(_property: Self::Property) -> bool {
        false
    }

    /// The state as the account of a path shows it: with its counters as they are,
    /// unless the transitions refer to the renamed state.
    fn replayed(state: Self::State) -> Self::State {
        state
    }

    fn describe(state: &Self::State) -> Vec<String>;
}

/// What a transition led to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Successor<S, P> {
    pub(super) state: S,
    /// The property that this very transition broke.
    pub(super) broken: Option<P>,
}

/// What an exhaustive run found.
#[derive(Debug)]
pub(super) struct Report<M: Model> {
    pub(super) states: usize,
    pub(super) transitions: usize,
    /// The length of the longest of the shortest paths to a state.
    pub(super) depth: usize,
    /// The transitions that no state allowed.
    pub(super) never_taken: Vec<M::Transition>,
    /// For each broken property, a path from the initial state to where it
    /// breaks, with the counters not renamed.
    pub(super) broken: BTreeMap<M::Property, String>,
}

/// Visits every state that the configuration can reach, and prints what it found.
#[expect(clippy::print_stdout, reason = "the size of the space is a result of the run")]
pub(super) fn run<M: Model + Debug>(model: &M) -> Report<M> {
    let report = check(model);
    println!("{model:?}");
    println!(
        "{} states, {} transitions, depth {}, never taken {:?}",
        report.states, report.transitions, report.depth, report.never_taken
    );
    for (property, way) in &report.broken {
        println!("{property:?} is broken:\n{way}");
    }
    report
}

fn check<M: Model>(model: &M) -> Report<M> {
    let mut space = Space::<M>::new(M::canonical(M::initial()));
    let mut broken: BTreeMap<M::Property, Vec<M::Transition>> = BTreeMap::new();
    let possible = M::transitions();
    let mut taken = vec![0_usize; possible.len()];
    // Edges that are no disturbance, from and to, for the check of convergence.
    let mut hoped_for: Vec<(u32, u32)> = Vec::new();
    let mut cut = false;
    let mut index = 0;
    while let Some(state) = space.states.get(index).copied() {
        for (&transition, taken) in possible.iter().zip(&mut taken) {
            let Some(successor) = model.successor(&state, transition) else { continue };
            *taken += 1;
            let next = M::canonical(successor.state);
            for property in successor.broken.into_iter().chain(model.broken_in(&next)) {
                broken.entry(property).or_insert_with(|| {
                    let mut successors = space.way_to(index);
                    successors.push(transition);
                    successors
                });
            }
            if successor.broken.is_some_and(M::ends_at) {
                cut = true;
                continue;
            }
            let found = space.enter(next, index, transition);
            if !M::is_disturbance(transition) {
                hoped_for.push((position(index), position(found)));
            }
        }
        index += 1;
    }
    // Not checked in a space with parts cut off: a path may lead through them.
    if !cut && let Some(stuck) = first_stuck(model, &space.states, &hoped_for) {
        broken.insert(M::CONVERGES, space.way_to(stuck));
    }
    let broken =
        broken.into_iter().map(|(property, successors)| (property, tell(model, &successors)));
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
struct Space<M: Model> {
    states: Vec<M::State>,
    /// From which state and by what each was first found, but for the first.
    found_by: Vec<(u32, M::Transition)>,
    positions: HashMap<M::State, u32, BuildHasherDefault<Mix>>,
}

impl<M: Model> Space<M> {
    fn new(initial: M::State) -> Self {
        let mut positions = HashMap::default();
        positions.insert(initial, 0);
        Self { states: vec![initial], found_by: Vec::new(), positions }
    }

    fn enter(&mut self, state: M::State, from: usize, by: M::Transition) -> usize {
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

    fn way_to(&self, mut index: usize) -> Vec<M::Transition> {
        let mut successors = Vec::new();
        while index != 0 {
            let (from, by) = self.found_by[index - 1];
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
fn first_stuck<M: Model>(model: &M, states: &[M::State], edges: &[(u32, u32)]) -> Option<usize> {
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
    let mut reaches: Vec<bool> = states.iter().map(|state| model.is_settled(state)).collect();
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
fn tell<M: Model>(model: &M, successors: &[M::Transition]) -> String {
    let mut state = M::replayed(M::initial());
    let mut text = M::describe(&state).join("\n");
    for (number, transition) in successors.iter().enumerate() {
        let before = M::describe(&state);
        let successor = model.successor(&state, *transition);
        state = M::replayed(successor.expect("a step that was taken before").state);
        text.push_str(&format!("\n{:>3}. {transition:?}", number + 1));
        for (line, _) in M::describe(&state).iter().zip(&before).filter(|(now, then)| now != then) {
            text.push('\n');
            text.push_str(line);
        }
    }
    text
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

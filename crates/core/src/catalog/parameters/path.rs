//! Where in the parameters something is: `disk.size`, `zones[2]`, `tags["a.b"]`.

use std::fmt;

use super::shown;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Segment {
    Name(String),
    Index(usize),
}

/// Sorted as people read: by names, and items of an array by their number.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Path(Vec<Segment>);

impl Path {
    pub(super) fn name(&self, name: &str) -> Self {
        self.push(Segment::Name(name.to_owned()))
    }

    pub(super) fn index(&self, index: usize) -> Self {
        self.push(Segment::Index(index))
    }

    fn push(&self, segment: Segment) -> Self {
        Self(self.0.iter().cloned().chain([segment]).collect())
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// The path of the object around a field, and the name of the field.
    pub(super) fn split(&self) -> (Self, &str) {
        match self.0.split_last() {
            Some((Segment::Name(name), above)) => (Self(above.to_vec()), name),
            _ => (Self::default(), ""),
        }
    }

    pub(super) fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The field of a request, such as `parameters.disk.size`.
    pub(super) fn field(&self, root: &str) -> String {
        let joint = if matches!(self.0.first(), Some(Segment::Name(name)) if plain(name)) {
            "."
        } else {
            ""
        };
        format!("{root}{joint}{self}")
    }
}

impl FromIterator<Segment> for Path {
    fn from_iter<T: IntoIterator<Item = Segment>>(steps: T) -> Self {
        Self(steps.into_iter().collect())
    }
}

/// Whether a name reads unambiguously between dots.
fn plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['.', '[', ']', '"'])
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Name(name) if plain(name) => {
                    write!(f, "{}{}", if number == 0 { "" } else { "." }, shown(name))?;
                }
                Segment::Name(name) => write!(f, "[\"{}\"]", shown(name).replace('"', "\\\""))?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

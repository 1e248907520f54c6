//! What values may be at all, whatever the schema says: bounded in size and depth, storable
//! in both databases, and unchanged after a round trip through an API server.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use super::check::Fault;
use super::path::Path;

/// The longest text, in bytes.
const MAX_TEXT: usize = 65_536;
/// Names and texts of all values together, in bytes.
const MAX_BYTES: usize = 256 * 1_024;
/// Values in all, those in arrays and objects counted each.
const MAX_VALUES: usize = 4_096;
/// How deep arrays and objects may be nested.
pub(super) const MAX_DEPTH: usize = 16;
/// The longest name of a field, in bytes.
const MAX_NAME: usize = 253;

#[derive(Default)]
struct Walk {
    faults: Vec<Fault>,
    values: usize,
    bytes: usize,
    /// The first limit of the whole that is exceeded.
    exceeded: Option<Fault>,
}

/// Brings numbers into the one form and answers what no schema could accept. `Err` if the
/// values are too large to be checked against one.
pub(super) fn check(values: &mut BTreeMap<String, Value>) -> Result<Vec<Fault>, Fault> {
    let mut walk = Walk::default();
    for (name, value) in values {
        walk.field(&Path::default(), name, value);
    }
    match walk.exceeded {
        Some(exceeded) => Err(exceeded),
        None => Ok(walk.faults),
    }
}

impl Walk {
    fn field(&mut self, object: &Path, name: &str, value: &mut Value) {
        let path = object.name(name);
        self.bytes = self.bytes.saturating_add(name.len());
        if name.len() > MAX_NAME || name.contains('\0') {
            let problem = format!("must have a name of at most {MAX_NAME} bytes without U+0000");
            self.faults.push(Fault::new(&path, problem));
        }
        self.value(&path, value);
    }

    fn value(&mut self, path: &Path, value: &mut Value) {
        self.values += 1;
        if let Value::String(text) = value {
            self.bytes = self.bytes.saturating_add(text.len());
        }
        let limit = if path.depth() > MAX_DEPTH {
            Some((path.clone(), format!("is nested deeper than {MAX_DEPTH} levels")))
        } else if self.values > MAX_VALUES {
            let problem = format!(
                "are more than {MAX_VALUES} values, those in arrays and objects counted each"
            );
            Some((Path::default(), problem))
        } else if self.bytes > MAX_BYTES {
            let problem =
                format!("have more than {MAX_BYTES} bytes in their names and texts together");
            Some((Path::default(), problem))
        } else {
            None
        };
        if let Some((path, problem)) = limit {
            self.exceeded.get_or_insert(Fault::new(&path, problem));
        }
        if self.exceeded.is_some() {
            return;
        }
        let problem = match value {
            Value::Null => "must not be null; leave it out instead".to_owned(),
            Value::String(text) if text.len() > MAX_TEXT || text.contains('\0') => {
                format!("must be at most {MAX_TEXT} bytes without U+0000")
            }
            Value::Number(number) => match canonical(number) {
                Some(same) => {
                    *number = same;
                    return;
                }
                None => format!(
                    "must be a whole number from {} to {}, or a fraction",
                    i64::MIN,
                    i64::MAX
                ),
            },
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(&path.index(index), item);
                }
                return;
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.field(path, name, field);
                }
                return;
            }
            Value::Bool(_) | Value::String(_) => return,
        };
        self.faults.push(Fault::new(path, problem));
    }
}

/// The form of a number that survives both databases and an API server: a whole number is
/// an integer (1.0 is 1, as in JSON Schema). `None` for a whole number outside of 64 bits.
pub(super) fn canonical(number: &Number) -> Option<Number> {
    if number.is_i64() {
        return Some(number.clone());
    }
    let float = number.as_f64().filter(|_| number.is_f64())?;
    if float.fract() != 0.0 {
        return Some(number.clone());
    }
    // 2^63: the first that does not fit.
    let bound = 9_223_372_036_854_775_808.0;
    (-bound..bound).contains(&float).then(|| Number::from(float as i64))
}

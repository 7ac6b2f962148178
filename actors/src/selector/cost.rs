//! What a selector costs: memory, and time for each document.

use super::condition::Condition;
use super::json::{Datum, Json};
use super::operator::{Constant, Operator};
use super::path::FieldPath;

/// What an allocation takes beside what is in it, in bytes.
pub(super) const ALLOCATION_BYTES: usize = 16;

/// What a selector, or a part of one, costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// How many steps a byte of a document takes at most, roughly, beside the pass in which its members are found.
    pub steps_a_byte: usize,
    /// About how much memory it takes, in bytes, the names in its paths aside: these are shared.
    pub memory_bytes: usize,
}

impl Cost {
    fn and(self, other: Cost) -> Cost {
        Cost {
            steps_a_byte: self.steps_a_byte.saturating_add(other.steps_a_byte),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
        }
    }
}

/// What a condition on a document costs.
pub(super) fn of_condition(condition: &Condition) -> Cost {
    of(condition, 1)
}

/// What a condition costs where the first so many steps of its paths lead to what was found before.
fn of(condition: &Condition, steps_found: usize) -> Cost {
    let own = Cost { steps_a_byte: 0, memory_bytes: size_of::<Condition>() };
    match condition {
        Condition::Missing { path } => own.and(of_path(path, steps_found)),
        Condition::Field { path, operator, .. } => own.and(of_path(path, steps_found)).and(of_operator(operator)),
        Condition::All(list) | Condition::Any(list) => {
            list.iter().map(|condition| of(condition, steps_found)).fold(own, Cost::and)
        }
    }
}

/// Each step may look through the value that the one before has led to.
fn of_path(path: &FieldPath, steps_found: usize) -> Cost {
    let steps = path.steps();
    let memory_bytes = ALLOCATION_BYTES + size_of_val(steps);
    Cost { steps_a_byte: steps.len().saturating_sub(steps_found), memory_bytes }
}

fn of_operator(operator: &Operator) -> Cost {
    match operator {
        Operator::Exists | Operator::Type(_) | Operator::Mod { .. } => Cost::default(),
        Operator::Size(_) => Cost { steps_a_byte: 1, memory_bytes: 0 },
        Operator::BeginsWith(prefix) => Cost { steps_a_byte: 0, memory_bytes: ALLOCATION_BYTES + prefix.len() },
        Operator::Compare(_, constant) => of_constant(constant),
        Operator::In(set) => of_constants(set.iter()),
        Operator::All { set, itself } => itself.iter().map(of_constant).fold(of_constants(set.iter()), Cost::and),
        Operator::Regex(pattern) => Cost { steps_a_byte: pattern.places(), memory_bytes: pattern.memory_bytes() },
        Operator::ElemMatch(inner) | Operator::AllMatch(inner) | Operator::KeyMapMatch(inner) => {
            Cost { steps_a_byte: 1, memory_bytes: ALLOCATION_BYTES }.and(of(inner, 0))
        }
    }
}

/// A scalar is compared as far as it is long itself; of what is nested each level looks through what is in it.
fn of_constant(constant: &Constant) -> Cost {
    let is_scalar = !matches!(constant.datum(), Datum::Array(_) | Datum::Object(_));
    let steps_a_byte = if is_scalar { 0 } else { depth(constant.datum()) };
    Cost { steps_a_byte, memory_bytes: ALLOCATION_BYTES + size_of::<Constant>() + constant.text().len() }
}

/// What is looked for among constants is compared with some of them, as often as their number can be halved.
fn of_constants<'a>(constants: impl ExactSizeIterator<Item = &'a Constant>) -> Cost {
    let compared = 1 + constants.len().max(1).ilog2() as usize;
    let each = constants.map(of_constant);
    let deepest = |one: Cost, other: Cost| Cost {
        steps_a_byte: one.steps_a_byte.max(other.steps_a_byte),
        memory_bytes: one.memory_bytes + other.memory_bytes,
    };
    let Cost { steps_a_byte, memory_bytes } = each.fold(Cost::default(), deepest);
    Cost { steps_a_byte: compared.saturating_mul(1 + steps_a_byte), memory_bytes }
}

/// How deep a value nests; no deeper than a selector may.
fn depth(value: Datum<'_>) -> usize {
    let within = |value: Json<'_>| depth(value.datum());
    match value {
        Datum::Array(elements) => 1 + elements.map(within).max().unwrap_or(0),
        Datum::Object(entries) => 1 + entries.map(|(_, value)| within(value)).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile;

    fn steps_a_byte(selector: &str) -> usize {
        super::of_condition(&compile::selector(selector).unwrap()).steps_a_byte
    }

    #[test]
    fn what_looks_at_a_whole_value_takes_steps_for_each_byte() {
        for (selector, steps) in [
            ("{}", 0),
            (r#"{"type":"order","total":{"$gt":100},"note":{"$exists":true}}"#, 0),
            (r#"{"lines.0.price":1}"#, 2),
            (r#"{"a":{"$size":2},"b":{"$eq":[1]},"c":{"$eq":{"d":[1]}}}"#, 4),
            (r#"{"a":{"$in":[1]}}"#, 1),
            (r#"{"a":{"$all":[1,2,3,4,5,6,7,8]}}"#, 4),
            (r#"{"a":{"$nin":[[[1]],2]}}"#, 6),
            (r#"{"a":{"$regex":"^o-[0-9]{4}$"}}"#, 8),
            (r#"{"a":{"$elemMatch":{"b.c":1,"d":{"$elemMatch":{"$regex":"xy"}}}}}"#, 7),
        ] {
            assert_eq!(steps_a_byte(selector), steps, "{selector}");
        }
    }
}

//! From a selector's text to its conditions. One descent does what CouchDB does in three: it checks arguments, carries
//! names down to the tests as paths, and carries negations down to them.

use std::borrow::Cow;
use std::cmp::Ordering;

use seqtide_storage::json::{DocumentError, ScanLimits, compact_value};

use super::condition::Condition;
use super::error::{SelectorError, quoted};
use super::json::{Datum, Elements, Entries, Json};
use super::limits::{CONDITIONS_MAX, NESTING_MAX, PATTERN_PLACES_MAX, PATTERNS_MAX, TEXT_BYTES_MAX};
use super::operator::{Constant, ConstantSet, Kind, Operator};
use super::order::Order;
use super::path::FieldPath;
use super::pattern::Pattern;

/// Compiles a selector.
pub(super) fn selector(text: &str) -> Result<Condition, SelectorError> {
    let text = compacted(text)?;
    let Datum::Object(members) = Json(&text).datum() else {
        return Err(SelectorError::NotAnObject);
    };
    if members.clone().next().is_none() {
        return Ok(Condition::always());
    }
    let condition = Compiler::default().condition(Json(&text), Place::top())?;
    match lacks_field(members) {
        true => Err(SelectorError::MissingFieldName),
        false => Ok(condition),
    }
}

/// The text, checked and without white space.
pub(super) fn compacted(text: &str) -> Result<String, SelectorError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(SelectorError::TooMany { what: "bytes", max: TEXT_BYTES_MAX });
    }
    let text = compact_value(text.as_bytes(), &ScanLimits { nesting_max: NESTING_MAX, ..ScanLimits::default() })?;
    String::from_utf8(text).map_err(|_| DocumentError::NotJson.into())
}

/// Whether a checked selector is a test of the document as a whole. Within lists such tests are allowed.
fn lacks_field(mut members: Entries<'_>) -> bool {
    match (members.next(), members.next()) {
        (None, _) => true,
        (Some((name, argument)), None) if name == "$not" => lacks_field(argument.entries()),
        (Some((name, _)), None) => {
            name.starts_with('$') && !["$and", "$or", "$nor", "$text", "$default"].contains(&&*name)
        }
        _ => false,
    }
}

/// Where a condition stands.
#[derive(Clone)]
struct Place {
    path: FieldPath,
    /// Whether an odd number of negations is above it.
    negated: bool,
}

impl Place {
    /// That of a condition on a whole document or element.
    fn top() -> Place {
        Place { path: FieldPath::whole(), negated: false }
    }

    fn negated(self) -> Place {
        Place { negated: !self.negated, ..self }
    }
}

/// Counts what a selector may have only so many of.
#[derive(Default)]
struct Compiler {
    conditions: usize,
    patterns: usize,
    /// Of all patterns.
    places: usize,
}

impl Compiler {
    /// A value where a condition stands: an object of operators and fields, or else what the field must be equal to.
    fn condition(&mut self, value: Json<'_>, place: Place) -> Result<Condition, SelectorError> {
        let mut members = value.entries();
        match (members.next(), members.next()) {
            (None, _) => self.test(Operator::Compare(Ordering::Equal, Constant::new(value)), place),
            (Some((name, argument)), None) => self.member(&name, argument, place),
            _ => {
                let each = value.entries().map(|(name, argument)| self.member(&name, argument, place.clone()));
                Ok(all(each.collect::<Result<_, _>>()?, place.negated))
            }
        }
    }

    fn member(&mut self, name: &str, argument: Json<'_>, place: Place) -> Result<Condition, SelectorError> {
        match name {
            "" => Err(SelectorError::MissingFieldName),
            _ if name.starts_with('$') => self.operator(name, argument, place),
            _ => self.condition(argument, Place { path: place.path.join(name)?, ..place }),
        }
    }

    fn operator(&mut self, name: &str, argument: Json<'_>, place: Place) -> Result<Condition, SelectorError> {
        let bad_argument = || bad_argument(name, argument);
        let list = || elements(argument).ok_or_else(bad_argument);
        let compare = |ordering| Operator::Compare(ordering, Constant::new(argument));
        let (operator, place) = match name {
            "$and" => return Ok(all(self.each(list()?, &place)?, place.negated)),
            "$or" => return Ok(any(self.each(list()?, &place)?, place.negated)),
            "$nor" => {
                let place = place.negated();
                return Ok(any(self.each(list()?, &place)?, place.negated));
            }
            "$not" if argument.is_object() => return self.condition(argument, place.negated()),
            "$text" | "$default" => return text(name, argument, &place),
            "$eq" => (compare(Ordering::Equal), place),
            "$ne" => (compare(Ordering::Equal), place.negated()),
            "$lt" => (compare(Ordering::Less), place),
            "$gte" => (compare(Ordering::Less), place.negated()),
            "$gt" => (compare(Ordering::Greater), place),
            "$lte" => (compare(Ordering::Greater), place.negated()),
            "$in" => (Operator::In(ConstantSet::new(list()?, place.path.order())), place),
            "$nin" => (Operator::In(ConstantSet::new(list()?, place.path.order())), place.negated()),
            "$all" => (all_operator(list()?), place),
            "$exists" => match argument.datum() {
                Datum::Bool(true) => (Operator::Exists, place),
                Datum::Bool(false) => (Operator::Exists, place.negated()),
                _ => return Err(bad_argument()),
            },
            "$elemMatch" => (Operator::ElemMatch(self.within(name, argument)?), place),
            "$allMatch" => (Operator::AllMatch(self.within(name, argument)?), place),
            "$keyMapMatch" => (Operator::KeyMapMatch(self.within(name, argument)?), place),
            "$regex" => (Operator::Regex(self.pattern(argument)?), place),
            _ => (scalar_operator(name, argument)?, place),
        };
        self.test(operator, place)
    }

    /// The conditions in a list.
    fn each(&mut self, list: Elements<'_>, place: &Place) -> Result<Vec<Condition>, SelectorError> {
        list.map(|element| self.condition(element, place.clone())).collect()
    }

    /// The condition on elements or names of members: paths start there.
    fn within(&mut self, operator: &str, argument: Json<'_>) -> Result<Box<Condition>, SelectorError> {
        match argument.is_object() {
            true => self.condition(argument, Place::top()).map(Box::new),
            false => Err(bad_argument(operator, argument)),
        }
    }

    fn test(&mut self, operator: Operator, place: Place) -> Result<Condition, SelectorError> {
        let Place { path, negated } = place;
        count(&mut self.conditions, 1, "conditions", CONDITIONS_MAX)?;
        Ok(match operator {
            Operator::Exists if negated => Condition::Missing { path },
            operator => Condition::Field { path, operator, negated },
        })
    }

    fn pattern(&mut self, argument: Json<'_>) -> Result<Pattern, SelectorError> {
        count(&mut self.patterns, 1, "$regex", PATTERNS_MAX)?;
        let pattern = string(argument).ok_or_else(|| invalid_operator("$regex"))?;
        let pattern =
            Pattern::compile(&pattern).map_err(|why| SelectorError::BadPattern { pattern: quoted(argument.0), why })?;
        let what = "characters in its $regex, counted as often as they are repeated";
        count(&mut self.places, pattern.places(), what, PATTERN_PLACES_MAX)?;
        Ok(pattern)
    }
}

fn count(counted: &mut usize, more: usize, what: &'static str, max: usize) -> Result<(), SelectorError> {
    *counted = counted.saturating_add(more);
    if *counted > max { Err(SelectorError::TooMany { what, max }) } else { Ok(()) }
}

/// Conditions, each already negated if the whole is: not all of them is any of them not.
fn all(conditions: Vec<Condition>, negated: bool) -> Condition {
    if negated { Condition::any(conditions) } else { Condition::all(conditions) }
}

fn any(conditions: Vec<Condition>, negated: bool) -> Condition {
    all(conditions, !negated)
}

/// The operators whose arguments are looked at once and name nothing to compare with.
fn scalar_operator(name: &str, argument: Json<'_>) -> Result<Operator, SelectorError> {
    let operator = match name {
        "$type" => string(argument).map(|kind| Operator::Type(Kind::parse(&kind))),
        "$size" => argument.0.parse().ok().map(Operator::Size),
        "$mod" => division(argument),
        // With an object it was taken already.
        "$not" => None,
        "$beginsWith" => {
            let prefix = string(argument).ok_or_else(|| invalid_operator(name))?;
            Some(Operator::BeginsWith(prefix.into()))
        }
        "$where" | "$geoWithin" | "$geoIntersects" | "$near" | "$nearSphere" => {
            return Err(SelectorError::UnsupportedOperator { name: name.to_owned() });
        }
        _ => return Err(invalid_operator(name)),
    };
    operator.ok_or_else(|| bad_argument(name, argument))
}

fn all_operator(list: Elements<'_>) -> Operator {
    let mut several = list.clone();
    let itself = match (several.next(), several.next()) {
        (Some(only), None) if elements(only).is_some() => Some(Constant::new(only)),
        _ => None,
    };
    Operator::All { set: ConstantSet::new(list, Order::Exact), itself }
}

/// Two integers, both within 64 bits, the first not 0.
fn division(argument: Json<'_>) -> Option<Operator> {
    let mut list = elements(argument)?;
    let (divisor, remainder) = (list.next()?.0.parse().ok()?, list.next()?.0.parse().ok()?);
    (divisor != 0 && list.next().is_none()).then_some(Operator::Mod { divisor, remainder })
}

/// `$text` asks a text index, which a filter has not: every document matches. `$default` is its spelling inside
/// CouchDB.
fn text(name: &str, argument: Json<'_>, place: &Place) -> Result<Condition, SelectorError> {
    let mut members = argument.entries();
    let asked = match (name, members.next(), members.next()) {
        ("$default", Some((inner, asked)), None) if inner == "$text" => asked,
        ("$default", ..) => return Err(bad_field(name, argument)),
        _ => argument,
    };
    if !matches!(asked.datum(), Datum::String(_) | Datum::Number(_) | Datum::Bool(_)) {
        return Err(bad_argument("$text", asked));
    }
    match place {
        Place { path, .. } if !path.steps().is_empty() => Err(bad_field(name, argument)),
        Place { negated: true, .. } => Err(bad_argument("$not", Json(&member_text(name, argument)))),
        _ => Ok(Condition::always()),
    }
}

fn elements(value: Json<'_>) -> Option<Elements<'_>> {
    match value.datum() {
        Datum::Array(elements) => Some(elements),
        _ => None,
    }
}

fn string(value: Json<'_>) -> Option<Cow<'_, str>> {
    match value.datum() {
        Datum::String(text) => Some(text),
        _ => None,
    }
}

fn member_text(name: &str, argument: Json<'_>) -> String {
    format!("{{\"{name}\":{}}}", argument.0)
}

fn invalid_operator(name: &str) -> SelectorError {
    SelectorError::InvalidOperator { name: quoted(name) }
}

fn bad_argument(operator: &str, argument: Json<'_>) -> SelectorError {
    SelectorError::BadArgument { operator: operator.to_owned(), argument: quoted(argument.0) }
}

fn bad_field(name: &str, argument: Json<'_>) -> SelectorError {
    SelectorError::BadField { selector: quoted(&member_text(name, argument)) }
}

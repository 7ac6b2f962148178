//! The tests that a single value is put to.

use std::cmp::Ordering;

use unicode_segmentation::GraphemeCursor;

use super::condition::Condition;
use super::json::{Datum, Elements, Json};
use super::order::Order;
use super::pattern::Pattern;

/// A test of one value. Negated operators (`$ne`, `$lte`, `$gte`, `$nin`, `$not`) are the negation of one of these.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Operator {
    /// `$exists: true`
    Exists,
    /// `$type`; without a kind, of a name that is no type's.
    Type(Option<Kind>),
    /// `$eq`, `$lt`, `$gt`: how the value stands to the constant.
    Compare(Ordering, Constant),
    /// `$in`
    In(ConstantSet),
    /// `$all`: an array that has each of these in it; or that is the only one of these, if that is an array.
    All { set: ConstantSet, itself: Option<Constant> },
    /// `$mod`
    Mod { divisor: i64, remainder: i64 },
    /// `$size`
    Size(usize),
    /// `$beginsWith`
    BeginsWith(Box<str>),
    /// `$regex`
    Regex(Pattern),
    /// `$elemMatch`
    ElemMatch(Box<Condition>),
    /// `$allMatch`
    AllMatch(Box<Condition>),
    /// `$keyMapMatch`
    KeyMapMatch(Box<Condition>),
}

impl Operator {
    /// Whether a value passes the test.
    pub fn passes(&self, value: Datum<'_>, order: Order) -> bool {
        match (self, value) {
            (Operator::Exists, _) => true,
            (Operator::Type(kind), value) => *kind == Some(Kind::of(&value)),
            (Operator::Compare(ordering, constant), value) => order.compare(value, constant.datum()) == *ordering,
            // The array as a whole is not looked for, only what is in it.
            (Operator::In(set), Datum::Array(mut elements)) => {
                elements.any(|element| set.find(element.datum(), order).is_some())
            }
            (Operator::In(set), value) => set.find(value, order).is_some(),
            (Operator::All { set, itself }, Datum::Array(elements)) => {
                let is = |constant: &Constant| Order::Exact.compare(constant.datum(), Datum::Array(elements.clone()));
                itself.as_ref().is_some_and(|itself| is(itself).is_eq()) || set.is_within(elements.clone())
            }
            (Operator::Mod { divisor, remainder }, Datum::Number(number)) => {
                number.remainder(*divisor) == Some(*remainder)
            }
            (Operator::Size(size), Datum::Array(elements)) => elements.take(size.saturating_add(1)).count() == *size,
            (Operator::BeginsWith(prefix), Datum::String(text)) => begins_with(&text, prefix),
            (Operator::Regex(pattern), Datum::String(text)) => pattern.matches(&text),
            (Operator::ElemMatch(condition), Datum::Array(mut elements)) => {
                elements.any(|element| condition.holds(&element))
            }
            (Operator::AllMatch(condition), Datum::Array(elements)) => {
                let mut elements = elements.peekable();
                elements.peek().is_some() && elements.all(|element| condition.holds(&element))
            }
            (Operator::KeyMapMatch(condition), Datum::Object(mut entries)) => {
                entries.any(|(name, _)| condition.holds(&*name))
            }
            _ => false,
        }
    }

    /// What the test costs, roughly: cheap ones are made first.
    pub fn cost(&self) -> u8 {
        match self {
            Operator::Exists | Operator::Type(_) | Operator::Compare(..) | Operator::Mod { .. } => 0,
            Operator::BeginsWith(_) => 1,
            Operator::In(_) | Operator::Size(_) => 2,
            Operator::All { .. } | Operator::Regex(_) => 3,
            Operator::ElemMatch(_) | Operator::AllMatch(_) | Operator::KeyMapMatch(_) => 4,
        }
    }
}

/// Whether `text` starts with `prefix` and no character, as readers see it, is cut there: `e` followed by an accent
/// does not begin with `e`. Source: Erlang's `string:prefix`.
fn begins_with(text: &str, prefix: &str) -> bool {
    let whole_characters = || GraphemeCursor::new(prefix.len(), text.len(), true).is_boundary(text, 0);
    text.starts_with(prefix) && whole_characters().unwrap_or(true)
}

/// The types of values, as `$type` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    pub fn parse(name: &str) -> Option<Kind> {
        Some(match name {
            "null" => Kind::Null,
            "boolean" => Kind::Boolean,
            "number" => Kind::Number,
            "string" => Kind::String,
            "array" => Kind::Array,
            "object" => Kind::Object,
            _ => return None,
        })
    }

    fn of(value: &Datum<'_>) -> Kind {
        match value {
            Datum::Null => Kind::Null,
            Datum::Bool(_) => Kind::Boolean,
            Datum::Number(_) => Kind::Number,
            Datum::String(_) => Kind::String,
            Datum::Array(_) => Kind::Array,
            Datum::Object(_) => Kind::Object,
        }
    }
}

/// A value that a selector names: its text, without white space and needless escapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Constant(Box<str>);

impl Constant {
    pub fn new(json: Json<'_>) -> Constant {
        let mut text = Vec::with_capacity(json.0.len());
        json.write_plainly(&mut text);
        Constant(String::from_utf8(text).unwrap_or_default().into())
    }

    pub fn datum(&self) -> Datum<'_> {
        Json(&self.0).datum()
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The constants of a list, each once, in order: looking one up takes few comparisons.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ConstantSet(Box<[Constant]>);

impl ConstantSet {
    pub fn new(list: Elements<'_>, order: Order) -> ConstantSet {
        let mut constants: Vec<Constant> = list.map(Constant::new).collect();
        constants.sort_by(|one, other| order.compare(one.datum(), other.datum()).then_with(|| one.0.cmp(&other.0)));
        constants.dedup_by(|one, other| order.compare(one.datum(), other.datum()).is_eq());
        ConstantSet(constants.into())
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Constant> {
        self.0.iter()
    }

    /// The place of a value's equal.
    fn find(&self, value: Datum<'_>, order: Order) -> Option<usize> {
        self.0.binary_search_by(|constant| order.compare(constant.datum(), value.clone())).ok()
    }

    /// Whether each is exactly among the elements; not if there is none.
    fn is_within(&self, elements: Elements<'_>) -> bool {
        let mut found = vec![false; self.0.len()];
        let mut left = found.len();
        for place in elements.filter_map(|element| self.find(element.datum(), Order::Exact)) {
            left -= usize::from(!std::mem::replace(&mut found[place], true));
            if left == 0 {
                return true;
            }
        }
        false
    }
}

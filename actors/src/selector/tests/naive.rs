//! A slow evaluator that goes CouchDB's way, pass by pass, over trees; and the module beside it.

use std::cmp::Ordering;

use icu_collator::{Collator, CollatorBorrowed};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::tree::{Tree, any_body, any_nonsense, any_selector, any_wide_body};
use super::*;

/// A selector after CouchDB's three passes. `None`: it is refused.
fn normalize(selector: &Tree) -> Option<Tree> {
    let Tree::Object(members) = selector else {
        return None;
    };
    if members.is_empty() {
        return Some(Tree::one("$and", Tree::Array(Vec::new())));
    }
    let normal = norm_negations(norm_fields(norm_ops(selector)?, "")?)?;
    (!only(&normal).0.is_empty()).then_some(normal)
}

fn only(condition: &Tree) -> (&str, &Tree) {
    let Tree::Object(members) = condition else { unreachable!("{condition:?}") };
    (&members[0].0, &members[0].1)
}

fn each(list: Tree, normalize: impl Fn(Tree) -> Option<Tree>) -> Option<Tree> {
    let Tree::Array(list) = list else {
        return None;
    };
    Some(Tree::Array(list.into_iter().map(normalize).collect::<Option<_>>()?))
}

fn norm_ops(condition: &Tree) -> Option<Tree> {
    let Tree::Object(members) = condition else {
        return Some(Tree::one("$eq", condition.clone()));
    };
    let [(name, argument)] = &members[..] else {
        if members.is_empty() {
            return Some(Tree::one("$eq", condition.clone()));
        }
        let each = members.iter().map(|(name, value)| norm_ops(&Tree::one(name, value.clone())));
        return Some(Tree::one("$and", Tree::Array(each.collect::<Option<_>>()?)));
    };
    let is_integer = |value: &Tree| matches!(value, Tree::Number(text) if text.parse::<i64>().is_ok());
    let accepted = match &**name {
        "$and" | "$or" | "$nor" => return Some(Tree::one(name, each(argument.clone(), |inner| norm_ops(&inner))?)),
        "$not" | "$elemMatch" | "$allMatch" | "$keyMapMatch" => {
            let inner = matches!(argument, Tree::Object(_)).then(|| norm_ops(argument))??;
            return Some(Tree::one(name, inner));
        }
        "$text" => {
            let scalar = matches!(argument, Tree::Text(_) | Tree::Number(_) | Tree::Bool(_));
            return scalar.then(|| Tree::one("$default", condition.clone()));
        }
        "$default" => match argument {
            Tree::Object(inner) if inner.len() == 1 && inner[0].0 == "$text" => {
                matches!(inner[0].1, Tree::Text(_) | Tree::Number(_) | Tree::Bool(_))
            }
            _ => false,
        },
        "$in" | "$nin" | "$all" => matches!(argument, Tree::Array(_)),
        "$exists" => matches!(argument, Tree::Bool(_)),
        "$type" | "$beginsWith" => matches!(argument, Tree::Text(_)),
        "$regex" => matches!(argument, Tree::Text(pattern) if regex::Regex::new(pattern).is_ok()),
        "$size" => matches!(argument, Tree::Number(text) if text.parse::<u64>().is_ok()),
        "$mod" => matches!(argument, Tree::Array(list) if list.len() == 2 && list.iter().all(is_integer)
            && !matches!(list[0], Tree::Number("0" | "-0"))),
        "$eq" | "$ne" | "$lt" | "$lte" | "$gt" | "$gte" => true,
        "" => false,
        name if name.starts_with('$') => false,
        _ => return Some(Tree::one(name, norm_ops(argument)?)),
    };
    accepted.then(|| condition.clone())
}

fn norm_fields(condition: Tree, path: &str) -> Option<Tree> {
    let (name, argument) = only(&condition);
    let argument = argument.clone();
    match name {
        "$and" | "$or" | "$nor" => Some(Tree::one(name, each(argument, |inner| norm_fields(inner, path))?)),
        "$not" => Some(Tree::one(name, norm_fields(argument, path)?)),
        "$elemMatch" | "$allMatch" | "$keyMapMatch" => {
            Some(Tree::one(path, Tree::one(name, norm_fields(argument, "")?)))
        }
        "$default" => path.is_empty().then_some(condition),
        _ if name.starts_with('$') => Some(Tree::one(path, condition)),
        _ => {
            steps(name)?;
            norm_fields(argument, &if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") })
        }
    }
}

fn norm_negations(condition: Tree) -> Option<Tree> {
    let (name, argument) = only(&condition);
    let argument = argument.clone();
    match name {
        "$not" => negate(argument),
        "$and" | "$or" => Some(Tree::one(name, each(argument, norm_negations)?)),
        "$nor" => Some(Tree::one("$and", each(argument, negate)?)),
        "$elemMatch" | "$allMatch" | "$keyMapMatch" => Some(Tree::one(name, norm_negations(argument)?)),
        "$default" => Some(condition),
        _ if name.starts_with('$') => Some(condition),
        _ => Some(Tree::one(name, norm_negations(argument)?)),
    }
}

fn negate(condition: Tree) -> Option<Tree> {
    let (name, argument) = only(&condition);
    let argument = argument.clone();
    let flipped = match name {
        "$not" => return norm_negations(argument),
        "$nor" => return Some(Tree::one("$or", each(argument, norm_negations)?)),
        "$and" => return Some(Tree::one("$or", each(argument, negate)?)),
        "$or" => return Some(Tree::one("$and", each(argument, negate)?)),
        "$default" => return None,
        "$exists" => return Some(Tree::one(name, Tree::Bool(argument == Tree::Bool(false)))),
        "$lt" => "$gte",
        "$lte" => "$gt",
        "$eq" => "$ne",
        "$ne" => "$eq",
        "$gte" => "$lt",
        "$gt" => "$lte",
        "$in" => "$nin",
        "$nin" => "$in",
        _ if name.starts_with('$') => return Some(Tree::one("$not", norm_negations(condition)?)),
        _ => return Some(Tree::one(name, negate(argument)?)),
    };
    Some(Tree::one(flipped, argument))
}

fn steps(path: &str) -> Option<Vec<String>> {
    let protected = path.replace("\\.", "\u{1}").replace('\\', "");
    let steps: Vec<String> = protected.split('.').map(|step| step.replace('\u{1}', ".")).collect();
    steps.iter().all(|step| !step.is_empty()).then_some(steps)
}

/// A value; or whether it is missing from an object.
fn get<'t>(value: &'t Tree, path: &str) -> Result<&'t Tree, bool> {
    if path.is_empty() {
        return Ok(value);
    }
    steps(path).unwrap().iter().try_fold(value, |value, step| match value {
        Tree::Object(members) => members.iter().find(|(name, _)| name == step).map(|(_, value)| value).ok_or(true),
        Tree::Array(elements) => step.parse::<usize>().ok().and_then(|place| elements.get(place)).ok_or(false),
        _ => Err(false),
    })
}

struct Naive {
    collator: CollatorBorrowed<'static>,
}

impl Naive {
    fn new() -> Naive {
        Naive { collator: Collator::try_new(Default::default(), Default::default()).unwrap() }
    }

    fn matches(&self, condition: &Tree, value: &Tree, raw: bool) -> bool {
        let (name, argument) = only(condition);
        let list = || match argument {
            Tree::Array(list) => &list[..],
            _ => &[],
        };
        let is = |one: &Tree, other: &Tree| self.compare(one, other, raw).is_eq();
        match (name, value) {
            ("$and", _) => list().iter().all(|inner| self.matches(inner, value, raw)),
            ("$or", _) => list().is_empty() || list().iter().any(|inner| self.matches(inner, value, raw)),
            ("$not", _) => !self.matches(argument, value, raw),
            ("$default", _) => true,
            ("$eq", _) => is(value, argument),
            ("$ne", _) => !is(value, argument),
            ("$lt", _) => self.compare(value, argument, raw).is_lt(),
            ("$lte", _) => self.compare(value, argument, raw).is_le(),
            ("$gt", _) => self.compare(value, argument, raw).is_gt(),
            ("$gte", _) => self.compare(value, argument, raw).is_ge(),
            ("$in", Tree::Array(elements)) => {
                list().iter().any(|each| elements.iter().any(|element| is(element, each)))
            }
            ("$in", _) => list().iter().any(|each| is(value, each)),
            ("$nin", _) => !self.matches(&Tree::one("$in", argument.clone()), value, raw),
            ("$exists", _) => *argument == Tree::Bool(true),
            ("$type", _) => {
                let kind = match value {
                    Tree::Null => "null",
                    Tree::Bool(_) => "boolean",
                    Tree::Number(_) => "number",
                    Tree::Text(_) => "string",
                    Tree::Array(_) => "array",
                    Tree::Object(_) => "object",
                };
                *argument == Tree::Text(kind.to_owned())
            }
            ("$mod", Tree::Number(text)) => {
                let integer = |tree: &Tree| match tree {
                    Tree::Number(text) => text.parse::<i128>().ok(),
                    _ => None,
                };
                text.parse::<i128>()
                    .is_ok_and(|value| Some(value % integer(&list()[0]).unwrap()) == integer(&list()[1]))
            }
            ("$regex", Tree::Text(text)) => {
                matches!(argument, Tree::Text(pattern) if regex::Regex::new(pattern).unwrap().is_match(text))
            }
            ("$beginsWith", Tree::Text(text)) => {
                let Tree::Text(prefix) = argument else { unreachable!() };
                let prefix: Vec<&str> = prefix.graphemes(true).collect();
                text.graphemes(true).take(prefix.len()).collect::<Vec<_>>() == prefix
            }
            ("$size", Tree::Array(elements)) => {
                matches!(argument, Tree::Number(text) if text.parse() == Ok(elements.len()))
            }
            ("$all", Tree::Array(elements)) => {
                let all = list().iter().all(|each| elements.iter().any(|element| same(element, each)));
                let itself = matches!(list(), [Tree::Array(_)]) && same(&list()[0], value);
                !list().is_empty() && (all || itself)
            }
            ("$elemMatch", Tree::Array(elements)) => elements.iter().any(|each| self.matches(argument, each, false)),
            ("$allMatch", Tree::Array(elements)) => {
                !elements.is_empty() && elements.iter().all(|each| self.matches(argument, each, false))
            }
            ("$keyMapMatch", Tree::Object(members)) => {
                members.iter().any(|(name, _)| self.matches(argument, &Tree::Text(name.clone()), false))
            }
            _ if name.starts_with('$') => false,
            _ => match get(value, name) {
                Ok(value) => self.matches(argument, value, name == "_id"),
                Err(absent) => absent && *argument == Tree::one("$exists", Tree::Bool(false)),
            },
        }
    }

    fn compare(&self, one: &Tree, other: &Tree, raw: bool) -> Ordering {
        let texts = |one: &str, other: &str| if raw { one.cmp(other) } else { self.collator.compare(one, other) };
        match (one, other) {
            (Tree::Bool(one), Tree::Bool(other)) => one.cmp(other),
            (Tree::Number(one), Tree::Number(other)) => compare_numbers(one, other),
            (Tree::Text(one), Tree::Text(other)) => texts(one, other),
            (Tree::Array(one), Tree::Array(other)) => {
                let each = one.iter().zip(other).map(|(one, other)| self.compare(one, other, raw));
                each.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
            }
            (Tree::Object(one), Tree::Object(other)) => {
                let each = one.iter().zip(other).map(|((name, value), (other_name, other))| {
                    texts(name, other_name).then_with(|| self.compare(value, other, raw))
                });
                each.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
            }
            _ => rank(one).cmp(&rank(other)),
        }
    }
}

fn rank(value: &Tree) -> usize {
    match value {
        Tree::Null => 0,
        Tree::Bool(_) => 1,
        Tree::Number(_) => 2,
        Tree::Text(_) => 3,
        Tree::Array(_) => 4,
        Tree::Object(_) => 5,
    }
}

fn is_float(number: &str) -> bool {
    number.contains(['.', 'e', 'E'])
}

/// Equal, and of one kind throughout.
fn same(one: &Tree, other: &Tree) -> bool {
    match (one, other) {
        (Tree::Number(one), Tree::Number(other)) => {
            is_float(one) == is_float(other) && compare_numbers(one, other).is_eq()
        }
        (Tree::Array(one), Tree::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Tree::Object(one), Tree::Object(other)) => {
            let both = || one.iter().zip(other);
            one.len() == other.len()
                && both().all(|((name, one), (other_name, other))| name == other_name && same(one, other))
        }
        _ => one == other,
    }
}

/// Compares numbers digit by digit, as written out in full.
pub fn compare_numbers(one: &str, other: &str) -> Ordering {
    let written = |number: &str| {
        let full =
            if is_float(number) { format!("{:.1100}", number.parse::<f64>().unwrap()) } else { number.to_owned() };
        let negative = full.starts_with('-');
        let digits = full.trim_start_matches('-');
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let zero = digits.chars().all(|digit| matches!(digit, '0' | '.'));
        (negative && !zero, format!("{whole:0>400}{fraction:0<1100}"))
    };
    match (written(one), written(other)) {
        ((false, one), (false, other)) => one.cmp(&other),
        ((true, one), (true, other)) => other.cmp(&one),
        ((one, _), (other, _)) => other.cmp(&one),
    }
}

/// The document as conditions see it.
fn with_special_members(body: &Tree) -> Tree {
    let special = [("_id", "d"), ("_rev", "1-a")].map(|(name, text)| (name.to_owned(), Tree::Text(text.to_owned())));
    let Tree::Object(members) = body else { unreachable!() };
    Tree::Object(special.into_iter().chain(members.clone()).collect())
}

proptest! {
    #[test]
    fn one_view_gives_every_selector_the_naive_answer(
        selectors in prop::collection::vec(any_selector(), 1..8),
        body in prop_oneof![any_body(), any_wide_body()],
        seed: u64,
    ) {
        let document = Document::new("d", &body.json(seed));
        let view = document.view();
        let tree = with_special_members(&body);
        for selector in selectors {
            let text = selector.json(seed);
            let compiled = Selector::from_json(&text);
            let normal = normalize(&selector);
            prop_assert_eq!(compiled.is_ok(), normal.is_some(), "{}: {:?}", text, compiled);
            if let (Ok(compiled), Some(normal)) = (compiled, normal) {
                let expected = Naive::new().matches(&normal, &tree, false);
                prop_assert_eq!(compiled.matches(&view), expected, "{} on {}", text, body.json(0));
            }
        }
    }

    #[test]
    fn nonsense_is_refused_or_means_what_couchdb_takes_it_for(
        selector in any_nonsense(),
        body in any_body(),
        seed: u64,
    ) {
        let text = selector.json(seed);
        let compiled = Selector::from_json(&text);
        let normal = normalize(&selector);
        prop_assert_eq!(compiled.is_ok(), normal.is_some(), "{}: {:?}", text, compiled);
        if let (Ok(compiled), Some(normal)) = (compiled, normal) {
            let document = Document::new("d", &body.json(seed));
            let expected = Naive::new().matches(&normal, &with_special_members(&body), false);
            prop_assert_eq!(compiled.matches(&document.view()), expected, "{} on {}", text, body.json(0));
        }
    }
}

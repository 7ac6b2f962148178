//! Arbitrary documents and selectors, made of few names and values so that they often meet.

use proptest::prelude::*;
use seqtide_storage::json::write_json_string;

#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    Null,
    Bool(bool),
    /// As spelled.
    Number(&'static str),
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    pub fn one(name: &str, value: Tree) -> Tree {
        Tree::Object(vec![(name.to_owned(), value)])
    }

    /// The text; `seed` decides which characters are escaped.
    pub fn json(&self, seed: u64) -> String {
        let mut out = String::new();
        self.write(&mut out, &mut (seed | 1));
        out
    }

    fn write(&self, out: &mut String, seed: &mut u64) {
        match self {
            Tree::Null => out.push_str("null"),
            Tree::Bool(value) => out.push_str(&value.to_string()),
            Tree::Number(text) => out.push_str(text),
            Tree::Text(text) => write_text(text, out, seed),
            Tree::Array(elements) => {
                out.push('[');
                for (place, element) in elements.iter().enumerate() {
                    out.push_str(if place > 0 { "," } else { "" });
                    element.write(out, seed);
                }
                out.push(']');
            }
            Tree::Object(members) => {
                out.push('{');
                for (place, (name, value)) in members.iter().enumerate() {
                    out.push_str(if place > 0 { " ," } else { "" });
                    write_text(name, out, seed);
                    out.push_str(": ");
                    value.write(out, seed);
                }
                out.push('}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut String, seed: &mut u64) {
    out.push('"');
    for character in text.chars() {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if *seed >> 61 == 0 {
            let mut units = [0; 2];
            character.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            let mut quoted = Vec::new();
            write_json_string(&mut quoted, character.encode_utf8(&mut [0; 4]));
            out.push_str(std::str::from_utf8(&quoted[1..quoted.len() - 1]).unwrap());
        }
    }
    out.push('"');
}

const NUMBERS: [&str; 19] = [
    "0",
    "-0",
    "-0.0",
    "1",
    "1.0",
    "1e0",
    "2",
    "-7",
    "0.1",
    "10",
    "9007199254740992.0",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "9223372036854775808.0",
    "-100000000000000000000",
    "1e20",
    "100000000000000000000",
];

const TEXTS: [&str; 20] = [
    "",
    "a",
    "A",
    "b",
    "x",
    "X",
    "xyz",
    "a\u{0}",
    "e",
    "é",
    "e\u{301}",
    "e\u{301}x",
    "0",
    "\u{660}",
    "\r",
    "\r\n",
    "😀\"\\",
    "l\u{b7}",
    "-",
    "10",
];

pub fn any_scalar() -> impl Strategy<Value = Tree> {
    prop_oneof![
        1 => Just(Tree::Null),
        1 => any::<bool>().prop_map(Tree::Bool),
        4 => prop::sample::select(&NUMBERS[..]).prop_map(Tree::Number),
        4 => prop::sample::select(&TEXTS[..]).prop_map(|text| Tree::Text(text.to_owned())),
    ]
}

pub fn any_value() -> impl Strategy<Value = Tree> {
    any_scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::Array),
            object(prop::sample::select(&["a", "b", "_id", "0"][..]), inner, 0..4),
        ]
    })
}

/// A document's body.
pub fn any_body() -> impl Strategy<Value = Tree> {
    object(prop::sample::select(&["a", "a", "a", "b", "a.b", "é", "c"][..]), any_value(), 0..5)
}

/// A body with so many members that they are looked up another way.
pub fn any_wide_body() -> impl Strategy<Value = Tree> {
    any_body().prop_map(|body| {
        let Tree::Object(mut members) = body else {
            return body;
        };
        members.extend((0..40).map(|number| (format!("m{number}"), Tree::Null)));
        Tree::Object(members)
    })
}

/// An object in which each name stands once.
fn object(
    name: impl Strategy<Value = &'static str>,
    value: impl Strategy<Value = Tree>,
    size: std::ops::Range<usize>,
) -> impl Strategy<Value = Tree> {
    prop::collection::vec((name, value), size).prop_map(|members| {
        let mut kept: Vec<(String, Tree)> = Vec::new();
        for (name, value) in members {
            if kept.iter().all(|(other, _)| other != name) {
                kept.push((name.to_owned(), value));
            }
        }
        Tree::Object(kept)
    })
}

/// What is nearly always there comes often.
const FIELDS: [&str; 16] =
    ["a", "a", "a", "a", "a", "b", "c", "é", "a.b", "a\\.b", "a.0", "a.0.b", "b.a", "_id", "_rev", "_deleted"];

const KINDS: [&str; 7] = ["null", "boolean", "number", "string", "array", "object", "none"];
const DIVISIONS: [[&str; 2]; 5] = [["2", "0"], ["2", "1"], ["-3", "-1"], ["9223372036854775807", "1"], ["1", "0"]];

fn any_pattern() -> impl Strategy<Value = Tree> {
    prop::sample::select(&["^x", "(?i)x$", "é", "1", "."][..]).prop_map(|text| Tree::Text(text.to_owned()))
}

fn any_test() -> impl Strategy<Value = Tree> {
    let comparison = prop::sample::select(&["$eq", "$ne", "$lt", "$lte", "$gt", "$gte"][..]);
    let list = prop::sample::select(&["$in", "$nin", "$all"][..]);
    let text = prop::sample::select(&TEXTS[..]).prop_map(|text| Tree::Text(text.to_owned()));
    prop_oneof![
        6 => (comparison, any_value()).prop_map(|(name, value)| Tree::one(name, value)),
        3 => any_value().prop_map(|value| match value {
            condition @ Tree::Object(_) => Tree::one("$eq", condition),
            other => other,
        }),
        4 => (list, prop::collection::vec(any_value(), 0..4)).prop_map(|(name, list)| Tree::one(name, Tree::Array(list))),
        1 => any::<bool>().prop_map(|exists| Tree::one("$exists", Tree::Bool(exists))),
        1 => prop::sample::select(&KINDS[..]).prop_map(|kind| Tree::one("$type", Tree::Text(kind.to_owned()))),
        1 => (0..3usize).prop_map(|size| Tree::one("$size", Tree::Number(NUMBERS[[0, 3, 6][size]]))),
        1 => prop::sample::select(&DIVISIONS[..]).prop_map(|pair| {
            Tree::one("$mod", Tree::Array(pair.map(Tree::Number).into()))
        }),
        1 => any_pattern().prop_map(|pattern| Tree::one("$regex", pattern)),
        1 => text.prop_map(|text| Tree::one("$beginsWith", text)),
    ]
}

/// A selector; most of them are accepted.
pub fn any_selector() -> impl Strategy<Value = Tree> {
    let leaf = (prop::sample::select(&FIELDS[..]), any_test()).prop_map(|(field, test)| Tree::one(field, test));
    leaf.prop_recursive(4, 24, 4, |inner| {
        let lists = prop::sample::select(&["$and", "$or", "$nor"][..]);
        let within = prop::sample::select(&["$elemMatch", "$allMatch", "$keyMapMatch"][..]);
        let field = || prop::sample::select(&FIELDS[..]);
        let on_element = prop_oneof![any_test().prop_map(|test| match test {
            Tree::Object(_) => test,
            other => Tree::one("$eq", other),
        }), inner.clone()];
        let under_field = prop::collection::vec(any_test(), 0..3);
        prop_oneof![
            2 => (lists.clone(), prop::collection::vec(inner.clone(), 0..4)).prop_map(|(name, list)| Tree::one(name, Tree::Array(list))),
            2 => inner.clone().prop_map(|inner| Tree::one("$not", inner)),
            1 => (field(), inner.clone()).prop_map(|(field, inner)| Tree::one(field, inner)),
            2 => (field(), within, on_element).prop_map(|(field, name, inner)| Tree::one(field, Tree::one(name, inner))),
            1 => (field(), lists, under_field).prop_map(|(field, name, list)| {
                Tree::one(field, Tree::one(name, Tree::Array(list)))
            }),
            1 => (field(), any_test()).prop_map(|(field, test)| Tree::one(field, Tree::one("$not", test))),
            1 => (inner.clone(), inner).prop_map(|(one, other)| match (one, other) {
                (Tree::Object(mut members), Tree::Object(mut others)) => {
                    others.retain(|(name, _)| members.iter().all(|(other, _)| other != name));
                    members.append(&mut others);
                    Tree::Object(members)
                }
                (one, _) => one,
            }),
        ]
    })
}

/// Any JSON, in which operators stand anywhere with any argument.
pub fn any_nonsense() -> impl Strategy<Value = Tree> {
    let name = prop_oneof![
        prop::sample::select(&FIELDS[..]),
        prop::sample::select(&["", "a..b", ".", "\\", "$", "$foo", "$where", "$text", "$default"][..]),
        prop::sample::select(&["$and", "$or", "$nor", "$not", "$elemMatch", "$allMatch", "$keyMapMatch"][..]),
        prop::sample::select(&["$eq", "$lt", "$in", "$nin", "$all", "$exists", "$type", "$mod"][..]),
        prop::sample::select(&["$regex", "$beginsWith", "$size"][..]),
    ];
    let leaf = prop_oneof![any_scalar(), Just(Tree::Text("(".to_owned())), any_pattern()];
    leaf.prop_recursive(5, 24, 3, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Tree::Array),
            3 => object(name.clone(), inner, 0..3),
        ]
    })
}

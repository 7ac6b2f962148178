//! Arbitrary JSON, and the many texts of one value.

use proptest::prelude::*;
use serde_json::Value;

/// A JSON value whose objects may repeat a name.
#[derive(Debug, Clone)]
pub enum Tree {
    /// A literal or number, as spelled.
    Token(String),
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// Choices made while a text is written, from a seed.
pub struct Choices(u64);

impl Choices {
    pub fn new(seed: u64) -> Choices {
        Choices(seed | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }
}

impl Tree {
    /// Only the last of the members of one name, at every level.
    pub fn deduplicated(&self) -> Tree {
        match self {
            Tree::Array(elements) => Tree::Array(elements.iter().map(Tree::deduplicated).collect()),
            Tree::Object(members) => {
                let last = |place: usize, name: &str| members[place + 1..].iter().all(|(other, _)| other != name);
                let kept = members.iter().enumerate().filter(|(place, (name, _))| last(*place, name));
                Tree::Object(kept.map(|(_, (name, value))| (name.clone(), value.deduplicated())).collect())
            }
            other => other.clone(),
        }
    }

    /// The shortest text.
    pub fn compact(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, &mut |_| {}, &mut |out, text| out.push_str(&Value::from(text).to_string()));
        out
    }

    /// Some text with white space and escapes here and there.
    pub fn sprawling(&self, choices: &mut Choices) -> String {
        let mut out = String::new();
        let choices = std::cell::RefCell::new(choices);
        let mut space = |out: &mut String| {
            let mut choices = choices.borrow_mut();
            (0..choices.below(3)).for_each(|_| out.push([' ', '\t', '\n', '\r'][choices.below(4)]));
        };
        let mut string = |out: &mut String, text: &str| escape_some(out, text, &mut choices.borrow_mut());
        self.write(&mut out, &mut space, &mut string);
        out
    }

    fn write(&self, out: &mut String, space: &mut dyn FnMut(&mut String), string: &mut dyn FnMut(&mut String, &str)) {
        space(out);
        match self {
            Tree::Token(token) => out.push_str(token),
            Tree::Text(text) => string(out, text),
            Tree::Array(elements) => {
                out.push('[');
                for (place, element) in elements.iter().enumerate() {
                    out.push_str(if place > 0 { "," } else { "" });
                    element.write(out, space, string);
                }
                out.push(']');
            }
            Tree::Object(members) => {
                out.push('{');
                for (place, (name, value)) in members.iter().enumerate() {
                    out.push_str(if place > 0 { "," } else { "" });
                    space(out);
                    string(out, name);
                    space(out);
                    out.push(':');
                    value.write(out, space, string);
                }
                out.push('}');
            }
        }
        space(out);
    }
}

fn escape_some(out: &mut String, text: &str, choices: &mut Choices) {
    out.push('"');
    for character in text.chars() {
        if choices.below(4) == 0 {
            let mut units = [0; 2];
            character.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else if character == '/' && choices.below(2) == 0 {
            out.push_str("\\/");
        } else {
            let quoted = Value::from(character.to_string()).to_string();
            out.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
    out.push('"');
}

fn any_token() -> impl Strategy<Value = Tree> {
    let token = prop_oneof![
        prop_oneof![Just("null"), Just("true"), Just("false"), Just("-0"), Just("-0.0"), Just("1.0"), Just("1E2")]
            .prop_map(String::from),
        any::<u8>().prop_map(|byte| byte.to_string()),
        any::<i64>().prop_map(|integer| integer.to_string()),
        any::<i16>().prop_map(|integer| integer.to_string()),
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
    ];
    token.prop_map(Tree::Token)
}

/// Any value.
pub fn any_tree() -> impl Strategy<Value = Tree> {
    let bytes = prop::collection::vec(any::<u8>(), 1..9)
        .prop_map(|bytes| Tree::Array(bytes.iter().map(|byte| Tree::Token(byte.to_string())).collect()));
    let leaf = prop_oneof![any_token(), ".{0,40}".prop_map(Tree::Text), bytes];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Tree::Array),
            prop::collection::vec(("[a-c\"é😀\\\\]{0,2}", inner), 0..24).prop_map(Tree::Object),
        ]
    })
}

/// An object whose names do not start with an underscore.
pub fn any_object() -> impl Strategy<Value = Tree> {
    prop::collection::vec(("[a-c\"é😀\\\\]{0,2}", any_tree()), 0..24).prop_map(Tree::Object)
}

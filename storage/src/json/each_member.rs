//! The members of an object, one by one.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

/// Hands over the members of a JSON object as they come, each as its name and its value's text, and keeps none: of one
/// given twice both come.
///
/// # Errors
/// What is wrong with the text, which may be that it is no object; members before that were handed over.
pub fn each_member<'a>(object: &'a str, look: impl FnMut(String, &'a RawValue)) -> Result<(), serde_json::Error> {
    let mut text = Deserializer::from_str(object);
    text.deserialize_map(EachMember(look))?;
    text.end()
}

struct EachMember<F>(F);

impl<'de, F: FnMut(String, &'de RawValue)> Visitor<'de> for EachMember<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        while let Some((name, value)) = object.next_entry()? {
            (self.0)(name, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_as_they_stand_and_what_is_no_object_is_refused() {
        let mut seen = Vec::new();
        each_member(r#" {"a":1, "\u0061":[ 2] } "#, |name, value| seen.push((name, value.get()))).unwrap();
        assert_eq!(seen, [("a".to_owned(), "1"), ("a".to_owned(), "[ 2]")]);
        for text in ["[1]", "null", r#"{"a":1"#, r#"{"a":1}}"#, r#"{"a":1} x"#, ""] {
            assert!(each_member(text, |_, _| {}).is_err(), "{text}");
        }
    }
}

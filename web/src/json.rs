//! JSON that was sent, taken apart one level at a time: each part stays the text it was sent as, no more of them are
//! kept than there may be, and what follows takes no memory.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use seqtide::storage::json::each_member;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::ApiError;

/// What is said of a request's body that is JSON, but no object.
pub const BODY: &str = "Request body must be a JSON object";

/// Members of an object of options: more than there are options anywhere.
const OPTIONS_MAX: usize = 100;

/// The text of a JSON object.
///
/// # Errors
/// 400 for what is no JSON; for JSON that is no object, with this reason.
pub fn object<'a>(text: &'a [u8], no_object: &'static str) -> Result<&'a RawValue, ApiError> {
    let text = std::str::from_utf8(text).map_err(|_| ApiError::not_json())?;
    let whole: &RawValue = serde_json::from_str(text).map_err(|_| ApiError::not_json())?;
    let is_object = whole.get().starts_with('{');
    is_object.then_some(whole).ok_or_else(|| ApiError::bad_request(no_object))
}

/// The members of an object, in the order they are given; of one given twice the last.
#[derive(Default)]
pub struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Those of an object, which are at most `most`.
    ///
    /// # Errors
    /// As [`object`]; `too_many`.
    pub fn read(
        text: &'a [u8],
        no_object: &'static str,
        most: usize,
        too_many: impl Fn() -> ApiError,
    ) -> Result<Members<'a>, ApiError> {
        let mut members = Vec::new();
        let text = std::str::from_utf8(text).map_err(|_| ApiError::not_json())?;
        let refused = || object(text.as_bytes(), no_object).err().unwrap_or_else(ApiError::not_json);
        look_at_each(text, refused, |name, value| push_up_to(most, &mut members, (name, value), &too_many))?;
        let last: HashMap<String, usize> = (0..).zip(&members).map(|(at, (name, _))| (name.clone(), at)).collect();
        let members = (0..).zip(members).filter(|(at, (name, _))| last.get(name) == Some(at));
        Ok(Members(members.map(|(_, member)| member).collect()))
    }

    /// Those of an object of options.
    ///
    /// # Errors
    /// As [`object`]; 413 for more than options are.
    pub fn of_options(text: &'a [u8], no_object: &'static str) -> Result<Members<'a>, ApiError> {
        let too_many = || {
            ApiError::too_large(format!(
                "an object of options has too many members: at most {OPTIONS_MAX} are accepted"
            ))
        };
        Members::read(text, no_object, OPTIONS_MAX, too_many)
    }

    /// The value of a member, as its text.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

impl<'a> IntoIterator for Members<'a> {
    type Item = (String, &'a RawValue);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Looks at each member of an object, up to the first that is refused.
///
/// # Errors
/// `no_object`; why a member is refused.
pub fn look_at_each<'a>(
    object: &'a str,
    no_object: impl FnOnce() -> ApiError,
    mut look: impl FnMut(String, &'a RawValue) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let mut looked = Ok(());
    let each = |name, value| {
        if looked.is_ok() {
            looked = look(name, value);
        }
    };
    each_member(object, each).map_err(|_| no_object())?;
    looked
}

/// The elements of a list, which are at most `most`.
///
/// # Errors
/// `no_list`, also for an element of another kind; `too_many`.
pub fn elements<'a, T: Deserialize<'a>>(
    list: &'a RawValue,
    most: usize,
    no_list: impl FnOnce() -> ApiError,
    too_many: impl Fn() -> ApiError,
) -> Result<Vec<T>, ApiError> {
    let mut elements = Vec::new();
    let mut kept = Ok(());
    let keep = |element| {
        if kept.is_ok() {
            kept = push_up_to(most, &mut elements, element, &too_many);
        }
    };
    let each = EachElement(keep, PhantomData);
    serde_json::Deserializer::from_str(list.get()).deserialize_seq(each).map_err(|_| no_list())?;
    kept.map(|()| elements)
}

fn push_up_to<T>(most: usize, parts: &mut Vec<T>, part: T, too_many: impl Fn() -> ApiError) -> Result<(), ApiError> {
    if parts.len() == most {
        return Err(too_many());
    }
    parts.push(part);
    Ok(())
}

/// Hands over the elements of a list as they come.
struct EachElement<T, F>(F, PhantomData<T>);

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for EachElement<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            (self.0)(element);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    fn too_many() -> ApiError {
        ApiError::too_large("too many")
    }

    #[test]
    fn no_more_parts_are_kept_than_there_may_be() {
        let words = |text| elements::<String>(list(text), 2, ApiError::not_json, too_many);
        assert_eq!(words(r#"["a","b"]"#).unwrap(), ["a", "b"]);
        assert_eq!(words(r#"["a","b","c"]"#).unwrap_err().reason(), "too many");
        assert_eq!(
            words(r#"["a","b","c",1]"#).unwrap_err().reason(),
            ApiError::not_json().reason(),
            "whatever comes first"
        );
        assert!(words(r#"{"a":1}"#).is_err());
        let names = |text: &'static str| {
            Members::read(text.as_bytes(), BODY, 2, too_many)
                .map(|members| members.into_iter().map(|(name, value)| (name, value.get())).collect::<Vec<_>>())
        };
        assert_eq!(names(r#"{"a":1,"\u0061":[2]}"#).unwrap(), [("a".to_owned(), "[2]")], "the last of two");
        assert_eq!(names(r#"{"a":1,"b":2,"c":3}"#).unwrap_err().reason(), "too many");
        assert_eq!(names("[1]").unwrap_err().reason(), BODY);
        assert_eq!(names("{").unwrap_err().reason(), ApiError::not_json().reason());
    }

    #[test]
    fn members_are_looked_at_up_to_the_first_that_is_refused() {
        let mut seen = Vec::new();
        let refused = look_at_each(r#"{"a":1,"b":2,"c":3}"#, ApiError::not_json, |name, _| {
            seen.push(name);
            if seen.len() == 2 { Err(too_many()) } else { Ok(()) }
        });
        assert_eq!((refused.unwrap_err().reason(), seen), ("too many", vec!["a".to_owned(), "b".to_owned()]));
    }
}

//! Where the members of an object lie, found in one pass over its text and kept.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use super::json::{Datum, Entries, Json};

/// Up to so many members are looked through; more are sorted, so that no document makes looking slow.
const LOOKED_THROUGH_MAX: usize = 32;

/// Why a path leads to no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotThere {
    /// The object that the next step is to be in has no such member.
    Absent,
    /// A step leads into a scalar, or out of an array.
    Astray,
}

/// An object's members.
pub(super) struct Members<'a>(Vec<Member<'a>>);

struct Member<'a> {
    name: Cow<'a, str>,
    value: Json<'a>,
    /// The members of the value, once a path has led there.
    inner: OnceCell<Box<Members<'a>>>,
}

impl<'a> Members<'a> {
    pub fn of(entries: Entries<'a>) -> Members<'a> {
        let mut members = Vec::with_capacity(LOOKED_THROUGH_MAX / 2);
        members.extend(entries.map(|(name, value)| Member { name, value, inner: OnceCell::new() }));
        if members.len() > LOOKED_THROUGH_MAX {
            members.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        }
        Members(members)
    }

    /// The value at a path: its first step, and the rest of them.
    pub fn find(&self, first: &str, rest: &[Arc<str>]) -> Result<Json<'a>, NotThere> {
        let mut members = self;
        let mut name = first;
        let mut rest = rest;
        loop {
            let member = members.get(name).ok_or(NotThere::Absent)?;
            let Some((next, after)) = rest.split_first() else {
                return Ok(member.value);
            };
            let Datum::Object(entries) = member.value.datum() else {
                return walk(member.value, rest);
            };
            members = member.inner.get_or_init(|| Box::new(Members::of(entries)));
            (name, rest) = (next, after);
        }
    }

    fn get(&self, name: &str) -> Option<&Member<'a>> {
        if self.0.len() <= LOOKED_THROUGH_MAX {
            return self.0.iter().find(|member| member.name == name);
        }
        let place = self.0.binary_search_by(|member| (*member.name).cmp(name));
        place.ok().map(|place| &self.0[place])
    }
}

/// The value that the steps lead to from another; keeps nothing on the way.
pub(super) fn walk<'a>(value: Json<'a>, steps: &[Arc<str>]) -> Result<Json<'a>, NotThere> {
    steps.iter().try_fold(value, |value, step| match value.datum() {
        Datum::Object(mut entries) => {
            entries.find(|(name, _)| *name == **step).map(|(_, value)| value).ok_or(NotThere::Absent)
        }
        Datum::Array(mut elements) => {
            let place = step.parse().map_err(|_| NotThere::Astray)?;
            elements.nth(place).ok_or(NotThere::Astray)
        }
        _ => Err(NotThere::Astray),
    })
}

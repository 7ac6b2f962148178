//! The members of the objects that are open during a scan: which name came before, and what that makes obsolete.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// Up to so many members a name is looked for one by one; a larger object gets a hash table.
const INDEX_ABOVE: usize = 16;

/// A member of an object. Offsets are into the compacted text.
pub(super) struct Member<'a> {
    /// The name, escapes decoded.
    pub name: Cow<'a, str>,
    /// Where the name's opening quote is.
    pub start: usize,
    /// Where the value starts.
    pub value: usize,
    /// Whether a later member has the same name.
    pub repeated: bool,
}

struct Object<'a> {
    /// Where its members start in the list.
    first: usize,
    /// Name -> latest place in the list, once there are many.
    index: HashMap<Cow<'a, str>, usize>,
}

/// The members of all open objects, the outermost object's first.
pub(super) struct Members<'a> {
    list: Vec<Member<'a>>,
    objects: Vec<Object<'a>>,
}

impl<'a> Members<'a> {
    /// With room for what an ordinary document has.
    pub fn new() -> Members<'a> {
        Members { list: Vec::with_capacity(INDEX_ABOVE), objects: Vec::with_capacity(4) }
    }

    /// An object starts.
    pub fn open(&mut self) {
        self.objects.push(Object { first: self.list.len(), index: HashMap::new() });
    }

    /// The innermost object ends: its members are forgotten.
    pub fn close(&mut self) {
        if let Some(object) = self.objects.pop() {
            self.list.truncate(object.first);
        }
    }

    /// The innermost object has one more member. Gives the part of the text that it makes obsolete: an earlier member
    /// of that name, with the comma after it.
    pub fn add(&mut self, member: Member<'a>) -> Option<Range<usize>> {
        let here = member.start;
        let earlier = self.place_of(&member);
        self.list.push(member);
        let earlier = earlier?;
        self.list[earlier].repeated = true;
        let end = self.list.get(earlier + 1).map_or(here, |next| next.start);
        Some(self.list[earlier].start..end)
    }

    /// The place of the latest member of the same name. From now on the index names the new one, which comes next.
    fn place_of(&mut self, new: &Member<'a>) -> Option<usize> {
        let object = self.objects.last_mut()?;
        let members = &self.list[object.first..];
        if members.len() < INDEX_ABOVE {
            return members.iter().rposition(|member| member.name == new.name).map(|place| object.first + place);
        }
        if object.index.is_empty() {
            let places = members.iter().zip(object.first..);
            object.index.extend(places.map(|(member, place)| (member.name.clone(), place)));
        }
        object.index.insert(new.name.clone(), self.list.len())
    }

    /// How many members all open objects have.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The members of the objects that are still open.
    pub fn into_list(self) -> Vec<Member<'a>> {
        self.list
    }
}

//! The `id:` of an event of many subscriptions: all that a reconnect needs that knows the request it was opened with
//! and this text, also after a restart of the server.
//!
//! An `EventSource` says two things when it comes back: its URL and the last `id:`. So the subscriptions that the
//! request named are in the request, and the id has their positions; what was subscribed later is in the id as it was
//! given.
//!
//! `2` + base64url(checksum of what the request named, then a number for each subscription, then for each of those that
//! has a `limit` and goes on how many rows are left of it) + for those that came later `.` + base64url(deflated JSON
//! list). A number says how far a position lies from the one before it of the same database, so subscriptions that are
//! live on one database take a byte each, and a run of equal numbers is said once.

use std::collections::HashMap;
use std::io::{Read, Write};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use seqtide::storage::model::sequence::Sequence;
use serde_json::value::RawValue;

use crate::error::ApiError;

/// What an id begins with: the form of the rest.
const FORM: char = '2';

/// That of ids that said nothing of options and limits.
const EARLIER_FORM: char = '1';

/// Most characters that definitions may take in an id: with 200 positions it stays below the 8 KiB that proxies take in
/// a header.
pub const DEFINITIONS_CHARS_MAX: usize = 4096;

/// Most bytes that they take when they are read again: more are none of ours.
const DEFINITIONS_BYTES_MAX: usize = 1 << 20;

/// What becomes of a subscription when its client comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// Nothing: it is over.
    Never,
    /// It begins as it was asked for: nothing was given so far.
    AsAsked,
    /// It goes on.
    Behind(Progress),
}

/// How far a subscription has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Everything up to here was given.
    pub position: Sequence,
    /// How many rows are left of its `limit`, if it has one.
    pub rows_left: Option<u64>,
}

/// A subscription, as ids know it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its database, or [`ALL_DATABASES`].
    pub db: &'a str,
    /// What it is asked for besides, as text that is equal where that is.
    pub options: &'a str,
    /// Whether it has a `limit`.
    pub has_limit: bool,
}

const NEVER: u128 = 0;
const AS_ASKED: u128 = 1;
/// The first number of a position.
const BEHIND: u128 = 2;

/// Most subscriptions that an id has, of a connection with at most so many: as many that the request named, and as many
/// that came later.
pub fn places_max(subscriptions_max: usize) -> usize {
    2 * subscriptions_max
}

/// What stands in an id's reckoning for all databases: none has this name.
pub const ALL_DATABASES: &str = "";

/// Tells one list of subscriptions from another.
pub fn checksum<'a>(named: impl Iterator<Item = Subject<'a>>) -> u32 {
    let mut sum = 0;
    for text in named.flat_map(|Subject { name, db, options, .. }| [name, db, options]) {
        sum = crc32c::crc32c_append(sum, text.as_bytes());
        sum = crc32c::crc32c_append(sum, &[0]);
    }
    sum
}

/// Whether ids have room for these subscriptions, and give them back.
pub fn fits_into_ids<'a>(definitions: impl Iterator<Item = &'a str>) -> bool {
    let list = listed(definitions);
    list.len() <= DEFINITIONS_BYTES_MAX && encode_list(&list).len() <= DEFINITIONS_CHARS_MAX
}

/// The part of an id that has the subscriptions that came later, as JSON objects.
pub fn encode_definitions<'a>(definitions: impl Iterator<Item = &'a str>) -> String {
    encode_list(&listed(definitions))
}

fn listed<'a>(definitions: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", definitions.collect::<Vec<_>>().join(","))
}

fn encode_list(list: &str) -> String {
    if list == "[]" {
        return String::new();
    }
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::best());
    // A vector takes all of it.
    let written = deflated.write_all(list.as_bytes()).and_then(|()| deflated.finish());
    BASE64.encode(written.unwrap_or_default())
}

/// The id of subscriptions, by their databases, in the order in which they were made.
pub fn encode<'a>(checksum: u32, places: impl Iterator<Item = (&'a str, Resume)>, definitions: &str) -> String {
    let mut bytes = checksum.to_be_bytes().to_vec();
    let (mut numbers, mut rows_left) = (Vec::new(), Vec::new());
    let mut last = HashMap::new();
    for (db, resume) in places {
        numbers.push(match resume {
            Resume::Never => NEVER,
            Resume::AsAsked => AS_ASKED,
            Resume::Behind(progress) => {
                rows_left.extend(progress.rows_left.map(u128::from));
                let position = progress.position.to_integer();
                BEHIND + zigzag(position, last.insert(db, position).unwrap_or(0))
            }
        });
    }
    numbers.append(&mut rows_left);
    for run in numbers.chunk_by(|one, next| one == next) {
        let repeated = u128::from(run.len() > 1);
        write_number(&mut bytes, run[0] << 1 | repeated);
        if repeated == 1 {
            write_number(&mut bytes, run.len() as u128);
        }
    }
    let mut id = format!("{FORM}{}", BASE64.encode(bytes));
    if !definitions.is_empty() {
        id.push('.');
        id.push_str(definitions);
    }
    id
}

/// What an id says.
#[derive(Debug)]
pub struct Resumed {
    checksum: u32,
    numbers: Vec<u128>,
    places_max: usize,
    /// The subscriptions that came later, as they were given.
    pub later: Vec<Box<RawValue>>,
}

impl Resumed {
    /// Reads an id of a connection with at most so many subscriptions.
    ///
    /// # Errors
    /// 400 for what is no id.
    pub fn read(id: &str, subscriptions_max: usize) -> Result<Resumed, ApiError> {
        read(id, places_max(subscriptions_max)).ok_or_else(|| {
            ApiError::bad_request(match id.starts_with(EARLIER_FORM) {
                true => {
                    "`last-event-id` is of an earlier version of the server, and does not say all that is to be known: \
                     leave it out and give each subscription its `since`"
                }
                false => "`last-event-id` is not the id of an event of such a feed",
            })
        })
    }

    /// What becomes of the subscriptions that the request names, and of those that came later.
    ///
    /// # Errors
    /// 400 when the request names others than the id is of.
    pub fn places(&self, named: &[Subject<'_>], later: &[Subject<'_>]) -> Result<Vec<Resume>, ApiError> {
        let is_of_these = checksum(named.iter().copied()) == self.checksum;
        is_of_these.then(|| self.places_of(named.iter().chain(later))).flatten().ok_or_else(|| {
            ApiError::bad_request(
                "`last-event-id` is of a feed that was opened with other subscriptions, or with other options of them: \
                 ask with those it was opened with, or leave it out and give each its `since`",
            )
        })
    }

    /// `None` when the numbers are not of so many, or these are more than there may be.
    fn places_of<'a>(&self, subjects: impl Iterator<Item = &'a Subject<'a>> + Clone) -> Option<Vec<Resume>> {
        let count = Some(subjects.clone().count()).filter(|count| *count <= self.places_max)?;
        let (numbers, mut rows_left) = self.numbers.split_at_checked(count)?;
        let (mut places, mut last) = (Vec::with_capacity(numbers.len()), HashMap::new());
        for (Subject { db, has_limit, .. }, number) in subjects.zip(numbers) {
            places.push(match *number {
                NEVER => Resume::Never,
                AS_ASKED => Resume::AsAsked,
                number => {
                    let position = unzigzag(number - BEHIND, last.get(db).copied().unwrap_or(0));
                    last.insert(db, position);
                    let mut progress = Progress { position: Sequence::from_integer(position), rows_left: None };
                    if *has_limit {
                        let (rows, rest) = rows_left.split_first()?;
                        (progress.rows_left, rows_left) = (Some(u64::try_from(*rows).ok()?), rest);
                    }
                    Resume::Behind(progress)
                }
            });
        }
        rows_left.is_empty().then_some(places)
    }
}

fn read(id: &str, places_max: usize) -> Option<Resumed> {
    // Each may have what is left of a limit besides.
    let numbers_max = 2 * places_max;
    let (places, later) = id.strip_prefix(FORM)?.split_once('.').unwrap_or((&id[FORM.len_utf8()..], ""));
    let places = BASE64.decode(places).ok()?;
    let (checksum, mut rest) = places.split_first_chunk::<4>()?;
    let mut numbers = Vec::new();
    while !rest.is_empty() {
        let number = read_number(&mut rest)?;
        let times = if number & 1 == 1 { usize::try_from(read_number(&mut rest)?).ok()? } else { 1 };
        if times > numbers_max - numbers.len() {
            return None;
        }
        numbers.extend(std::iter::repeat_n(number >> 1, times));
    }
    let later = if later.is_empty() { Vec::new() } else { read_definitions(later)? };
    Some(Resumed { checksum: u32::from_be_bytes(*checksum), numbers, places_max, later })
}

fn read_definitions(text: &str) -> Option<Vec<Box<RawValue>>> {
    let mut json = String::new();
    let deflated = BASE64.decode(text).ok()?;
    DeflateDecoder::new(&*deflated).take(DEFINITIONS_BYTES_MAX as u64).read_to_string(&mut json).ok()?;
    serde_json::from_str(&json).ok()
}

/// How far a number lies from another, as one that is small where they are near.
fn zigzag(number: u64, from: u64) -> u128 {
    let away = u128::from(number.abs_diff(from)) << 1;
    if number >= from { away } else { away - 1 }
}

fn unzigzag(away: u128, from: u64) -> u64 {
    let distance = u64::try_from(away.div_ceil(2)).unwrap_or(u64::MAX);
    if away.is_multiple_of(2) { from.saturating_add(distance) } else { from.saturating_sub(distance) }
}

/// Seven bits a byte, the lowest first; all but the last have the eighth set.
fn write_number(out: &mut Vec<u8>, mut number: u128) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The most bytes a number takes: 67 bits.
const NUMBER_BYTES_MAX: usize = 10;

fn read_number(from: &mut &[u8]) -> Option<u128> {
    let mut number = 0;
    for at in 0..NUMBER_BYTES_MAX {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= u128::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    type Named<'a> = Vec<(&'a str, &'a str, Resume)>;

    fn at(number: u64) -> Resume {
        Resume::Behind(Progress { position: Sequence::from_integer(number), rows_left: None })
    }

    fn limited(number: u64, rows_left: u64) -> Resume {
        Resume::Behind(Progress { position: Sequence::from_integer(number), rows_left: Some(rows_left) })
    }

    fn subject<'a>(name: &'a str, db: &'a str) -> Subject<'a> {
        Subject { name, db, options: "{}", has_limit: false }
    }

    fn subjects<'a>(of: &Named<'a>) -> Vec<Subject<'a>> {
        let has_limit = |resume: &Resume| matches!(resume, Resume::Behind(Progress { rows_left: Some(_), .. }));
        of.iter().map(|(name, db, resume)| Subject { has_limit: has_limit(resume), ..subject(name, db) }).collect()
    }

    fn id_of(named: &Named, later: &Named) -> String {
        let sum = checksum(subjects(named).into_iter());
        let places = named.iter().chain(later).map(|(_, db, resume)| (*db, *resume));
        let definitions: Vec<String> =
            later.iter().map(|(name, db, _)| format!("{{\"subscribe\":\"{name}\",\"db\":\"{db}\"}}")).collect();
        encode(sum, places, &encode_definitions(definitions.iter().map(String::as_str)))
    }

    fn assert_comes_back(named: &Named, later: &Named) {
        let resumed = Resumed::read(&id_of(named, later), 200).unwrap();
        assert_eq!(resumed.later.len(), later.len());
        let expected: Vec<_> = named.iter().chain(later).map(|(_, _, resume)| *resume).collect();
        assert_eq!(resumed.places(&subjects(named), &subjects(later)).unwrap(), expected);
    }

    #[test]
    fn places_come_back() {
        let far = at((255 << 45) + (1 << 45) - 1);
        assert_comes_back(&vec![], &vec![]);
        assert_comes_back(&vec![("a", "x", at(0)), ("b", "x", Resume::Never), ("c", "y", far)], &vec![]);
        assert_comes_back(&vec![("a", "x", far), ("b", "x", at(0))], &vec![("é", "y", at(7))]);
        assert_comes_back(&vec![("a", "x", Resume::AsAsked)], &vec![("b", "x", at(12)), ("c", "x", at(12))]);
        assert_comes_back(
            &vec![("a", "x", limited(5, 0)), ("b", "x", at(5)), ("c", "x", Resume::Never)],
            &vec![("d", "y", limited(7, u64::MAX)), ("e", "x", limited(7, u64::MAX))],
        );
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        let id = id_of(&vec![("a", "x", at(5)), ("b", "x", at(5))], &vec![("c", "y", at(1))]);
        for wrong in ["", "2", "21", "7", "é", "2AAAA", &id[1..], &id[..id.len() - 4], &format!("3{}", &id[1..])] {
            assert!(Resumed::read(wrong, 200).is_err(), "{wrong:?}");
        }
        let earlier = Resumed::read(&format!("1{}", &id[1..]), 200).unwrap_err();
        assert!(earlier.reason().contains("of an earlier version"), "{}", earlier.reason());
        let resumed = Resumed::read(&id, 3).unwrap();
        let (a, b, c) = (subject("a", "x"), subject("b", "x"), subject("c", "y"));
        assert!(resumed.places(&[a, b], &[c]).is_ok());
        assert!(Resumed::read(&id, 1).unwrap().places(&[a, b], &[c]).is_err(), "more than there may be");
        let repeated = encode(0, std::iter::repeat_n(("x", Resume::Never), 13), "");
        assert!(Resumed::read(&repeated, 3).is_err(), "more numbers than of so many");
        let others = [
            [a, subject("b", "y")],
            [b, a],
            [a, Subject { options: "{\"prefix\":\"p\"}", ..b }],
            [a, Subject { has_limit: true, ..b }],
        ];
        for other in others {
            assert!(resumed.places(&other, &[c]).is_err(), "{other:?}");
        }
        assert!(resumed.places(&[a], &[b, c]).is_err());
        assert!(resumed.places(&[a, b], &[c, c]).is_err());
    }

    #[test]
    fn what_fits_into_ids_is_given_back_and_no_more_than_that() {
        // Short as an id has it, and long.
        let repeating = |bytes: usize| format!("{{\"doc_ids\":[\"{}\"]}}", "a".repeat(bytes));
        for (definitions, fits) in [
            (vec![repeating(DEFINITIONS_BYTES_MAX - 100)], true),
            (vec![repeating(DEFINITIONS_BYTES_MAX)], false),
            (vec![repeating(DEFINITIONS_BYTES_MAX / 2 - 100); 2], true),
            (vec![repeating(DEFINITIONS_BYTES_MAX / 2); 2], false),
        ] {
            let definitions = || definitions.iter().map(String::as_str);
            assert_eq!(fits_into_ids(definitions()), fits);
            let given_back = read_definitions(&encode_definitions(definitions()));
            let expected: Vec<_> = definitions().collect();
            let is_given_back =
                given_back.is_some_and(|list| list.iter().map(|one| one.get()).eq(expected.iter().copied()));
            assert_eq!(is_given_back, fits);
        }
    }

    /// The figures of docs/subscriptions.md.
    #[test]
    fn an_id_of_a_hundred_is_short() {
        let names: Vec<String> = (0..100).map(|number| format!("subscription-{number}")).collect();
        let dbs: Vec<String> = (0..100).map(|number| format!("database-{number}")).collect();
        let of = |db: &dyn Fn(usize) -> usize, seq: &dyn Fn(usize) -> u64| -> usize {
            let list: Named = (0..100).map(|n| (&*names[n], &*dbs[db(n)], at(seq(n)))).collect();
            id_of(&list, &vec![]).len()
        };
        let live_on_four = of(&|n| n % 4, &|n| 1_000_000 + n as u64 % 4);
        let behind_each_other = of(&|_| 0, &|n| 1_000_000 + n as u64 * 37 % 60);
        let a_database_each = of(&|n| n, &|n| 1_000_000 + n as u64);
        assert_eq!([live_on_four, behind_each_other, a_database_each], [31, 195, 540]);
        let added: Named = (0..100).map(|n| (&*names[n], &*dbs[n], at(1_000_000 + n as u64))).collect();
        assert_eq!(id_of(&vec![], &added).len(), 1203);
    }
}

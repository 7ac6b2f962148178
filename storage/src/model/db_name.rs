//! Names of databases, and of the folders they lie in.

use std::fmt;
use std::sync::Arc;

/// The longest name, in bytes, as CouchDB has it.
pub const DB_NAME_MAX_BYTES: usize = 238;

/// The longest name of a file, in bytes, on any usual file system.
const FOLDER_MAX_BYTES: usize = 255;

/// A database's name: a lower-case letter, then `a-z 0-9 _ $ ( ) + - /`.
///
/// Source: CouchDB `couch_db.erl` `?DBNAME_REGEX`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DbName(Arc<str>);

impl DbName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`DbNameError`].
    pub fn parse(text: &str) -> Result<DbName, DbNameError> {
        const SYSTEM: [&str; 3] = ["_users", "_replicator", "_global_changes"];
        let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_$()+-/".contains(&byte);
        let starts_well = text.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
        if !(SYSTEM.contains(&text) || starts_well && text.bytes().all(legal)) {
            return Err(DbNameError::Illegal { name: text.to_owned() });
        }
        let folder_bytes: usize = text.bytes().map(|byte| if is_plain(byte) { 1 } else { ESCAPED_BYTES }).sum();
        if text.len() > DB_NAME_MAX_BYTES || folder_bytes > FOLDER_MAX_BYTES {
            return Err(DbNameError::TooLong { name: text.to_owned() });
        }
        Ok(DbName(text.into()))
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as a folder's name: bytes other than letters, digits, `_` and `-` as `%` and two hex digits.
    pub fn folder(&self) -> String {
        let mut out = String::with_capacity(self.0.len());
        for byte in self.0.bytes() {
            if is_plain(byte) {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02x}"));
            }
        }
        out
    }

    /// What a folder must be called to be a database's, for people.
    pub const FOLDERS: &str = "a database's folder is called as the database is, in lower case, with %xx for what is no letter, digit, _ or -";

    /// Reads a folder's name back; `None` when no database's folder is called so.
    pub fn from_folder(folder: &str) -> Option<DbName> {
        let mut bytes = Vec::with_capacity(folder.len());
        let mut rest = folder.as_bytes();
        while let [first, tail @ ..] = rest {
            if *first != b'%' {
                bytes.push(*first);
                rest = tail;
                continue;
            }
            let (digits, tail) = tail.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = tail;
        }
        let name = DbName::parse(&String::from_utf8(bytes).ok()?).ok()?;
        (name.folder() == folder).then_some(name)
    }
}

/// Whether a byte of a name is the same in the name of its folder; others are escaped.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// What an escaped byte takes.
const ESCAPED_BYTES: usize = "%2f".len();

impl fmt::Display for DbName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for DbName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Why a database's name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DbNameError {
    /// A character that may not be there.
    #[error(
        "Name: '{name}'. Only lowercase characters (a-z), digits (0-9), and any of the characters _, $, (, ), +, -, and / are allowed. Must begin with a letter."
    )]
    Illegal {
        /// The name as given.
        name: String,
    },
    /// Longer than [`DB_NAME_MAX_BYTES`], or than its folder's name may be.
    #[error(
        "At least one path segment of `{name}` is too long: a name has at most {DB_NAME_MAX_BYTES} bytes, and {FOLDER_MAX_BYTES} where each of $ ( ) + / counts as {ESCAPED_BYTES}."
    )]
    TooLong {
        /// The name as given.
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_follow_couchdbs_rules() {
        for name in ["a", "a/b", "x_$()+-/9", "_users"] {
            assert_eq!(DbName::parse(name).unwrap().as_str(), name);
        }
        for name in ["", "A", "1a", "_x", "a.b", "a b", "é"] {
            assert!(matches!(DbName::parse(name), Err(DbNameError::Illegal { .. })), "{name}");
        }
        for (longest, too_long) in [("a".repeat(238), "a".repeat(239)), (["a/"; 63].concat(), ["a/"; 64].concat())] {
            assert!(DbName::parse(&longest).is_ok());
            assert!(matches!(DbName::parse(&too_long), Err(DbNameError::TooLong { .. })));
        }
    }

    #[test]
    fn folders_of_others_are_not_taken_for_databases() {
        for folder in ["A", "%41", "a%2", "a%zz", "lost+found", "a.tmp", ""] {
            assert_eq!(DbName::from_folder(folder), None, "{folder}");
        }
    }

    proptest! {
        #[test]
        fn folder_names_round_trip(name in "[a-z]([a-z0-9_-]{0,9}[$()+/]?){0,24}") {
            let Ok(name) = DbName::parse(&name) else {
                prop_assert!(name.len() > 238 || DbName(name.into()).folder().len() > 255);
                return Ok(());
            };
            prop_assert!(name.folder().len() <= 255);
            prop_assert_eq!(DbName::from_folder(&name.folder()), Some(name));
        }
    }
}

//! Settings laid over each other as TOML tables: defaults, then the file, then variables and flags.

use std::path::Path;

use toml::{Table, Value};

use super::error::ConfigError;
use super::keys;

/// Lays `over` on `base`: a value replaces the one below it, a section is laid on the section below it.
pub fn overlay(base: &mut Table, over: Table) {
    for (name, value) in over {
        match (base.get_mut(&name), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => {
                base.insert(name, value);
            }
        }
    }
}

/// The value of a key such as `limits.nesting_max`.
pub fn value_at<'t>(table: &'t Table, key: &str) -> Option<&'t Value> {
    match key.split_once('.') {
        Some((section, name)) => table.get(section)?.get(name),
        None => table.get(key),
    }
}

/// Reads a configuration file.
///
/// # Errors
/// When it cannot be read, is not TOML or holds a key that is none of ours.
pub fn read_file(path: &Path) -> Result<Table, ConfigError> {
    let file = || path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|cause| ConfigError::Unreadable { file: file(), cause })?;
    let table: Table = toml::from_str(&text).map_err(|error| {
        let (line, reason) = syntax_error(&text, &error);
        ConfigError::Syntax { file: file(), line, reason }
    })?;
    if let Some((key, hint)) = keys::unknown_in(&table) {
        return Err(ConfigError::UnknownKey { file: file(), key, hint });
    }
    match keys::no_section_in(&table) {
        Some(name) => {
            let reason = format!("{name:?} is a section: a line [{name}], and below it a line for each of its keys");
            Err(ConfigError::WrongInFile { file: file(), reason })
        }
        None => Ok(table),
    }
}

/// In which line a text is not TOML, and what is wrong there. The parser takes a text without quotes for a number or a
/// boolean.
fn syntax_error(text: &str, error: &toml::de::Error) -> (usize, String) {
    let number = line_of(text, error.span().map_or(0, |span| span.start));
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    let mut reason = one_line(error.message());
    let value = line.split_once('=').map_or("", |(_, value)| value.trim());
    let is_number = value.split('#').next().is_some_and(|value| value.trim().parse::<f64>().is_ok());
    if !value.is_empty() && !is_number && !value.starts_with(['"', '\'', '[', '{']) {
        reason.push_str(&format!(", in `{line}`: a text stands in quotes"));
    }
    (number, reason)
}

/// A TOML error's text, which puts the key on a line of its own, as one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_keeps_what_the_layer_above_does_not_set() {
        let mut base: Table = toml::from_str("a = 1\n[s]\nx = 1\ny = 1").unwrap();
        overlay(&mut base, toml::from_str("[s]\ny = 2").unwrap());
        assert_eq!(base, toml::from_str("a = 1\n[s]\nx = 1\ny = 2").unwrap());
    }

    #[test]
    fn of_a_text_without_quotes_it_is_said_that_they_are_missing() {
        let said = |text: &str| syntax_error(text, &toml::from_str::<Table>(text).unwrap_err()).1;
        for line in ["durability = full", "data = ./x", "listen = 127.0.0.1:7721"] {
            let text = format!("workers = 1\n{line}\n");
            assert!(said(&text).ends_with(&format!(", in `{line}`: a text stands in quotes")), "{}", said(&text));
        }
        let (twice, large) = ("workers = 1\nworkers = 2", "workers = 99999999999999999999 # many");
        for other in ["data = \"x", "data", "data =", "[limits", twice, large] {
            assert!(!said(other).contains("quotes:") && !said(other).contains("stands in quotes"), "{}", said(other));
        }
    }

    #[test]
    fn a_line_is_counted_from_one() {
        assert_eq!((line_of("ab\ncd", 1), line_of("ab\ncd", 3)), (1, 2));
    }
}

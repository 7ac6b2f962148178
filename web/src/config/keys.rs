//! The names of one setting: `limits.nesting_max` in the file, `--limits-nesting-max` on the command line and
//! `SEQTIDE_LIMITS_NESTING_MAX` in the environment.

use std::ffi::OsString;

use toml::{Table, Value};

use super::defaults;
use super::error::ConfigError;

/// What every variable of ours begins with.
const PREFIX: &str = "SEQTIDE_";

/// The option that names the configuration file; the only one that is no key of that file.
pub const CONFIG: &str = "config";

/// The flag of a key, without its dashes in front.
pub fn flag(key: &str) -> String {
    key.replace(['.', '_'], "-")
}

/// The environment variable of a key.
pub fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_uppercase())
}

/// Refuses a `SEQTIDE_` variable that sets nothing: it is a misspelt setting, which must not pass in silence.
pub fn refuse_unknown_variables(names: impl IntoIterator<Item = OsString>) -> Result<(), ConfigError> {
    let known: Vec<String> = settings().iter().map(String::as_str).chain([CONFIG]).map(variable).collect();
    for name in names.into_iter().map(|name| name.to_string_lossy().into_owned()) {
        if name.starts_with(PREFIX) && !known.contains(&name) {
            return Err(ConfigError::UnknownVariable { nearest: nearest(&name, known), name });
        }
    }
    Ok(())
}

/// The first key of a file's table that is none of ours, and the nearest that is.
pub fn unknown_in(file: &Table) -> Option<(String, String)> {
    let unknown = first_unknown(file, defaults::table(), "")?;
    let sections = defaults::table().iter().filter(|(_, value)| value.is_table()).map(|(name, _)| name.clone());
    let nearest = nearest(&unknown, settings().into_iter().chain(sections));
    Some((unknown, nearest))
}

/// Every key there is, with its section.
fn settings() -> Vec<String> {
    let mut keys = Vec::new();
    for (name, value) in defaults::table() {
        match value {
            Value::Table(section) => keys.extend(section.keys().map(|key| format!("{name}.{key}"))),
            _ => keys.push(name.clone()),
        }
    }
    keys
}

fn first_unknown(table: &Table, known: &Table, section: &str) -> Option<String> {
    table.iter().find_map(|(name, value)| match (value, known.get(name)) {
        (_, None) => Some(format!("{section}{name}")),
        (Value::Table(inner), Some(Value::Table(known))) => first_unknown(inner, known, &format!("{name}.")),
        _ => None,
    })
}

fn nearest(name: &str, known: impl IntoIterator<Item = String>) -> String {
    let closeness = |candidate: &String| strsim::normalized_damerau_levenshtein(name, candidate);
    known.into_iter().max_by(|a, b| closeness(a).total_cmp(&closeness(b))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(text: &str) -> Option<(String, String)> {
        unknown_in(&toml::from_str(text).unwrap())
    }

    #[test]
    fn one_key_has_one_flag_and_one_variable() {
        assert_eq!(flag("limits.nesting_max"), "limits-nesting-max");
        assert_eq!(variable("limits.nesting_max"), "SEQTIDE_LIMITS_NESTING_MAX");
    }

    #[test]
    fn an_unknown_key_is_named_with_its_section() {
        let (name, nearest) = unknown("[limits]\nnestin_max = 1").unwrap();
        assert_eq!((name.as_str(), nearest.as_str()), ("limits.nestin_max", "limits.nesting_max"));
    }

    #[test]
    fn an_unknown_section_is_unknown_even_when_empty() {
        let (name, nearest) = unknown("[limts]").unwrap();
        assert_eq!((name.as_str(), nearest.as_str()), ("limts", "limits"));
    }

    #[test]
    fn a_key_in_the_wrong_section_is_unknown() {
        assert_eq!(unknown("nesting_max = 1").unwrap().1, "limits.nesting_max");
    }

    #[test]
    fn the_config_option_is_a_variable_but_no_key() {
        assert!(refuse_unknown_variables(["SEQTIDE_CONFIG".into()]).is_ok());
        assert!(unknown("config = 'other.toml'").is_some());
    }

    #[test]
    fn variables_of_others_are_not_looked_at() {
        assert!(refuse_unknown_variables(["PATH".into(), "SEQTIDES".into()]).is_ok());
    }
}

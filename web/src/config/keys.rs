//! The names of one setting: `limits.nesting_max` in the file, `--limits-nesting-max` on the command line and
//! `SEQTIDE_LIMITS_NESTING_MAX` in the environment.

use std::ffi::OsString;

use toml::{Table, Value};

use super::defaults;
use super::error::ConfigError;
use crate::nearest::nearest;

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
            let hint = nearest(&name, known).map(|nearest| format!(", the nearest known one is {nearest}"));
            return Err(ConfigError::UnknownVariable { name, hint: hint.unwrap_or_default() });
        }
    }
    Ok(())
}

/// The first key of a file's table that is none of ours, and a hint at what was meant.
pub fn unknown_in(file: &Table) -> Option<(String, String)> {
    let unknown = first_unknown(file, defaults::table(), "")?;
    let hint = match unknown.rsplit_once('.') {
        // All that follows a section's head is of that section.
        Some((_, name)) if defaults::table().get(name).is_some_and(|value| !value.is_table()) => {
            format!(", {name:?} stands above all sections")
        }
        _ => {
            let sections = defaults::table().iter().filter(|(_, value)| value.is_table()).map(|(name, _)| name.clone());
            let nearest = nearest(&unknown, settings().into_iter().chain(sections));
            nearest.map(|nearest| format!(", the nearest known one is {nearest:?}")).unwrap_or_default()
        }
    };
    Some((unknown, hint))
}

/// The first name in a file's table that is a section's, and stands for something else.
pub fn no_section_in(file: &Table) -> Option<&str> {
    let is_section = |name: &str| defaults::table().get(name).is_some_and(Value::is_table);
    file.iter().find_map(|(name, value)| (is_section(name) && !value.is_table()).then_some(name.as_str()))
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
        let (name, hint) = unknown("[limits]\nnestin_max = 1").unwrap();
        assert_eq!((&*name, &*hint), ("limits.nestin_max", ", the nearest known one is \"limits.nesting_max\""));
    }

    #[test]
    fn an_unknown_section_is_unknown_even_when_empty() {
        let (name, hint) = unknown("[limts]").unwrap();
        assert_eq!((&*name, &*hint), ("limts", ", the nearest known one is \"limits\""));
    }

    #[test]
    fn what_stands_in_the_place_of_a_section_is_found() {
        for (text, found) in [("limits = 5", "limits"), ("feeds = \"x\"", "feeds"), ("[[limits]]", "limits")] {
            assert_eq!(no_section_in(&toml::from_str(text).unwrap()), Some(found));
        }
        assert_eq!(no_section_in(&toml::from_str("[limits]\nnesting_max = 1").unwrap()), None);
    }

    #[test]
    fn a_key_in_the_wrong_section_is_unknown() {
        assert_eq!(unknown("nesting_max = 1").unwrap().1, ", the nearest known one is \"limits.nesting_max\"");
        let (name, hint) = unknown("[limits]\nfeeds_max = 5\ndata = 'x'").unwrap();
        assert_eq!((&*name, &*hint), ("limits.data", ", \"data\" stands above all sections"));
    }

    #[test]
    fn where_nothing_is_near_nothing_is_named() {
        assert_eq!(unknown("zzz = 1").unwrap().1, "");
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

//! The configuration as a commented TOML file: what `--print-config` prints and `--config` reads.

use std::fmt::Write;

use super::{Config, cli, layers};

impl Config {
    /// Every key with its value, under a comment that says what it is.
    ///
    /// # Panics
    /// When a configuration built by hand holds what TOML cannot: a path that is not UTF-8, a number above `i64::MAX`.
    pub fn to_commented_toml(&self) -> String {
        let table = self.to_table();
        let (mut text, mut section) = (String::new(), String::new());
        for option in cli::options() {
            let key = option.get_id().as_str();
            let Some(value) = layers::value_at(&table, key) else {
                continue;
            };
            let (prefix, name) = key.rsplit_once('.').unwrap_or(("", key));
            if section != prefix {
                prefix.clone_into(&mut section);
                let _ = writeln!(text, "[{section}]\n");
            }
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "# {help}\n{name} = {value}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_an_option_and_is_printed() {
        let config = Config::default();
        let printed: toml::Table = toml::from_str(&config.to_commented_toml()).unwrap();
        assert_eq!(printed, config.to_table());
    }

    #[test]
    fn every_printed_key_has_a_comment() {
        let text = Config::default().to_commented_toml();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[1].contains(" = ") && !pair[1].starts_with('#')) {
            assert!(pair[0].starts_with("# ") && pair[0].contains("[default: "), "{}", pair[1]);
        }
    }
}

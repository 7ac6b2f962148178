//! Regular expressions, as `$regex` takes them.

use std::hash::{Hash, Hasher};

use regex::{Regex, RegexBuilder};

use super::limits::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX};

/// A compiled regular expression. It runs in time linear in the text: no expression can hold up a feed.
///
/// CouchDB uses PCRE, on bytes. What differs here:
/// - characters, not bytes: `.` matches `é`, and `\w`, `\d`, `\s`, `\b` and `(?i)` know all of Unicode
///   (`(?-u:\w)` is ASCII's);
/// - refused: look-around (`(?=`, `(?!`, `(?<=`, `(?<!`), back-references (`\1`, `\k<name>`), atomic groups,
///   conditionals, `\K`, `\Q…\E`, `\R`, `\h`, `\Z`, `{,3}`;
/// - taken in another sense: `$` matches at the end only, not before a last newline; `a++` is `a+`; `(?R)` is a flag,
///   not recursion; `\<` and `\>` are the ends of words; in `[…]` the signs `&&`, `--` and `~~` combine sets.
#[derive(Debug)]
pub(super) struct Pattern(Regex);

impl Pattern {
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn compile(pattern: &str) -> Result<Pattern, String> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(format!("longer than {PATTERN_BYTES_MAX} bytes"));
        }
        let mut builder = RegexBuilder::new(pattern);
        builder.size_limit(PATTERN_COMPILED_BYTES_MAX).dfa_size_limit(PATTERN_COMPILED_BYTES_MAX);
        builder.build().map(Pattern).map_err(|error| match error {
            regex::Error::CompiledTooBig(max) => format!("compiled, it is larger than {max} bytes"),
            // The explanation's last line is the reason; those before it draw where.
            other => {
                let text = other.to_string();
                let reason = text.lines().next_back().unwrap_or_default();
                reason.strip_prefix("error: ").unwrap_or(reason).to_owned()
            }
        })
    }

    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

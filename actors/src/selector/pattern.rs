//! Regular expressions, as `$regex` takes them.

use std::hash::{Hash, Hasher};

use regex_automata::meta::{BuildError, Builder, Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Hir, HirKind};

use super::limits::{PATTERN_BYTES_MAX, PATTERN_CACHE_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX};

/// A compiled regular expression. It runs in time linear in the text, for each of its places.
///
/// CouchDB uses PCRE, on bytes. What differs here:
/// - characters, not bytes: `.` matches `é`, and `\w`, `\d`, `\s`, `\b` and `(?i)` know all of Unicode
///   (`(?-u:\w)` is ASCII's);
/// - refused: look-around (`(?=`, `(?!`, `(?<=`, `(?<!`), back-references (`\1`, `\k<name>`), atomic groups,
///   conditionals, `\K`, `\Q…\E`, `\R`, `\h`, `\Z`, `{,3}`;
/// - taken in another sense: `$` matches at the end only, not before a last newline; `a++` is `a+`; `(?R)` is a flag,
///   not recursion; `\<` and `\>` are the ends of words; in `[…]` the signs `&&`, `--` and `~~` combine sets.
#[derive(Debug)]
pub(super) struct Pattern {
    text: Box<str>,
    regex: Regex,
    places: usize,
}

impl Pattern {
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn compile(pattern: &str) -> Result<Pattern, String> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(format!("longer than {PATTERN_BYTES_MAX} bytes"));
        }
        // The explanation's last line is the reason; those before it draw where.
        let hir = regex_syntax::parse(pattern).map_err(|error| {
            let text = error.to_string();
            let reason = text.lines().next_back().unwrap_or_default();
            reason.strip_prefix("error: ").unwrap_or(reason).to_owned()
        })?;
        let too_large = |error: BuildError| match error.size_limit() {
            Some(max) => format!("compiled, it is larger than {max} bytes"),
            None => error.to_string(),
        };
        let config = Config::new()
            .which_captures(WhichCaptures::Implicit)
            .nfa_size_limit(Some(PATTERN_COMPILED_BYTES_MAX))
            .hybrid_cache_capacity(PATTERN_CACHE_BYTES_MAX);
        let regex = Builder::new().configure(config).build_from_hir(&hir).map_err(too_large)?;
        Ok(Pattern { text: pattern.into(), regex, places: places(&hir) })
    }

    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// At how many places of it a text may be at once: what a byte of the text costs at most, in steps.
    pub fn places(&self) -> usize {
        self.places
    }

    /// About how many bytes of memory it takes, what is remembered of searches aside.
    pub fn memory_bytes(&self) -> usize {
        self.text.len() + self.regex.memory_usage()
    }
}

/// Its characters, and whatever else stands for a place between them, each as often as it is repeated at most.
fn places(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(_) => 1,
        HirKind::Capture(capture) => places(&capture.sub),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1) as usize;
            places(&repetition.sub).saturating_mul(times)
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().map(places).fold(0, usize::saturating_add),
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_as_often_as_they_repeat() {
        for (pattern, places) in [
            ("", 1),
            ("^$", 2),
            ("abc", 3),
            ("é", 2),
            (r"^o-\d+$", 5),
            ("[a-z]{2,64}", 64),
            ("[a-z]{3,}", 3),
            ("(a|bc)*d?", 4),
            ("((ab){10}c){10}", 210),
            ("(?-u)1[01]{600}x", 602),
        ] {
            assert_eq!(Pattern::compile(pattern).unwrap().places(), places, "{pattern}");
        }
    }
}

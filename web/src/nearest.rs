//! What somebody may have meant who wrote what there is not.

/// Below this nothing is near: two names of five letters that have two in common.
const NEAR: f64 = 0.4;

/// The nearest of the names that there are, if one is near.
pub fn nearest<N: AsRef<str>>(name: &str, known: impl IntoIterator<Item = N>) -> Option<N> {
    let closeness = |known: &str| strsim::normalized_damerau_levenshtein(name, known);
    let known = known.into_iter().map(|known| (closeness(known.as_ref()), known)).filter(|(near, _)| *near >= NEAR);
    known.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_the_one_that_was_meant_or_none() {
        let known = ["since", "limit", "live", "include_docs"];
        let near = |name| nearest(name, known);
        assert_eq!(near("sinse"), Some("since"));
        assert_eq!(near("include_doc"), Some("include_docs"));
        assert_eq!(near("lifes"), Some("live"));
        assert_eq!(near("feed"), None);
        assert_eq!(near(""), None);
    }
}

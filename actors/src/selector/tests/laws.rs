//! Laws of negation, and which selectors are the same.

use proptest::prelude::*;

use super::tree::{Tree, any_body, any_selector};
use super::*;

fn list(name: &str, conditions: &[&Tree]) -> Tree {
    Tree::one(name, Tree::Array(conditions.iter().map(|each| (*each).clone()).collect()))
}

fn not(condition: &Tree) -> Tree {
    Tree::one("$not", condition.clone())
}

fn compiled(tree: &Tree) -> Option<Selector> {
    Selector::from_json(&tree.json(0)).ok()
}

proptest! {
    #[test]
    fn negations_move_down_by_de_morgan(one in any_selector(), other in any_selector()) {
        prop_assert_eq!(compiled(&not(&not(&one))), compiled(&one));
        let neither = compiled(&list("$nor", &[&one, &other]));
        prop_assert_eq!(&neither, &compiled(&not(&list("$or", &[&one, &other]))));
        prop_assert_eq!(&neither, &compiled(&list("$and", &[&not(&one), &not(&other)])));
        let not_both = compiled(&not(&list("$and", &[&one, &other])));
        prop_assert_eq!(not_both, compiled(&list("$or", &[&not(&one), &not(&other)])));
    }

    #[test]
    fn the_order_of_conditions_makes_no_difference(one in any_selector(), other in any_selector(), third in any_selector()) {
        for name in ["$and", "$or", "$nor"] {
            let sorted = compiled(&list(name, &[&one, &other, &third, &one]));
            prop_assert_eq!(&sorted, &compiled(&list(name, &[&third, &one, &other])));
        }
    }

    #[test]
    fn a_document_never_matches_a_selector_and_its_negation(one in any_selector(), body in any_body()) {
        // An empty list of alternatives holds, and so do both it and its negation.
        let has_empty_list = one.json(0).contains("[]");
        let (Some(selector), Some(negation)) = (compiled(&one), compiled(&not(&one))) else {
            return Ok(());
        };
        let document = Document::new("d", &body.json(0));
        prop_assert!(has_empty_list || !(selector.matches(&document.view()) && negation.matches(&document.view())));
    }
}

#[test]
fn selectors_that_ask_the_same_are_equal() {
    let same = |one, other| selector(one) == selector(other);
    assert!(same(r#"{"a":1,"b":{"$gt":2,"$lt":5}}"#, r#"{"$and":[{"b":{"$lt":5}},{"a":{"$eq":1}},{"b":{"$gt":2}}]}"#));
    assert!(same(r#"{"a":{"b":1}}"#, r#"{ "a.b" : { "$eq" : 1 } }"#));
    assert!(same(r#"{"a":{"$in":[1,"x",1.0]}}"#, r#"{"a":{"$in":["x",1]}}"#));
    assert!(same(r#"{"a":{"$regex":"^x"}}"#, r#"{"$not":{"a":{"$not":{"$regex":"^x"}}}}"#));
    assert!(!same(r#"{"a":{"$regex":"^x"}}"#, r#"{"a":{"$regex":"^y"}}"#));
    assert!(!same(r#"{"a":{"$eq":{"b":1,"c":2}}}"#, r#"{"a":{"$eq":{"c":2,"b":1}}}"#));
    assert!(!same(r#"{"a":{"$lt":1}}"#, r#"{"a":{"$gte":1}}"#));
}

#[test]
fn equal_selectors_have_equal_hashes() {
    let kept: std::collections::HashSet<Selector> =
        [r#"{"a":1,"b":{"$regex":"x"}}"#, r#"{"b":{"$regex":"x"},"a":1}"#].map(selector).into();
    assert_eq!(kept.len(), 1);
}

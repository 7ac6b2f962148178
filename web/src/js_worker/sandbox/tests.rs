use std::time::Duration;

use seqtide::functions::protocol::Proposed;

use super::*;

const LIMITS: Limits = Limits { memory_bytes_max: 32 << 20, batch_timeout: Duration::from_millis(500) };

fn raw(json: &str) -> Box<RawValue> {
    serde_json::from_str(json).unwrap()
}

/// Calls functions of a design document, one after the other.
fn sandbox(design: serde_json::Value) -> impl FnMut(&Call) -> Answer {
    let (mut sandbox, design) = (Sandbox::new(LIMITS).unwrap(), design.to_string());
    move |call| sandbox.call(&design, call)
}

fn filter(code: &str, req: &str, docs: &[&str]) -> Answer {
    let design = serde_json::json!({"_id": "_design/d", "filters": {"f": code}});
    let docs = docs.iter().map(|doc| raw(doc)).collect();
    sandbox(design)(&Call::Filter { name: "f".into(), req: raw(req), docs })
}

#[test]
fn a_filter_sees_each_document_and_what_was_asked() {
    let docs = [r#"{"_id":"a","owner":"x"}"#, r#"{"_id":"b","owner":"y"}"#, r#"{"_id":"c","_deleted":true}"#];
    let code = "function (doc, req) { return doc._deleted || doc.owner === req.query.owner; };\n";
    assert_eq!(filter(code, r#"{"query":{"owner":"y"}}"#, &docs), Answer::Passes(vec![false, true, true]));
    assert_eq!(filter("(doc) => doc.owner", "{}", &docs), Answer::Passes(vec![true, true, false]));
}

#[test]
fn a_map_passes_what_it_emits_something_for() {
    let design = serde_json::json!({"views": {"v": {"map": "function (doc) { if (doc.n > 1) emit(doc.n); }"}}});
    let docs = vec![raw(r#"{"n":1}"#), raw(r#"{"n":2}"#)];
    let answer = sandbox(design)(&Call::Map { name: "v".into(), docs });
    assert_eq!(answer, Answer::Passes(vec![false, true]));
}

#[test]
fn validation_allows_or_refuses_with_its_words() {
    let code = r"function (newDoc, oldDoc, userCtx, secObj) {
        if (!newDoc.type) throw({forbidden: 'a type is needed'});
        if (oldDoc && userCtx.roles.indexOf('_admin') < 0) throw({unauthorized: 'admins only'});
        if (newDoc.type === 'odd') throw new Error('odd');
    }";
    let mut sandbox = sandbox(serde_json::json!({"validate_doc_update": code}));
    let pairs = [(r#"{"type":"t"}"#, "null"), ("{}", "null"), (r#"{"type":"t"}"#, "{}"), (r#"{"type":"odd"}"#, "null")];
    let writes = pairs.map(|(new, old)| Proposed { new: raw(new), old: raw(old) }).into();
    let (user, security) = (raw(r#"{"roles":[]}"#), raw("{}"));
    let expected = [
        Verdict::Allowed,
        Verdict::Forbidden("a type is needed".into()),
        Verdict::Unauthorized("admins only".into()),
        Verdict::Failed("Error: odd".into()),
    ];
    assert_eq!(sandbox(&Call::Validate { writes, user, security }), Answer::Verdicts(expected.into()));
}

#[test]
fn modules_of_the_design_document_can_be_required() {
    let design = serde_json::json!({
        "lib": {"a": "exports.limit = require('./b').ten + 1;", "b": "module.exports = {ten: 10};"},
        "filters": {"f": "function (doc) { return doc.n > require('lib/a').limit; }"},
    });
    let docs = vec![raw(r#"{"n":11}"#), raw(r#"{"n":12}"#)];
    let answer = sandbox(design)(&Call::Filter { name: "f".into(), req: raw("{}"), docs });
    assert_eq!(answer, Answer::Passes(vec![false, true]));
}

/// What had failed once was taken for whole from then on: what it was to refuse passed.
#[test]
fn a_module_that_fails_fails_whoever_requires_it_each_time() {
    let code = "function (doc) { const { closed } = require('lib/rules'); if (closed) throw({forbidden: 'closed'}); }";
    for (what, rules, other) in [
        ("does not compile", "exports.fine = 1; oops(", ""),
        ("throws", "exports.fine = 1; throw new Error('no');", ""),
        ("requires what throws", "require('./other'); exports.closed = 1;", "throw new Error('no');"),
        ("requires what is not there", "exports.fine = 1; require('./none');", ""),
        ("is in a circle that fails", "require('./other'); exports.closed = 1;", "require('./rules'); nothing();"),
    ] {
        let mut sandbox =
            sandbox(serde_json::json!({"lib": {"rules": rules, "other": other}, "validate_doc_update": code}));
        for attempt in 0..3 {
            let writes = (0..2).map(|_| Proposed { new: raw("{}"), old: raw("null") }).collect();
            match sandbox(&Call::Validate { writes, user: raw("{}"), security: raw("{}") }) {
                Answer::Failed(_) => {}
                Answer::Verdicts(verdicts) => {
                    let failed = |verdict: &Verdict| matches!(verdict, Verdict::Failed(_));
                    assert!(verdicts.len() == 2 && verdicts.iter().all(failed), "{what}, {attempt}: {verdicts:?}");
                }
                other => panic!("{what}, {attempt}: {other:?}"),
            }
        }
    }
}

/// One that is missing took all that required it along, and they were made anew, endlessly in a circle.
#[test]
fn a_module_may_go_on_without_one_that_fails() {
    let design = serde_json::json!({
        "lib": {
            "a": "globalThis.made = (globalThis.made || 0) + 1;
                  try { require('./none'); } catch {} exports.b = require('./b'); exports.late = 1;",
            "b": "const a = require('./a'); exports.late = () => a.late;",
        },
        "filters": {"f": "function () { return require('lib/a').b.late() === 1 && made === 1; }"},
    });
    let docs = vec![raw("{}"), raw("{}")];
    let answer = sandbox(design)(&Call::Filter { name: "f".into(), req: raw("{}"), docs });
    assert_eq!(answer, Answer::Passes(vec![true, true]));
}

#[test]
fn modules_that_require_each_other_see_what_there_is_so_far() {
    let design = serde_json::json!({
        "lib": {
            "a": "exports.early = 1; exports.b = require('./b'); exports.late = 2;",
            "b": "const a = require('./a'); exports.early = a.early; exports.late = () => a.late;",
        },
        "filters": {"f": "function () { const { b } = require('lib/a'); return b.early === 1 && b.late() === 2; }"},
    });
    let answer = sandbox(design)(&Call::Filter { name: "f".into(), req: raw("{}"), docs: vec![raw("{}")] });
    assert_eq!(answer, Answer::Passes(vec![true]));
}

/// A generator that was to validate allowed everything.
#[test]
fn functions_whose_answer_comes_later_are_refused() {
    for code in ["function* () { throw {forbidden: 'x'}; }", "async () => true", "async function* () {}"] {
        match filter(code, "{}", &["{}"]) {
            Answer::Failed(message) => assert!(message.contains("too late"), "{code}: {message}"),
            other => panic!("{code}: {other:?}"),
        }
    }
}

#[test]
fn what_does_not_work_says_why() {
    for (code, said) in [
        ("function (doc) { return nothing.there; }", "nothing"),
        ("function (doc) {", "SyntaxError"),
        ("5", "filters.f is not a function"),
        ("function () { throw {toString() { throw 1; }, toJSON() { throw 2; }}; }", "cannot be printed"),
    ] {
        match filter(code, "{}", &["{}"]) {
            Answer::Failed(message) => assert!(message.contains(said), "{code}: {message}"),
            other => panic!("{code}: {other:?}"),
        }
    }
    let none = sandbox(serde_json::json!({}))(&Call::Map { name: "v".into(), docs: vec![] });
    assert_eq!(none, Answer::Failed("Error: there is no code at views.v.map".into()));
}

#[test]
fn there_is_nothing_to_reach_the_world_with() {
    let names = "require('x'), std, os, process, fetch, XMLHttpRequest, setTimeout, setInterval, console, print";
    for name in names.split(", ").skip(1) {
        let code = format!("function () {{ return typeof {name} !== 'undefined'; }}");
        assert_eq!(filter(&code, "{}", &["{}"]), Answer::Passes(vec![false]), "{name}");
    }
    let import = "function () { return import('os'); }";
    assert!(matches!(filter(import, "{}", &["{}"]), Answer::Passes(_) | Answer::Failed(_)));
}

#[test]
fn endless_loops_recursion_and_hunger_are_stopped() {
    for (code, stopped) in [
        ("function () { for (;;) {} }", true),
        ("function () { for (;;) { try { for (;;) {} } catch (e) {} } }", true),
        ("function () { /(a+)+$/.test('a'.repeat(40) + 'b'); }", true),
        ("function () { let a = []; for (;;) a.push('x'.repeat(1000) + a.length); }", true),
        ("function f() { return f(); }", false),
        ("function () { throw new Error('x'.repeat(1e6)); }", false),
    ] {
        match (filter(code, "{}", &["{}"]), stopped) {
            (Answer::Stopped(_), true) => {}
            (Answer::Failed(message), false) => assert!(message.len() < 1100, "{code}"),
            (other, _) => panic!("{code}: {other:?}"),
        }
    }
}

#[test]
fn code_that_changes_the_language_changes_it_for_itself_alone() {
    let code = "function (doc) { JSON.parse = null; Array.prototype.push = null; return doc.n; }";
    assert_eq!(filter(code, "{}", &[r#"{"n":0}"#, r#"{"n":1}"#]), Answer::Passes(vec![false, true]));
    assert_eq!(filter("(doc) => doc.n", "{}", &[r#"{"n":1}"#]), Answer::Passes(vec![true]));
}

/// Other filters and all writes of the database failed from then on.
#[test]
fn functions_of_a_design_document_do_not_see_what_others_make_of_the_language() {
    let poison = "function () { Array.prototype[Symbol.iterator] = undefined; Map.prototype.get = null; return true; }";
    let mut sandbox = sandbox(serde_json::json!({
        "filters": {"poison": poison, "plain": "(doc) => [...doc.a].length === 1"},
        "validate_doc_update": "function (doc) { for (const one of doc.a) { if (!one) throw({forbidden: 'no'}); } }",
    }));
    let filter = |name: &str| {
        let docs = vec![raw(r#"{"a":[1]}"#)];
        Call::Filter { name: name.into(), req: raw("{}"), docs }
    };
    assert_eq!(sandbox(&filter("poison")), Answer::Passes(vec![true]));
    assert_eq!(sandbox(&filter("plain")), Answer::Passes(vec![true]));
    let writes = vec![Proposed { new: raw(r#"{"a":[1]}"#), old: raw("null") }];
    let (user, security) = (raw("{}"), raw("{}"));
    let verdicts = sandbox(&Call::Validate { writes, user, security });
    assert_eq!(verdicts, Answer::Verdicts(vec![Verdict::Allowed]));
}

/// A reason cut in the middle of a character was "it changed what calls it".
#[test]
fn half_a_character_is_said_as_the_sign_for_one() {
    let code = "function (doc) { throw({forbidden: 'too long: ' + doc.t.slice(0, 3)}); }";
    let mut validate = sandbox(serde_json::json!({"validate_doc_update": code}));
    let writes = vec![Proposed { new: raw(r#"{"t":"ab😀cd"}"#), old: raw("null") }];
    let verdicts = validate(&Call::Validate { writes, user: raw("{}"), security: raw("{}") });
    assert_eq!(verdicts, Answer::Verdicts(vec![Verdict::Forbidden("too long: ab\u{fffd}".into())]));
    let code = "function (doc) { throw new Error('bad: ' + doc.t.slice(0, 3)); }";
    let failed = filter(code, "{}", &[r#"{"t":"ab😀cd"}"#]);
    assert_eq!(failed, Answer::Failed("Error: bad: ab\u{fffd}".into()));
}

/// Both were taken for a lack of memory, by which a whole request was lost.
#[test]
fn what_is_thrown_is_told_from_a_lack_of_memory() {
    let code = "function (doc) { if (doc.n) throw null; }";
    let mut validate = sandbox(serde_json::json!({"validate_doc_update": code}));
    let writes = ["1", "0", "1"].map(|n| Proposed { new: raw(&format!(r#"{{"n":{n}}}"#)), old: raw("null") });
    let verdicts = validate(&Call::Validate { writes: writes.into(), user: raw("{}"), security: raw("{}") });
    let failed = || Verdict::Failed(NO_MEMORY.into());
    assert_eq!(verdicts, Answer::Verdicts(vec![failed(), Verdict::Allowed, failed()]));
    let printer = filter("function () { throw new Error('the printer is out of memory'); }", "{}", &["{}"]);
    assert_eq!(printer, Answer::Failed("Error: the printer is out of memory".into()));
}

#[test]
fn functions_have_their_realms_however_many_there_are() {
    let filters: serde_json::Map<_, _> =
        (0..3 * REALMS_MAX).map(|n| (n.to_string(), format!("() => {}", n % 2).into())).collect();
    let mut sandbox = sandbox(serde_json::json!({ "filters": filters }));
    for n in (0..3 * REALMS_MAX).chain(0..3) {
        let answer = sandbox(&Call::Filter { name: n.to_string(), req: raw("{}"), docs: vec![raw("{}")] });
        assert_eq!(answer, Answer::Passes(vec![n % 2 == 1]), "{n}");
    }
}

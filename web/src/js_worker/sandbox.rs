//! One design document's functions in an engine of their own.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;
use std::time::Instant;

use rquickjs::{CatchResultExt, Context, Ctx, Function, Persistent, Runtime};
use seqtide::functions::protocol::{Answer, Call, Verdict, shortened};
use serde_json::value::RawValue;

use super::Limits;

/// What `prelude.js` says of a document about which the engine threw `null`.
const NO_MEMORY: &str = "it threw null, or there was no memory left";

/// The engine's stack, in bytes; a process's own has eight times as much.
const STACK_BYTES_MAX: usize = 1 << 20;

/// What a realm takes, in bytes, beside the design document's text.
const REALM_BYTES: usize = 80_000;
/// Functions that have a realm at once, if their design document is small.
const REALMS_MAX: usize = 16;

/// An engine for the functions of a design document.
pub struct Sandbox {
    // Freed before the engine they live in.
    realms: HashMap<String, Realm>,
    runtime: Runtime,
    limits: Limits,
    clock: Rc<Clock>,
}

/// The language as one function finds it: what that changes, it changes for itself alone.
struct Realm {
    // Freed before the context it lives in.
    call: Persistent<Function<'static>>,
    context: Context,
}

impl Realm {
    /// Makes one around a design document's text.
    fn new(runtime: &Runtime, design: &str) -> rquickjs::Result<Realm> {
        let context = Context::full(runtime)?;
        let call = context.with(|ctx| {
            let prelude: Function<'_> = ctx.eval(include_str!("prelude.js"))?;
            let call: Function<'_> = prelude.call((design,))?;
            Ok::<_, rquickjs::Error>(Persistent::save(&ctx, call))
        })?;
        Ok(Realm { call, context })
    }
}

/// How long the call under way may go on.
#[derive(Default)]
struct Clock {
    ends: Cell<Option<Instant>>,
    struck: Cell<bool>,
}

impl Clock {
    fn start(&self, limits: Limits) {
        self.ends.set(Instant::now().checked_add(limits.batch_timeout));
        self.struck.set(false);
    }

    /// Whether time is up.
    fn strikes(&self) -> bool {
        let over = self.ends.get().is_some_and(|end| Instant::now() >= end);
        self.struck.set(self.struck.get() || over);
        over
    }
}

impl Sandbox {
    /// Starts an engine.
    pub fn new(limits: Limits) -> rquickjs::Result<Sandbox> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(limits.memory_bytes_max);
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        let clock = Rc::<Clock>::default();
        let asked = Rc::clone(&clock);
        runtime.set_interrupt_handler(Some(Box::new(move || asked.strikes())));
        Ok(Sandbox { realms: HashMap::new(), runtime, limits, clock })
    }

    /// How much memory it has, in bytes.
    pub fn memory_bytes(&self) -> usize {
        usize::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(usize::MAX)
    }

    /// Runs a function of a design document, the same one each time, whose text this is.
    pub fn call(&mut self, design: &str, call: &Call) -> Answer {
        self.clock.start(self.limits);
        let said = match self.realm_of(design, call) {
            Ok(realm) => realm.context.with(|ctx| realm.run(&ctx, call)),
            Err(error) => Err(format!("its design document could not be loaded: {error}")),
        };
        if self.clock.struck.get() {
            return Answer::Stopped(format!("it took longer than {} ms", self.limits.batch_timeout.as_millis()));
        }
        match said {
            // What one document has left no memory for is no fault of those behind it: each is asked about by itself.
            Ok((kind, message)) if kind == "verdicts" && message.contains(NO_MEMORY) && self.is_exhausted() => {
                Answer::Stopped(format!("it needed more than {} bytes of memory", self.limits.memory_bytes_max))
            }
            Ok((kind, message)) => answer(&kind, &message, self.limits),
            Err(error) => Answer::Stopped(shortened(&error)),
        }
    }

    /// Whether what is kept leaves little memory for what runs.
    fn is_exhausted(&self) -> bool {
        self.runtime.run_gc();
        self.memory_bytes() > self.limits.memory_bytes_max / 2
    }

    fn realm_of(&mut self, design: &str, call: &Call) -> rquickjs::Result<&Realm> {
        let function = match call {
            Call::Filter { name, .. } => format!("filters.{name}"),
            Call::Map { name, .. } => format!("views.{name}"),
            Call::Validate { .. } => "validate_doc_update".to_owned(),
        };
        // Together they take no more than half of what makes the engine start afresh.
        let realms_max = self.limits.resting_bytes_max() / 2 / (REALM_BYTES + design.len());
        if self.realms.len() >= realms_max.clamp(1, REALMS_MAX) && !self.realms.contains_key(&function) {
            self.realms.clear();
        }
        Ok(match self.realms.entry(function) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(slot) => slot.insert(Realm::new(&self.runtime, design)?),
        })
    }
}

impl Realm {
    fn run(&self, ctx: &Ctx<'_>, call: &Call) -> Result<(String, String), String> {
        let run = self.call.clone().restore(ctx).map_err(|error| error.to_string())?;
        let texts = |docs: &[Box<RawValue>]| docs.iter().map(|doc| doc.get().to_owned()).collect::<Vec<String>>();
        let said = match call {
            Call::Filter { name, req, docs } => run.call(("filter", name.as_str(), req.get(), texts(docs))),
            Call::Map { name, docs } => run.call(("map", name.as_str(), texts(docs))),
            Call::Validate { writes, user, security } => {
                // New and old in turn.
                let both = writes.iter().flat_map(|write| [&write.new, &write.old]);
                let both: Vec<String> = both.map(|doc| doc.get().to_owned()).collect();
                run.call(("validate", both, user.get(), security.get()))
            }
        };
        let said: Vec<String> = said.catch(ctx).map_err(|error| error.to_string())?;
        match <[String; 2]>::try_from(said) {
            Ok([kind, message]) => Ok((kind, message)),
            Err(_) => Err("it changed what calls it".to_owned()),
        }
    }
}

fn answer(kind: &str, message: &str, limits: Limits) -> Answer {
    match kind {
        "passes" => Answer::Passes(message.bytes().map(|verdict| verdict == b'1').collect()),
        "verdicts" => match serde_json::from_str::<Vec<Verdict>>(message) {
            Ok(verdicts) => Answer::Verdicts(verdicts.into_iter().map(short).collect()),
            Err(_) => Answer::Failed("it changed what calls it".to_owned()),
        },
        "exhausted" => {
            Answer::Stopped(format!("it needed more than {} bytes of memory, or threw null", limits.memory_bytes_max))
        }
        _ => Answer::Failed(shortened(message)),
    }
}

fn short(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Allowed => Verdict::Allowed,
        Verdict::Forbidden(reason) => Verdict::Forbidden(shortened(&reason)),
        Verdict::Unauthorized(reason) => Verdict::Unauthorized(shortened(&reason)),
        Verdict::Failed(message) => Verdict::Failed(shortened(&message)),
    }
}

#[cfg(test)]
mod tests {
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
        let pairs =
            [(r#"{"type":"t"}"#, "null"), ("{}", "null"), (r#"{"type":"t"}"#, "{}"), (r#"{"type":"odd"}"#, "null")];
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
        let code =
            "function (doc) { const { closed } = require('lib/rules'); if (closed) throw({forbidden: 'closed'}); }";
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
        let poison =
            "function () { Array.prototype[Symbol.iterator] = undefined; Map.prototype.get = null; return true; }";
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
}

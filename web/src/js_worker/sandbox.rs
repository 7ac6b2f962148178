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
mod tests;

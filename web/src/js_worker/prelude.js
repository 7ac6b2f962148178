// What a function of a design document finds around it, and how it is called. Evaluated before any of its code, in a
// realm of its own: what it changes of the language, it changes for itself alone. What is taken here works nevertheless.
(function (designText) {
  'use strict';

  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { getPrototypeOf, hasOwn } = Object;
  const evaluate = eval;
  const { apply } = Reflect;
  const text = String;
  const { toWellFormed } = text.prototype;
  const TOO_LATE = 'its answer would come too late';
  // What functions of these kinds give is no answer yet.
  const unfinished = [function* () {}, async function () {}, async function* () {}].map(getPrototypeOf);

  // The design document comes anew for each use: no function sees what another one did to it.
  const design = () => parse(designText);
  const compiled = new Map();
  const modules = new Map();
  let emitted = false;

  class Missing extends Error {}
  const Later = Promise;
  const Internal = InternalError;

  function sourceAt(path) {
    let place = design();
    for (const step of path) {
      place = place !== null && typeof place === 'object' && hasOwn(place, step) ? place[step] : undefined;
    }
    if (typeof place !== 'string') {
      throw new Missing('there is no code at ' + path.join('.'));
    }
    return place;
  }

  // CommonJS: './' and '../' start at the module that asks, everything else at the top of the design document.
  function resolve(name, from) {
    const steps = text(name).split('/');
    const path = steps[0] === '.' || steps[0] === '..' ? from.slice(0, -1) : [];
    for (const step of steps) {
      if (step === '..') {
        path.pop();
      } else if (step !== '.' && step !== '') {
        path.push(step);
      }
    }
    return path;
  }

  function requireFrom(from) {
    return function require(name) {
      const path = resolve(name, from);
      const key = path.join('/');
      if (modules.has(key)) {
        return modules.get(key).exports;
      }
      const module = { id: key, exports: {} };
      const before = modules.size;
      try {
        const body = evaluate('(function (exports, module, require) {' + sourceAt(path) + '\n})');
        // Known before it runs: modules may require each other in a circle.
        modules.set(key, module);
        body(module.exports, module, requireFrom(path));
      } catch (failed) {
        // Nobody is to go on with what is half made, nor with what came behind it, and may have something of it.
        for (const known of [...modules.keys()].slice(before)) {
          modules.delete(known);
        }
        throw failed;
      }
      return module.exports;
    };
  }

  function functionAt(path) {
    const key = path.join('.');
    if (!compiled.has(key)) {
      compiled.set(key, compile(path, key));
    }
    const { made, require, failed } = compiled.get(key);
    if (failed !== undefined) {
      throw failed;
    }
    globalThis.require = require;
    // As CouchDB calls them: `this` is the design document, the same for all documents of a batch.
    const self = design();
    return (...given) => {
      const said = apply(made, self, given);
      if (said instanceof Later) {
        throw new TypeError(key + ' is asynchronous: ' + TOO_LATE);
      }
      return said;
    };
  }

  // What does not compile is not tried again.
  function compile(path, key) {
    const require = requireFrom(path);
    globalThis.require = require;
    try {
      const made = evaluate('(' + sourceAt(path).trim().replace(/;+$/, '') + '\n)');
      if (typeof made !== 'function') {
        return { failed: new TypeError(key + ' is not a function') };
      }
      if (unfinished.includes(getPrototypeOf(made))) {
        return { failed: new TypeError(key + ' is asynchronous or a generator: ' + TOO_LATE) };
      }
      return { made, require };
    } catch (failed) {
      return { failed: failed ?? new Error('it threw nothing') };
    }
  }

  globalThis.emit = function emit() {
    emitted = true;
  };
  globalThis.log = function log() {};
  globalThis.isArray = isArray;
  globalThis.toJSON = stringify;
  globalThis.sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

  // Calls `passes` with each document; gives a digit each.
  function eachOf(docs, passes) {
    let verdicts = '';
    for (let at = 0; at < docs.length; at += 1) {
      verdicts += passes(parse(docs[at])) ? '1' : '0';
    }
    return verdicts;
  }

  // Where there is no memory left the engine throws an error of its own, with or without its text; null where there is
  // none for that.
  function isExhausted(error) {
    return error === null || (error instanceof Internal && (error.message === 'out of memory' || error.message === ''));
  }

  // As it can be sent: a text may have half a character where it was cut.
  const whole = (said) => apply(toWellFormed, text(said), []);

  function saidBy(error) {
    try {
      return whole(error instanceof Error ? text(error.name) + ': ' + text(error.message) : stringify(error));
    } catch {
      return 'an exception that cannot be printed';
    }
  }

  function verdictOn(error) {
    try {
      for (const kind of ['forbidden', 'unauthorized']) {
        if (typeof error === 'object' && hasOwn(error, kind)) {
          const why = error[kind];
          return { [kind]: whole(typeof why === 'string' ? why : stringify(why)) };
        }
      }
    } catch {
      // It does not let itself be read: what it says is then said below.
    }
    return { failed: saidBy(error) };
  }

  const calls = {
    filter(name, req, docs) {
      const filter = functionAt(['filters', name]);
      const asked = parse(req);
      return ['passes', eachOf(docs, (doc) => filter(doc, asked))];
    },
    map(name, docs) {
      const map = functionAt(['views', name, 'map']);
      return ['passes', eachOf(docs, (doc) => {
        emitted = false;
        map(doc);
        return emitted;
      })];
    },
    validate(writes, user, security) {
      const validate = functionAt(['validate_doc_update']);
      const verdicts = [];
      for (let at = 0; at < writes.length; at += 2) {
        try {
          validate(parse(writes[at]), parse(writes[at + 1]), parse(user), parse(security));
          verdicts[at / 2] = 'allowed';
        } catch (error) {
          verdicts[at / 2] = error === null ? { failed: 'it threw null, or there was no memory left' } : verdictOn(error);
        }
      }
      return ['verdicts', stringify(verdicts)];
    },
  };

  return function call(kind, ...given) {
    try {
      return calls[kind](...given);
    } catch (error) {
      return isExhausted(error) ? ['exhausted', ''] : ['failed', saidBy(error)];
    }
  };
})

// What tabs of a browser have in common, in one process of Node.js.

let workers = 0;

/** What a browser has and Node.js has not: shared workers, each by its name, and locks, whose holders are returned. */
export function pretend(t) {
  const ports = [];
  const connects = new Map();
  globalThis.SharedWorker = class {
    constructor(url, { name }) {
      const { port1, port2 } = new MessageChannel();
      this.port = port1;
      ports.push(port1, port2);
      connects.set(name, connects.get(name) ?? start(`${url}?${(workers += 1)}`));
      connects.get(name).then((onconnect) => onconnect({ ports: [port2] }));
    }
  };
  const start = async (url) => {
    globalThis.self = {};
    await import(url);
    return globalThis.self.onconnect;
  };
  const held = new Map();
  const locks = {
    async request(name, have) {
      while (held.has(name)) await held.get(name);
      const had = Promise.resolve(have()).then(() => held.delete(name));
      held.set(name, had);
      await had;
    },
  };
  Object.defineProperty(globalThis, 'navigator', { value: { locks }, configurable: true });
  t.after(() => {
    ports.forEach((port) => port.close());
    delete globalThis.SharedWorker;
  });
  return held;
}

// What tabs of a browser have in common, in one process of Node.js.

let workers = 0;

/**
 * What a browser has and Node.js has not: shared workers, each by its name, and locks. Returns the locks that are `held`, and what
 * does as a browser that has no memory left: `killWorkers` ends them without a word.
 */
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
  /** By its name what lets a lock go, and when it has. */
  const held = new Map();
  const locks = {
    async request(name, ...given) {
      const [have, { signal } = {}] = given.reverse();
      const isGivenUp = new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
      isGivenUp.catch(() => {});
      while (held.has(name)) await Promise.race([held.get(name).isFree, isGivenUp]);
      let free;
      const isFree = new Promise((resolve) => (free = resolve)).then(() => held.delete(name));
      held.set(name, { free, isFree });
      Promise.resolve(have()).then(free);
      await isFree;
    },
  };
  Object.defineProperty(globalThis, 'navigator', { value: { locks }, configurable: true });
  const closePorts = () => ports.splice(0).forEach((port) => port.close());
  const killWorkers = () => {
    closePorts();
    connects.clear();
    held.forEach(({ free }) => free());
  };
  t.after(() => {
    closePorts();
    delete globalThis.SharedWorker;
  });
  return { held, killWorkers };
}

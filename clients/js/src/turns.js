/** How many have their turn together: of the six connections that browsers have for a host some are left to the page. */
const TOGETHER = 4;

/** Has work done in turns: what has one name one after the other, and what has others together, as many as may. */
export class Turns {
  #waiting = [];
  /** The names that have their turn. */
  #had = new Set();

  /** `work` returns a promise that is not rejected. */
  take(name, work) {
    this.#waiting.push({ name, work });
    this.#next();
  }

  #next() {
    while (this.#had.size < TOGETHER) {
      const at = this.#waiting.findIndex(({ name }) => !this.#had.has(name));
      if (at === -1) return;
      const [{ name, work }] = this.#waiting.splice(at, 1);
      this.#had.add(name);
      work().then(() => {
        this.#had.delete(name);
        this.#next();
      });
    }
  }
}

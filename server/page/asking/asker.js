/* The order in which a figure asks: one job in flight, the newest one waiting, those between dropped. A job that has
 * been overtaken for a second is aborted, so that pictures keep coming while the user drags and the last value wins. */

const PATIENCE_MS = 1000;

export class Asker {
  #running = null;
  #waiting = null;
  #closed = false;

  /* get: (request, options) => promise, `ask` of ask.js; busy and clock as there, replaced by tests. */
  constructor({ get, busy = { begin() {}, end() {} }, clock = globalThis, patience = PATIENCE_MS }) {
    Object.assign(this, { get, busy, clock, patience });
  }

  /* Runs job(get, stage), now or once the one in flight has ended. The promise is true when the job ran to its end,
   * false when it was dropped or aborted; it rejects with what the job threw. */
  ask(job) {
    if (this.#closed) return Promise.resolve(false);
    return new Promise((resolve, reject) => {
      this.busy.begin();
      this.#drop();
      this.#waiting = { job, resolve, reject };
      if (this.#running) this.#overtake();
      else this.#next();
    });
  }

  get idle() { return !this.#running; }

  /* Ends what is in flight and what waits. */
  abort() {
    this.#drop();
    this.#running?.controller.abort();
  }

  close() {
    this.#closed = true;
    this.abort();
  }

  #drop() {
    const dropped = this.#waiting;
    this.#waiting = null;
    if (dropped) this.#settle(dropped, dropped.resolve, false);
  }

  /* The clock runs from the first job that overtakes, not anew with each further one. */
  #overtake() {
    const { controller } = this.#running;
    this.#running.timer ??= this.clock.setTimeout(() => controller.abort(), this.patience);
  }

  async #next() {
    const turn = this.#waiting;
    if (!turn) return;
    this.#waiting = null;
    turn.controller = new AbortController();
    this.#running = turn;
    const { signal } = turn.controller;
    const stage = { signal, over: () => signal.aborted || this.#waiting !== null };
    try {
      await turn.job((request, options) => this.get(request, { signal, ...options }), stage);
      this.#end(turn, turn.resolve, !signal.aborted);
    } catch (error) {
      if (signal.aborted) this.#end(turn, turn.resolve, false);
      else this.#end(turn, turn.reject, error);
    }
  }

  #end(turn, settle, value) {
    this.clock.clearTimeout(turn.timer);
    this.#running = null;
    this.#settle(turn, settle, value);
    this.#next();
  }

  #settle(turn, settle, value) {
    settle(value);
    this.busy.end();
  }
}

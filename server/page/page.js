/* What every part of the page is given: the configurations in front of the user, ways to change them, and places to
 * speak. It changes nothing itself but the store. */
import { SLOTS, initial, print } from './state.js';
import { viewNamed } from './views/list.js';

export class Page {
  /* help and paste open their dialogs. Forms, panel and view are set by main.js when they are there. */
  constructor({ store, catalogue, announce, notice, help, paste }) {
    Object.assign(this, { store, catalogue, announce, notice, help, paste });
    this.reason = 'load';
    this.resolved = new Map();   /* slot: { config, hf_config, tensors } of the server's last answer */
    this.view = null;            /* the module of the view in front */
    store.example = () => this.example();
  }

  example() { return this.view?.example?.() ?? {}; }

  configsBySlot() {
    return this.isExample() ? this.example() : this.store.state.configs;
  }

  /* [[slot, config], …]: of the address, else of the view's example. */
  configs() {
    const configs = this.configsBySlot();
    return SLOTS.filter((slot) => configs[slot]).map((slot) => [slot, configs[slot]]);
  }

  config(slot) { return new Map(this.configs()).get(slot); }

  calledBy(slot) { return this.config(slot) && this.catalogue.calledBy(this.config(slot)); }

  /* The slot of the configuration that is edited and copied; of a difference b-a it is b. */
  front() {
    const wanted = this.store.state.on === 'b-a' ? 'b' : this.store.state.on;
    const slots = this.store.slots();
    return slots.includes(wanted) ? wanted : slots[0] ?? null;
  }

  /* Has the view in front two configurations, and a sentence above it of where they part? */
  isCompared() {
    return Boolean(this.view) && !viewNamed(this.view.name).silent && ['a', 'b'].every((slot) => this.config(slot));
  }

  viewPath() { return this.view?.path ?? null; }

  /* Does the view choose the positions itself? Then those of the configurations are not asked with. */
  setsSequence() { return this.view?.setsSequence ?? false; }

  setConfig(slot, config, undo) {
    this.store.set({ configs: { ...this.configsBySlot(), [slot]: config }, emptied: false }, { undo });
  }

  /* All configurations at once: change(config, slot) → the new one. more: what else changes with them. */
  changeAll(change, undo, more) {
    const configs = this.configs().map(([slot, config]) => [slot, change(config, slot)]);
    this.store.set({ configs: Object.fromEntries(configs), emptied: false, ...more }, { undo });
  }

  /* Keys of the address that only some views have. */
  setOwn(own, undo, more) { this.store.set({ own: { ...this.store.state.own, ...own }, ...more }, { undo }); }

  /* Into a free slot: this configuration, else a copy of the one in front. Gives the slot, null when all four are
   * taken. */
  addConfig(config) {
    const configs = this.configsBySlot();
    const slot = SLOTS.find((one) => !configs[one]);
    if (!slot) return null;
    const copy = structuredClone(config ?? configs[this.front()] ?? { scheme: 'rope' });
    this.store.set({ configs: { ...configs, [slot]: copy }, emptied: false, on: slot });
    return slot;
  }

  removeConfig(slot) {
    const { [slot]: removed, ...configs } = this.configsBySlot();
    const left = SLOTS.filter((one) => configs[one]);
    const { on } = this.store.state;
    const stays = left.includes(on) || (on === 'b-a' && configs.a && configs.b);
    this.resolved.delete(slot);
    this.store.set({ configs, emptied: !left.length, on: stays ? on : left[0] ?? 'a' });
  }

  /* The state of another view: configurations stay, what belongs to a view starts anew. */
  stateOf(view, patch = {}) {
    const { configs, emptied, on, red, cmap, lang, theme } = this.store.state;
    return { ...initial(), configs, emptied, on, red, cmap, lang, theme, view, ...patch };
  }

  go(view, patch) { this.store.set(this.stateOf(view, patch), { undo: false }); }

  /* The address of that, for real links. */
  href(view, patch) { return print(this.stateOf(view, patch)); }

  /* Does the address name no configuration, so that the view shows its example? */
  isExample() { return !this.store.state.emptied && !Object.keys(this.store.state.configs).length; }

  /* Back to the view's example. */
  reset() { this.store.set(this.stateOf(this.store.state.view, { configs: {}, emptied: false, on: 'a' })); }

  /* What the user did last: 'load', 'link', 'key' (Enter), 'type' or 'drag'. A refusal takes the focus after the first
   * three. */
  cause() { return this.reason; }
  because(reason) { this.reason = reason; }

  /* What the server made of a configuration. */
  publish(slot, meta) {
    const config = this.configsBySlot()[slot];
    if (config && meta.config) this.catalogue.learn(config, meta.config);
    this.resolved.set(slot, meta);
    this.forms?.published?.(slot, meta);
  }

  /* The server refused a configuration (null: no longer). */
  refused(slot, problem, cause) { this.forms?.refused?.(slot, problem, cause); }
}

/* The configurations as cards: one for each slot, in place as long as its slot is taken. What a card is made of is
 * loaded with the first view that has any; what says where two of them part, with the first pair. */
import { busy } from './ask.js';
import { learn } from './catalogue.js';
import { make } from './dom.js';

export class Forms {
  constructor(page, root, head) {
    Object.assign(this, { page, head });
    this.cards = new Map();      /* slot: card */
    this.refusals = new Map();   /* slot: [problem, cause] that no later answer has settled */
    this.element = make('div', { class: 'form-cards' });
    this.root = root;
    root.append(this.element);
  }

  update() {
    const configs = this.page.view?.forms === false ? [] : this.page.configs();
    this.head.classList.toggle('parted', this.page.isCompared());   /* its place, before it is loaded */
    if (configs.length && !this.Card) return void this.load();
    const slots = configs.map(([slot]) => slot);
    for (const slot of this.cards.keys()) if (!slots.includes(slot)) this.drop(slot);
    for (const [slot, config] of configs) this.show(slot, config);
    for (const [slot, { element }] of this.cards) element.toggleAttribute('data-front', slot === this.page.front());
    this.order(slots);
    this.compare(configs);
    this.name(configs);
  }

  /* Files are called by the model that they are. */
  name(configs) {
    if (this.naming) return this.naming.update();
    if (this.isNaming || !configs.some(([, config]) => config.hf_config ?? config.gguf)) return;
    busy.begin();
    this.isNaming = import('./views/naming.js').then(({ Naming }) => {
      this.naming = new Naming(this.page, this.head);
      this.naming.update();
    }, () => { this.isNaming = null; }).finally(() => busy.end());
  }

  compare(configs) {
    if (this.parting) return this.parting.update();
    if (configs.length < 2 || this.comparing) return;
    busy.begin();
    this.comparing = import('./views/parting.js').then(({ Parting }) => {
      this.parting = new Parting(this.page, this.head);
      this.parting.update();
    }, () => { this.comparing = null; }).finally(() => busy.end());
  }

  load() {
    busy.begin();
    this.loading ??= import('./forms/card.js').then(({ Card, presetList }) => {
      this.Card = Card;
      this.root.append(presetList());
    });
    this.loading.then(() => this.update(), () => { this.loading = null; }).finally(() => busy.end());
  }

  /* A card writes itself only when something of its concern has changed: cursor and zoom do not concern it. */
  show(slot, config) {
    const known = this.cards.get(slot);
    const card = known ?? new this.Card(this.page, slot);
    const concern = JSON.stringify([config, this.page.viewPath(), this.page.setsSequence()]);
    if (card.concern === concern) return;
    card.concern = concern;
    card.update(config);
    if (!known) this.add(slot, card);
  }

  /* The first answer may have come before the card. */
  add(slot, card) {
    this.cards.set(slot, card);
    this.order([...this.cards.keys()].sort());
    if (this.refusals.has(slot)) card.refuse(...this.refusals.get(slot));
  }

  order(slots) {
    const elements = slots.map((slot) => this.cards.get(slot).element);
    if (elements.some((element, i) => this.element.children[i] !== element)) this.element.replaceChildren(...elements);
  }

  drop(slot) {
    this.cards.get(slot).element.remove();
    this.cards.delete(slot);
    this.refusals.delete(slot);
  }

  /* The server has answered: derived values are known, and what was refused is so no longer. */
  published(slot, meta) {
    const config = this.page.configsBySlot()[slot];
    if (!config) return;
    learn(config, meta.config);
    this.refusals.delete(slot);
    this.cards.get(slot)?.settle(config);
    this.parting?.update();
    this.naming?.update();
  }

  /* problem: of the server; null: no longer refused */
  refused(slot, problem, cause) {
    if (problem) this.refusals.set(slot, [problem, cause]);
    else this.refusals.delete(slot);
    this.cards.get(slot)?.refuse(problem, cause);
  }
}

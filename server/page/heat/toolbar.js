/* The controls of a heat map: what a pixel stands for, zoom, reduction, output, indices of leading axes; and of a view
 * of several: which configuration is in front. */
import { make, name } from '../dom.js';
import { tool } from '../icons.js';
import { choice, sliderField } from '../views/controls.js';
import { phrase, word } from '../words.js';
import { axisName, picker } from './beside.js';
import { REDUCTIONS, ZOOM } from './hands.js';

export class Toolbar {
  #shown = {};
  #sliders = [];

  /* quiet: only says what a pixel stands for; its figure shares the controls of another one. */
  constructor(page, moves, { quiet }) {
    this.page = page;
    this.quiet = quiet;
    this.scale = make('span', { class: 'heat-scale' });
    this.outputs = make('span');
    this.leads = make('span', { class: 'heat-leads' });
    this.reduction = picker(page, 'red', word('heat.reduction'), REDUCTIONS);
    const button = (which, text, onclick) => tool(which, text, { class: 'icon', 'data-action': which, onclick });
    this.element = make('div', { class: 'heat-tools' }, quiet ? this.scale : [
      this.outputs, this.leads, this.scale, this.reduction,
      make('div', { class: 'segmented', role: 'group', 'aria-label': word('heat.zoom') },
        button('zoom-out', word('heat.zoomOut'), () => moves.zoom(1 / ZOOM)),
        button('zoom-in', word('heat.zoomIn'), () => moves.zoom(ZOOM)),
        button('fit', word('heat.fit'), () => moves.fit()), button('one', word('heat.one'), () => moves.one())),
    ]);
  }

  /* axes of the picture; reduce: what a block shows, isFixed: it alone; ownLead: the leading axes are chosen here;
   * outputs: rows. */
  show({ axes, about, reduce, isFixed, ownLead, outputs }) {
    const zoomedOut = axes.row.step > 1 || axes.col.step > 1;
    this.#once('scale', [axes.row.px, axes.row.step, axes.col.px, axes.col.step, reduce],
      () => this.scale.replaceChildren(scaleText(axes, reduce, zoomedOut)));
    if (this.quiet) return;
    this.reduction.value = reduce;
    this.reduction.hidden = !zoomedOut || isFixed;
    const names = [...new Set(outputs.map((row) => row.name))];
    this.#once('outputs', names, () => {
      const clear = { at: [], win: [0, 0], cur: [0, 0] };
      this.outputs.replaceChildren(
        ...names.length > 1 ? [picker(this.page, 'out', word('heat.output'), names, clear)] : []
      );
    });
    if (names.length > 1) this.outputs.firstChild.value = about.name;
    this.#showLead(ownLead ? about.lead : [], about);
  }

  #once(what, key, write) {
    const text = JSON.stringify(key);
    if (this.#shown[what] === text) return;
    this.#shown[what] = text;
    write();
  }

  /* A slider for each leading axis that has more than one index. */
  #showLead(lead, { axes, shape }) {
    this.#once('lead', [lead.length, axes], () => {
      this.#sliders = lead.map((_, i) => sliderField(
        { name: 'at', text: axisName(axes[i] ?? 'axis'), move: (index) => this.#move(i, index) }
      ));
      this.leads.replaceChildren(...this.#sliders.map(({ element }) => element));
    });
    this.lead = lead;
    this.#sliders.forEach(({ element, show }, i) => {
      element.hidden = shape[i] < 2;
      show({ value: lead[i], min: 0, max: shape[i] - 1 });
    });
  }

  #move(i, index) { this.page.store.set({ at: this.lead.with(i, index) }, { undo: `at.${i}` }); }
}

/* 133 × 1 cells a pixel, mean; or 8 × 8 pixels a cell; or one of each, rows first. */
function scaleText({ row, col }, reduce, zoomedOut) {
  if (!zoomedOut) return phrase('heat.pixels', { row: row.px, col: col.px });
  const red = name(reduce);
  if (row.px === 1 && col.px === 1) return phrase('heat.cells', { row: row.step, col: col.step, red });
  if (row.px === 1) return phrase('heat.rowsTall', { step: row.step, px: col.px, red });
  return phrase('heat.colsWide', { step: col.step, px: row.px, red });
}

/* Buttons for what is in front, from two configurations on; with a and b also their difference. */
export function frontChooser(page) {
  const { element, show } = choice({
    name: 'on', text: word('heat.front'), pick: (on) => page.store.set({ on }, { undo: 'on' }),
  });
  element.classList.add('front');
  function update() {
    const slots = page.store.slots();
    const choices = [...slots, ...slots.includes('a') && slots.includes('b') ? ['b-a'] : []];
    const { on } = page.store.state;
    element.hidden = choices.length < 2;
    show(choices.map((one) => [one, name(one.replace('-', ' − '))]), choices.includes(on) ? on : page.front());
  }
  return { element, update };
}

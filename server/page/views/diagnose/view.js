/* The view `diagnose`: what made a tensor. A file that was chosen or dropped is sent as it is; what the server finds
 * stands in words and as candidates, the best of which is drawn beside the file, with their difference. The
 * configuration in front is what its user believes. */
import { action, code, make, name } from '../../dom.js';
import { printed } from '../../draw/numbers.js';
import { Figure, datum, shortDatum } from '../../figure.js';
import { Taker } from '../../forms/taking.js';
import { HeatMap, Scale } from '../../heat/heatmap.js';
import { picker } from '../../heat/beside.js';
import { AWAY } from '../../papers.js';
import { SLOTS } from '../../state.js';
import { size } from '../../states.js';
import { label, language, live, phrase, word } from '../../words.js';
import { choice } from '../controls.js';
import {
  PATH, beliefOf, brings, candidateSpec, explained, holdsItself, lackOf, lean, mayHold, namedAs, opened,
  question, reducer, takenAs, texts,
} from './ask.js';
import { fillTable, nameOf, sending } from '../parts.js';
import { Slots } from '../slots.js';

const EXAMPLE = { scheme: 'rope', head_dim: 64, layout: 'half', form: 'expanded', len: 64 };
const MADE = { ...EXAMPLE, layout: 'interleaved' };   /* the file of the example */

const example = () => ({ a: EXAMPLE });

/* A text that the server gives in both languages. */
const told = (row) => live(() => (language() === 'zh' && row.detail_zh) || row.detail);

/* The lines that mend a finding, of each library; once where they are the same. */
function cures(cure) {
  if (!cure) return [];
  const same = cure.torch === cure.numpy;
  const rows = [['torch', same ? 'PyTorch, NumPy' : 'PyTorch'], ['numpy', 'NumPy']];
  return rows.filter(([kind]) => cure[kind] && !(same && kind === 'numpy')).map(([kind, library]) => make(
    'div', { class: 'cure' }, make('p', { class: 'hint' }, phrase('diagnose.cure', { library: name(library) })),
    make('pre', {
      'data-cure': kind, translate: 'no', tabindex: 0, class: 'scroll', role: 'group',
      'aria-label': word('diagnose.lines'),
    }, cure[kind])));
}

class Diagnose {
  #file = null;        /* { title, blob, tensors, files } of #of */
  #of;                 /* the files of the user that it is; null: the example */
  #holds = null;       /* names chosen for its tensors */
  #claim = null;       /* 'none' or 'front', once chosen */
  #lack = null;        /* { has, wants } of a file that says nothing alone */
  #dropped = null;     /* slot of a configuration that does not explain the file */
  #values = null;      /* what was typed in place of a file */
  #typed = null;       /* the form for it, once it was asked for */
  #asked = '';
  #request = null;
  #answer = null;
  #count = 0;

  constructor(page, root) {
    this.page = page;
    this.scale = new Scale();
    this.figure = new Figure(page, { view: 'diagnose', slot: 'none', label: word('diagnose.title') });
    this.figure.onTable = () => this.#fillTable();
    this.input = make('input', {
      type: 'file', 'data-drop': '', multiple: true, accept: '.npy,.npz,.safetensors',
      onchange: () => this.#takeChosen(),
    });
    this.about = make('p', { class: 'hint' });
    this.holds = choice({
      name: 'holds', text: word('diagnose.holds'), pick: (holds) => this.#set(() => { this.#holds = holds; }),
    });
    this.belief = choice({ name: 'belief', text: word('diagnose.belief'), pick: (slot) => this.#believe(slot) });
    this.anew = action('open', word('diagnose.anew'), () => this.#open(null));
    this.type = action('probe', word('diagnose.type'), () => this.#type());
    this.typing = make('div', { class: 'diagnose-typed', hidden: true });
    this.output = make('span');
    this.maps = new Slots(make('div', { class: 'figures aligned' }), (slot) => this.#build(slot));
    this.note = make('p', { class: 'hint' });
    root.append(
      make('div', { class: 'diagnose-drop' },
        make('p', null, phrase('diagnose.drop', {
          npy: code('.npy'), npz: code('.npz'), safetensors: code('.safetensors'),
        })),
        make('label', { class: 'button file primary' }, word('paste.file'), this.input)),
      make('div', { class: 'toolbar diagnose-file' }, this.anew, this.type, this.holds.element, this.belief.element),
      this.about, this.typing, this.figure.element,
      make('div', { class: 'toolbar diagnose-beside' }, this.output, this.note), this.maps.place);
    this.onFile = () => this.#open(page.files);
    document.addEventListener('posenc:file', this.onFile);
  }

  /* ---- the file ---- */

  async #takeChosen() {
    await new Taker(this.page, () => {}).takeFiles([...this.input.files]);
    this.input.value = '';
  }

  #open(files) {
    this.page.files = brings(files, this.#lack) ? [...this.#of, ...files] : files;
    if (!files && !this.page.isExample()) return this.page.reset();
    this.update();
  }

  #set(change) {
    change();
    this.update();
  }

  /* Numbers instead of a file: those that tell the configuration in front from its mistakes. */
  async #type() {
    const { Typed } = await import('./typed.js');
    this.#typed ??= new Typed(this.page, this.typing, (values) => this.#set(() => { this.#values = values; }));
    this.typing.hidden = !this.typing.hidden;
    if (!this.typing.hidden) this.#typed.show(beliefOf(this.page.catalogue, this.page.config(this.page.front())));
  }

  #believe(slot) {
    this.#claim = slot === 'none' ? slot : 'front';
    if (slot !== 'none') this.page.store.set({ on: slot }, { undo: 'on' });
    this.update();
  }

  /* The slot of what is believed; of a file without configurations nothing is. */
  #slot() {
    const { page } = this;
    if (this.#claim) return this.#claim === 'none' ? null : page.front();
    const isOpen = !(page.files && page.isExample());
    return isOpen && page.front() !== this.#dropped ? page.front() : null;
  }

  /* ---- asking ---- */

  update() {
    const { page } = this;
    const file = page.files ?? null;
    if (file !== this.#of || !this.#count) {
      this.#of = file;
      this.#count += 1;
      this.#file = this.#holds = this.#claim = this.#request = this.#lack = this.#dropped = this.#values = null;
      this.#forget();
    }
    const hasNone = !file && !this.#values && !page.isExample() && !this.begun;
    if (!file && page.isExample()) this.begun = true;   /* who edits the example's configuration keeps its file */
    this.anew.hidden = !file && !hasNone;
    this.figure.element.hidden = hasNone;
    this.#showChoices();
    if (hasNone) {
      this.figure.state = 'empty';
      return this.#say(word('diagnose.noFile'));
    }
    const slot = this.#slot();
    const belief = slot ? beliefOf(page.catalogue, page.config(slot)) : {};
    const wish = this.#wish(belief);
    if (wish === this.#asked) return this.#draw();
    this.#asked = wish;
    this.#complainTo(slot ?? 'none');
    this.figure.ask((get, stage) => this.#ask(get, stage, belief));
  }

  #wish(belief) { return JSON.stringify([this.#count, this.#holds, this.#values, belief]); }

  /* What is refused of a configuration its card marks. */
  #complainTo(slot) {
    if (slot === this.figure.slot) return;
    this.page.refused(this.figure.slot, null);
    this.figure.slot = slot;
  }

  async #ask(get, { over }, belief) {
    if (this.#values) return this.#judge(get, over, belief);
    const of = this.#of;
    const file = this.#file ?? await (of ? opened(of) : this.#example(get));
    if (over() || of !== this.#of) return;
    this.#file = file;
    this.#lack = lackOf(file);
    this.#showFile();
    this.#showChoices();
    if (this.#lack && !this.#holds) return this.#askForOther();
    this.#request = { belief, ...question(file, this.#held(), this.#isAsIs(), belief) };
    this.page.panel?.update(this, this.page.store.state);
    if (this.#isTooLarge()) return;
    const answer = await this.#answerTo(get);
    if (over()) return;
    this.#answer = answer;
    this.#show();
    this.figure.drawn();
  }

  async #judge(get, over, belief) {
    this.#request = { belief: { ...belief, values: this.#values } };
    this.page.panel?.update(this, this.page.store.state);
    const answer = await get({ path: PATH, body: this.#request.belief }, { as: 'json' });
    if (over()) return;
    this.#forget();
    this.#answer = answer;
    this.#say(word('diagnose.wereTyped'));
    this.#show();
    this.figure.drawn();
  }

  /* A configuration that nobody has stated as expected is tried: where it does not explain the user's file at all, the
   * file is asked about alone. */
  async #answerTo(get) {
    const send = sending((...bytes) => this.figure.notices.progress([bytes]));
    const slot = this.#slot();
    try {
      return await get(this.#request, { as: 'json', send, onProgress: null });
    } catch (error) {
      if (this.#claim || !slot || !this.#of || error.status !== 422) throw error;
      this.#request = { belief: {}, ...question(this.#file, this.#held(), this.#isAsIs(), {}) };
      const answer = await get(this.#request, { as: 'json', send, onProgress: null }).catch(() => { throw error; });
      this.#dropped = slot;
      this.#asked = this.#wish({});
      this.#complainTo('none');
      this.#showChoices();
      return answer;
    }
  }

  #askForOther() {
    const { has, wants } = this.#lack;
    this.figure.refuse(phrase('diagnose.other', { has: code(has), wants: code(wants) }));
  }

  /* The limit is known before anything is sent. */
  #isTooLarge() {
    const { max_body: most } = this.page.catalogue.catalogue().limits;
    const { size: bytes } = this.#file.blob;
    if (!(bytes > most)) return false;
    this.figure.refuse(phrase('diagnose.tooLarge',
      { size: name(size(bytes)), most: name(`${size(most)} (${most} B)`), rows: code('x[:1024]') }));
    return true;
  }

  async #example(get) {
    const bytes = await get({ path: '/encode', body: { ...MADE, outputs: ['cos', 'sin'], format: 'npz' } },
      { as: 'bytes' });
    return opened([new File([bytes], 'example.npz')]);
  }

  /* Nothing of another file stands beside this one. */
  #forget() {
    this.#answer = null;
    this.maps.sync([]);
    for (const place of [this.figure.stage, this.figure.caption, this.note, this.output]) place.replaceChildren();
    this.output.dataset.names = '';
  }

  /* ---- what is said of the file ---- */

  #isAsIs() { return !this.#file.tensors || (this.#holds ?? holdsItself(this.#file)) === takenAs(this.#file); }
  #held() { return this.#holds ?? (this.#file.tensors && holdsItself(this.#file)); }
  #say(...nodes) {
    this.about.replaceChildren(...nodes.map((one) => one instanceof Node ? one : make('span', null, one)));
  }

  #showFile() {
    const { title, blob, tensors } = this.#file;
    const held = tensors?.flatMap(({ name: own, dtype, shape }) => [
      ' · ', code([own, dtype, shape.join(' × ')].filter(Boolean).join(' ')),
    ]) ?? [];
    const made = this.#of
      ? []
      : [make('br'),
        phrase('diagnose.example', { found: code(MADE.layout), believed: code(EXAMPLE.layout), slot: name('a') })];
    this.#say(name(`${title} (${size(blob.size)})`), ...held, ...made);
  }

  #showChoices() {
    const holds = mayHold(this.#file);
    this.holds.element.hidden = holds.length < 2 || !this.#of;
    this.holds.show(holds.map((one) => [one, one ? name(one) : word('diagnose.named')]), this.#file && this.#held());
    this.belief.show([...this.page.configs().map(([slot]) => [slot, name(slot)]), ['none', word('diagnose.nothing')]],
      this.#slot() ?? 'none');
  }

  /* ---- the answer ---- */

  #show() {
    const { findings, candidates, belief, searched, unseen } = this.#answer;
    this.figure.stage.replaceChildren(
      make('ul', { class: 'findings' },
        findings.map((row) => make('li', { 'data-finding': row.code },
          told(row), ' ', code(row.code), cures(row.cure)))),
      belief?.first_bad ? this.#first(belief.first_bad, findings.find((row) => row.derive)?.derive ?? []) : '',
      unseen?.length ? this.#unseen(unseen) : '',
      make('ol', { class: 'cards candidates' }, candidates.map((row, i) => this.#candidate(row, i))));
    this.figure.caption.replaceChildren(phrase('diagnose.caption', { n: datum(searched, 'searched') }));
    this.#draw();
  }

  /* The first number that is not as believed, and a way to it; addresses: of its steps, as believed and as found. */
  #first({ output, index, found, expected }, addresses) {
    const text = phrase('diagnose.first',
      { where: code(`${output}[${index}]`), found: datum(found, 'found'), expected: datum(expected, 'expected') });
    const show = () =>
      this.page.store.set({ out: output, at: index.slice(0, -2), cur: [0, 0, ...index].slice(-2) }, { undo: 'cur' });
    const steps = ['whyExpected', 'whyFound'].flatMap((key, i) => i in addresses ? [' ', make('a', {
      href: live(() => `${addresses[i]}&format=text&lang=${language()}`), 'data-derive': i, ...AWAY,
    }, word(`diagnose.${key}`))] : []);
    return make('p', { class: 'hint' }, text, ' ',
      make('button', { type: 'button', class: 'link', onclick: show }, word('diagnose.cell')), steps);
  }

  /* What a file that is as expected says nothing about. */
  #unseen(codes) {
    const { catalogue } = this.page;
    catalogue.complete();
    const fault = (one) => catalogue.catalogue().faults.find((row) => row.code === one) ?? { name: one };
    const words = codes.map((one) => make(
      'li', { 'data-unseen': one }, live(() => String(label(fault(one)))), ' ', code(one)));
    return make('div', { class: 'hint' }, make('p', null, word('diagnose.unseen')), make('ul', null, words));
  }

  #candidate(row, i) {
    const { catalogue } = this.page;
    const config = row.config && lean(catalogue, row);
    const fact = (what, value) =>
      make('p', { class: 'hint' }, phrase(`diagnose.${what}`, { value: shortDatum(value, what) }));
    const paste = action('paste', word('diagnose.paste'), () => this.#paste(config));
    paste.disabled = !this.#free();
    return make('li',
      { class: 'card', 'data-candidate': i, 'data-scheme': config?.scheme, 'data-verdict': row.verdict },
      make('strong', { class: 'capital' }, config ? nameOf(catalogue, row.config) : word('diagnose.rows')), ' ',
      make('span', { class: 'hint' }, word(`diagnose.${row.verdict}`)),
      config && make('pre', { tabindex: 0, class: 'scroll', 'aria-label': word('diagnose.config') },
        JSON.stringify(config)),
      fact('max_error', row.max_error), fact('equal', row.equal),
      row.codes.length ? make('p', { class: 'hint' }, word('diagnose.codes'), ' ', ...spaced(row.codes)) : null,
      row.transforms.length
        ? make('p', { class: 'hint' }, word('diagnose.transforms'), ' ',
          ...spaced(row.transforms.map((one) => JSON.stringify(one))))
        : null,
      row.presets.length ? make('p', { class: 'hint' }, word('diagnose.presets'), ' ', ...spaced(row.presets)) : null,
      config && paste);
  }

  /* Candidates in numbers; where nothing fits, the best of each kind of difference too. */
  #fillTable() {
    const { belief, candidates, ruled_out: others } = this.#answer ?? {};
    if (!candidates) return;
    const kinds = ['max_error', 'max_ulp', 'equal'];
    const rows = [...belief ? [[word('diagnose.belief'), belief]] : [], ...candidates.map((row, i) => [i, row]),
      ...others.map((row) => [code(row.code), row])];
    fillTable(this.figure, word('diagnose.candidates'), kinds.map(name),
      rows.map(([text, row], i) => [i, text, kinds.map((kind) => printed(row[kind] ?? ''))]));
  }

  /* ---- a candidate becomes a configuration ---- */

  #configs() { return this.page.files && this.page.isExample() ? {} : this.page.configsBySlot(); }
  #free() { return SLOTS.find((slot) => !this.#configs()[slot]); }

  #paste(config) {
    const slot = this.#free();
    this.page.store.set(this.page.stateOf(
      'table', { configs: { ...this.#configs(), [slot]: config }, emptied: false, on: slot }
    ));
  }

  /* ---- the file, the best candidate, their difference ---- */

  #build(slot) {
    const scale = slot === 'b-a' ? new Scale() : this.scale;
    return new HeatMap(this.page,
      { view: 'diagnose', slot, scale, label: word(`diagnose.map.${slot}`), quiet: slot !== 'file' });
  }

  #draw() {
    if (!this.#answer || !this.#file || this.#values) return;
    const [best] = this.#answer.candidates;
    const { tensors, mine, theirs } = this.#pictures(best);
    const changed = best?.transforms.length > 0;
    const isSame = best?.max_error === 0 && !changed;
    this.maps.sync(mine ? ['file', ...theirs ? ['candidate', ...isSame ? [] : ['b-a']] : []] : []);
    this.#showOutputs(tensors.map((one) => one.name), mine);
    this.note.replaceChildren(make(
      'span', null,
      !mine ? word('diagnose.unread') : !theirs ? word('diagnose.alone') : changed ? word('diagnose.before')
        : isSame ? word('diagnose.same') : ''
    ));
    if (mine) this.maps.get('file').show(mine);
    if (!theirs) return;
    this.maps.get('candidate').show(theirs);
    this.maps.get('b-a')?.show({ of: [{ ...mine, caption: 'diagnose.difference' }, theirs] });
  }

  #pictures(best) {
    const all = this.#file.tensors ? namedAs(this.#file, this.#held()) : [];
    const tensors = explained(all);
    const tensor = tensors.find((one) => one.name === this.page.store.state.out) ?? tensors[0];
    if (!tensor) return { tensors };
    const asked = best && candidateSpec(this.page.catalogue, best, tensor, all);
    const output = asked?.output ?? tensor.name;
    const row = asked && this.page.catalogue.outputsOf(asked.body, asked.path).find((one) => one.name === output);
    const axes = row?.axes ?? ['axis', 'axis'];
    const served = reducer(tensor);
    const mine = {
      path: `file ${this.#count} ${tensor.name}`, body: { scheme: this.#file.title }, output, axes,
      given: [{ ...tensor, name: output }], served, called: tensor.name,
    };
    const theirs = asked
      && { ...asked, axes, asked: true, called: tensor.name, ...served ? {} : { reduce: 'sample' } };
    return { tensors, mine, theirs };
  }

  #showOutputs(names, mine) {
    const key = names.join();
    if (this.output.dataset.names !== key) {
      this.output.replaceChildren(
        ...names.length > 1 ? [picker(this.page, 'out', word('heat.output'), names, { at: [] })] : []
      );
    }
    this.output.dataset.names = key;
    if (names.length > 1) this.output.firstChild.value = mine.called;
  }

  /* What was asked of the file. */
  request() {
    if (!this.#request) return null;
    return { path: PATH, body: this.#request.belief, ...this.#values ? {} : { texts: texts(this.#request) } };
  }

  close() {
    document.removeEventListener('posenc:file', this.onFile);
    this.#typed?.close();
    this.maps.close();
    this.figure.close();
  }
}

const spaced = (names) => names.flatMap((one) => [code(one), ' ']);

export default { name: 'diagnose', path: '/encode', example, open: (page, root) => new Diagnose(page, root) };

/* The markup of stories: which elements a text becomes. The document is a small one of our own. */
import assert from 'node:assert/strict';
import test from 'node:test';

globalThis.Node = class {
  constructor(tag, text = '') { Object.assign(this, { tag, text, attributes: {}, children: [] }); }
  append(...nodes) { this.children.push(...nodes.map((node) => typeof node === 'string' ? new Node(null, node) : node)); }
  replaceChildren(...nodes) { this.children = []; this.append(...nodes); }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  set textContent(text) { this.tag ? this.replaceChildren(text) : this.text = String(text); }
  get textContent() { return this.text + this.children.map((child) => child.textContent).join(''); }
  toString() {
    if (!this.tag) return this.text;
    const attributes = Object.entries(this.attributes).filter(([name]) => name !== 'stretchy').map(([name, value]) => ` ${name}="${value}"`).join('');
    return `<${this.tag}${attributes}>${this.children.join('')}</${this.tag}>`;
  }
};
const element = (tag) => new Node(tag);
globalThis.document = { createElement: element, createElementNS: (space, tag) => element(tag), createTextNode: (text) => new Node(null, text) };

const { formulaOf, prose } = await import('../../server/page/stories/prose.js');

/* A text that no file has is shown as it is. */
const shown = (text) => String(prose('p', text));
const formula = (text) => String(formulaOf(text)).replace(/^<math><mrow>|<\/mrow><\/math>$/g, '');

test('code, emphasis and links', () => {
  assert.equal(shown('plain'), '<p>plain</p>');
  assert.equal(shown('a `b c` d'), '<p>a <code>b c</code> d</p>');
  assert.equal(shown('*a `b`* c'), '<p><em>a <code>b</code></em> c</p>');
  assert.equal(shown('see [the *table*](#view=table&a={"len":3})!'), '<p>see <a href="#view=table&a={"len":3}">the <em>table</em></a>!</p>');
  assert.equal(shown('`a*b` `$c$`'), '<p><code>a*b</code> <code>$c$</code></p>');
});

test('a formula within a text', () => {
  assert.equal(shown('for $x$, $y$'), '<p>for <math><mrow><mi>x</mi></mrow></math>, <math><mrow><mi>y</mi></mrow></math></p>');
});

test('letters, numbers, signs', () => {
  assert.equal(formula('2a - 1.5'), '<mn>2</mn><mi>a</mi><mo>−</mo><mn>1.5</mn>');
  assert.equal(formula('\\theta \\le \\pi'), '<mi>θ</mi><mo>≤</mo><mi>π</mi>');
  assert.equal(formula('\\cos(x)'), '<mi>cos</mi><mo>(</mo><mi>x</mi><mo>)</mo>');
  assert.equal(String(formulaOf('(').children[0].children[0].attributes.stretchy), 'false');
});

test('scripts in either order', () => {
  assert.equal(formula('x_i'), '<msub><mi>x</mi><mi>i</mi></msub>');
  assert.equal(formula('x^{2i}'), '<msup><mi>x</mi><mrow><mn>2</mn><mi>i</mi></mrow></msup>');
  const both = '<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>';
  assert.equal(formula('x_i^2'), both);
  assert.equal(formula('x^2_i'), both);
  assert.equal(formula('{}- x'), '<mrow></mrow><mo>−</mo><mi>x</mi>');
});

test('fractions, roots, words, bold letters', () => {
  assert.equal(formula('\\frac{a}{\\sqrt{d}}'), '<mfrac><mrow><mi>a</mi></mrow><mrow><msqrt><mrow><mi>d</mi></mrow></msqrt></mrow></mfrac>');
  assert.equal(formula('\\bf p_m^\\top'), '<msubsup><mi class="bold">p</mi><mi>m</mi><mo>⊤</mo></msubsup>');
  assert.equal(formula('\\text{if}'), '<mtext>if</mtext>');
});

test('matrices', () => {
  const cell = (text) => `<mtd><mrow><mn>${text}</mn></mrow></mtd>`;
  assert.equal(formula('\\matrix{1 & 2 \\\\ 3 & 4}'),
    `<mrow><mo>(</mo><mtable><mtr>${cell(1)}${cell(2)}</mtr><mtr>${cell(3)}${cell(4)}</mtr></mtable><mo>)</mo></mrow>`);
});

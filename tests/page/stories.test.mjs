/* Every story as its module says it, against its texts: none is missing, none is left over. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { parse } from '../../server/page/state.js';
import { stories } from '../../server/page/stories/list.js';
import { viewNamed } from '../../server/page/views/list.js';

const OF_ALL = ['printed', 'defined'];   /* versions whose names all stories share */

function texts(name) {
  const url = new URL(`../../server/page/text/${name}.json`, import.meta.url);
  return Object.keys(JSON.parse(readFileSync(url)));
}

/* The keys that a section asks for. */
function keysOf({ name, parts }) {
  const paragraphs = parts.filter((part) => typeof part === 'number').reduce((sum, part) => sum + part, 0);
  return [name, ...Array.from({ length: paragraphs }, (_, i) => `${name}.${i + 1}`), ...figuresOf([{ parts }]).flatMap(keysOfFigure)];
}

const figuresOf = (sections) => sections.flatMap(({ parts }) => parts.filter((part) => typeof part !== 'number'));

const keysOfFigure = ({ name, versions = [], touch }) => [`fig.${name}`, `fig.${name}.try`,
  ...versions.filter((version) => !OF_ALL.includes(version)), ...touch.map(({ text }) => text).filter(Boolean)];

for (const { name, load } of stories) {
  const sections = (await load()).default;
  const figures = figuresOf(sections);

  test(`${name}: each text is used, and each that is used exists`, () => {
    const asked = [...new Set(sections.flatMap(keysOf))].map((key) => `${name}.${key}`).sort();
    for (const lang of ['en', 'zh']) assert.deepEqual(texts(`${name}.${lang}`).sort(), asked, lang);
  });

  test(`${name}: sections and figures have names of their own, and something to say`, () => {
    for (const names of [sections.map((section) => section.name), figures.map((one) => one.name)]) assert.equal(new Set(names).size, names.length);
    for (const { name: section, parts } of sections) assert.ok(parts.some((part) => part > 0), `${section} has a paragraph`);
  });

  test(`${name}: figures are views with addresses that can be read`, () => {
    for (const { name: figure, view, configs = {}, address = '', versions, touch } of figures) {
      assert.ok(viewNamed(view), `${figure}: ${view}`);
      assert.deepEqual(parse(`#view=${view}&${address}`).bad, [], figure);
      assert.ok(!/(^|&)[abcd]=/.test(address), `${figure}: configurations stand in configs`);
      if (versions) assert.equal(versions.length, Object.keys(configs).length, `${figure}: a name for each configuration`);
      for (const { slots = '' } of touch) assert.ok([...slots].every((slot) => slot in configs), `${figure}: slots ${slots}`);
    }
  });
}

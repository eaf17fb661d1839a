/* Every story: its figures against its texts, of which none is missing and none is left over; its Markdown. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { parse } from '../../server/page/state.js';
import { stories, walk } from '../../server/page/stories/list.js';
import { readStory } from '../../server/page/stories/markdown.js';
import { viewNamed } from '../../server/page/views/list.js';

const OF_ALL = ['printed', 'defined'];   /* versions whose names all stories share */

const source = (name, lang) => readFileSync(new URL(`../../server/page/stories/${name}.${lang}.md`, import.meta.url), 'utf8');

/* The keys that a section asks for. */
const keysOf = ({ key, parts }) => [key, ...parts.filter((part) => !part.figure).map((part) => part.key)];

const marksOf = (sections) => sections.flatMap(({ parts }) => parts.filter((part) => part.figure).map((part) => part.figure));

const keysOfFigure = ({ name, versions = [], touch }) => [`fig.${name}`, `fig.${name}.try`,
  ...versions.filter((version) => !OF_ALL.includes(version)), ...touch.map(({ text }) => text).filter(Boolean)];

for (const { name, load } of [...stories, walk]) {
  const figures = (await load()).default;
  const told = Object.fromEntries(['en', 'zh'].map((lang) => [lang, readStory(name, source(name, lang))]));

  test(`${name}: each text is used, and each that is used exists`, () => {
    for (const [lang, { texts, sections }] of Object.entries(told)) {
      const asked = new Set([...sections.flatMap(keysOf), ...figures.flatMap(keysOfFigure).map((key) => `${name}.${key}`)]);
      assert.deepEqual(Object.keys(texts).sort(), [...asked].sort(), lang);
      for (const [key, text] of Object.entries(texts)) assert.ok(text.trim(), `${lang}: ${key} has something to say`);
    }
  });

  test(`${name}: both languages have the same sections, paragraphs and figures, each figure once`, () => {
    assert.deepEqual(told.en.sections, told.zh.sections);
    assert.deepEqual(marksOf(told.en.sections), figures.map((one) => one.name));
    assert.equal(new Set(figures.map((one) => one.name)).size, figures.length);
    for (const { key, parts } of told.en.sections) assert.ok(parts.some((part) => part.key), `${key} has a paragraph`);
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

test('the Markdown of a story', () => {
  const text = '- len: how many\n- a: b: c\n\n## One\ntwo\n\nA *b*\nc.\n\n![one-2]\n> See\n> this.\n>\n> Do that.\n\n中文，\n接着 `a`\n下\n\n## Next\n\nx\n';
  assert.deepEqual(readStory('s', text), {
    texts: {
      's.len': 'how many', 's.a': 'b: c', 's.1': 'One two', 's.1.1': 'A *b* c.', 's.fig.one-2': 'See this.', 's.fig.one-2.try': 'Do that.',
      's.1.2': '中文，接着 `a` 下', 's.2': 'Next', 's.2.1': 'x',
    },
    sections: [{ key: 's.1', parts: [{ key: 's.1.1' }, { figure: 'one-2' }, { key: 's.1.2' }] }, { key: 's.2', parts: [{ key: 's.2.1' }] }],
  });
});

test('Markdown that a story does not have is refused where it stands', () => {
  for (const text of ['words', '## One\n\n![a]\n> Only this.', '## One\n\n![a b]\n> See.\n>\n> Do.', '- a b', '## One\n\n- a: b', '## One\n\n### Two', '## One\n\n> words']) {
    assert.throws(() => readStory('s', text), /the story s: .*/, text);
  }
});

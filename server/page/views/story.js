/* A story: text to read from top to bottom, with figures that are views of this page. */
import { busy } from '../ask.js';
import { Article } from '../stories/article.js';
import { stories, storyNamed } from '../stories/list.js';
import { readStory } from '../stories/markdown.js';
import { styled } from '../styled.js';
import { addWords } from '../words.js';
import { partFailed } from './parts.js';

class Story {
  #article = null;
  #name = null;

  constructor(page, root) { Object.assign(this, { page, root }); }

  async update(state, before) {
    const name = state.story ?? stories[0].name;
    if (name !== this.#name) return this.open(name);
    this.#article?.update(state);
    if (state.sec !== before.sec) this.#article?.goTo(state.sec);
  }

  /* Of several asked for in a row only the newest is shown. */
  async open(name) {
    this.#name = name;
    this.#shut();
    busy.begin();
    try {
      const reading = await readingOf(storyNamed(name)).catch(() => null);
      if (name !== this.#name) return;
      if (reading) this.show(new Article(this.page, name, reading.sections, reading.figures));
      else this.#failed();
    } finally {
      busy.end();
    }
  }

  show(article) {
    const { state } = this.page.store;
    this.#article = article;
    this.root.replaceChildren(article.element);
    article.update(state);
    article.watch();
    if (state.sec) article.goTo(state.sec);
  }

  #failed() {
    this.#name = null;
    this.root.replaceChildren(partFailed());
  }

  #shut() {
    this.#article?.close();
    this.#article = null;
  }

  close() {
    this.#name = null;
    this.#shut();
  }
}

/* What is needed to read a row of stories/list.js: { sections, figures }; its texts are those of the page then. */
export async function readingOf({ name, load }) {
  const sheet = styled(new URL('../stories/story.css', import.meta.url));   /* which no other view needs */
  const [{ default: figures }] = await Promise.all([load(), addWords(name, textsOf(name)), sheet]);
  return { sections: sectionsOf.get(name), figures };
}

/* The texts of a story, and with them its sections, which are the same in every language. */
const sectionsOf = new Map();
const textsOf = (name) => async (lang) => {
  const file = `stories/${name}.${lang}.md`;
  const answer = await fetch(new URL(`../${file}`, import.meta.url));
  if (!answer.ok) throw new Error(`${file}: ${answer.status}`);
  const { texts, sections } = readStory(name, await answer.text());
  sectionsOf.set(name, sections);
  return texts;
};

export default { name: 'story', open: (page, root) => new Story(page, root) };

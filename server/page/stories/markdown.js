/* A story's text, NAME.LANG.md: blocks with blank lines between them, of which it has these.
 *
 *   - scheme: words      before the first section, one a line: what versions and controls of figures are called
 *   ## Words             the title of a section
 *   ![dogs]              a figure of NAME.js, and below it, quoted,
 *   > words              what is seen
 *   >
 *   > words              what to touch, and what happens then
 *   words                a paragraph; prose.js reads what is within
 *
 * Both languages have the same blocks. Each text gets a key, so that the language can change while a story is open. */

const BLOCKS = {
  names: /^- \w+: .+(?:\n- \w+: .+)*$/,
  title: /^## ([^]+)$/,
  figure: /^!\[([\w-]+)\]\n((?:> .+\n)+)>\n((?:> .+(?:\n|$))+)$/,
  paragraph: /^[^-#>!][^]*$/,
};

/* A line break is a space, but there is none between two Chinese signs. */
const WIDE = '[\\u2e80-\\u9fff\\uff00-\\uffef]';
const NO_SPACE = new RegExp(`(?<=${WIDE})\\n(?=${WIDE})`, 'g');
const joined = (lines) => lines.trim().replace(NO_SPACE, '').replaceAll('\n', ' ');
const unquoted = (lines) => lines.replace(/^> /gm, '');

/* {texts: by key, sections: [{key, parts: [{key} of a paragraph, or {figure: its name}]}]} */
export function readStory(name, source) {
  const texts = {}, sections = [];
  const keep = (key, lines) => {
    texts[`${name}.${key}`] = joined(lines);
    return `${name}.${key}`;
  };
  const add = {
    names(block) { for (const [, key, words] of block.matchAll(/^- (\w+): (.+)$/gm)) keep(key, words); },
    title(block, words) { sections.push({ key: keep(`${sections.length + 1}`, words), parts: [] }); },
    figure(block, figure, seen, touched) {
      keep(`fig.${figure}`, unquoted(seen));
      keep(`fig.${figure}.try`, unquoted(touched));
      sections.at(-1).parts.push({ figure });
    },
    paragraph(block) {
      const { parts } = sections.at(-1);
      parts.push({ key: keep(`${sections.length}.${parts.filter((part) => part.key).length + 1}`, block) });
    },
  };
  for (const block of source.trim().split('\n\n')) {
    const kind = Object.keys(BLOCKS).find((one) => BLOCKS[one].test(block));
    const isInSection = kind === 'figure' || kind === 'paragraph';
    if (!kind || (kind !== 'title' && isInSection !== sections.length > 0)) {
      throw new Error(`the story ${name}: ${block}`);
    }
    add[kind](...BLOCKS[kind].exec(block));
  }
  return { texts, sections };
}

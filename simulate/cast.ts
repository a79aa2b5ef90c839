/**
 * The model, where no real one is given: a stand-in that plays whichever persona the request is for. It knows nothing,
 * but it shows what a persona is told: it takes up what was said last, by people and by other personas, turns to
 * those it is asked to argue with, and writes as slowly as somebody types. Pure, but for the pace.
 */
import { type ChatBody, lastUserText } from '../test/fakes/model.js';
import type { ModelScript } from '../test/fakes/model-script.js';

/** Characters a second; 0 is all at once. */
export function castOf(pace: number): (body: ChatBody) => ModelScript {
  const CHUNK = 4;
  const slowly = pace === 0 ? {} : { chunkSize: CHUNK, chunkDelayMs: (1_000 * CHUNK) / pace };
  return (body) => {
    const answer = answerTo(body);
    return typeof answer === 'string' ? { text: answer, ...slowly } : answer;
  };
}

interface Line {
  sender: string;
  text: string;
}

function answerTo(body: ChatBody): string | ModelScript {
  const system = body.messages[0]?.content ?? '';
  if (system.startsWith('You decide who answers')) return choice(system, body);
  const words = lastUserText(body);
  if (words.startsWith('Memory flush.')) return 'Nothing to store.';
  const me =
    /(?:Your name here is|^You are) (\p{Lu}.*?)(?:\. You talk with|[:,.])/mu.exec(system)?.[1] ??
    'the persona';
  const company = /Other personas are in this chat, too: (.+?)\. Their/.exec(system)?.[1]?.split(', ') ?? [];
  const heard = linesIn(body);
  const asked = heard.findLast(({ sender }) => !company.includes(sender)) ?? heard.at(-1);
  if (asked === undefined) return `${me} has heard nothing so far.`;
  const last = body.messages.at(-1);
  const can = (name: string) => body.tools?.some((tool) => tool.function.name === name) === true;
  if (last?.role === 'tool' && last.content?.includes('end here without a word')) return { text: '' };
  if (last?.role === 'tool') {
    const told = last.content ?? '';
    return told.startsWith('Added') ? `It is in the log of this chat now, ${asked.sender}.` : told;
  }
  const wish = /\bremember(?: that)? (.+)/i.exec(asked.text)?.[1];
  if (wish !== undefined && can('write_memory')) {
    const content = `${asked.sender}: ${wish}`;
    return { calls: [{ name: 'write_memory', arguments: { scope: 'chat_daily', content } }] };
  }
  if (/\b(?:thanks|thank you|good news)\b/i.test(asked.text) && can('react')) {
    return { calls: [{ name: 'react', arguments: { emoji: '🎉' } }] };
  }
  return spoken({ me, company, heard, asked });
}

interface Part {
  me: string;
  /** The other personas in the chat. */
  company: string[];
  heard: Line[];
  /** What a person said last. */
  asked: Line;
}

function spoken({ me, company, heard, asked }: Part): string {
  if (/\b(what|who)\b.*\b(hear|heard|know|said|miss)/i.test(asked.text)) return recital(me, heard);
  if (/\b(story|long)\b/i.test(asked.text)) return story(me, asked.sender);
  if (/\b(format|formatting|markdown|table)\b/i.test(asked.text)) return SHOWPIECE;
  const other = heard.findLast(({ sender }) => sender !== asked.sender);
  const takesUp = other === undefined ? '' : ` ${takenUp(other)}`;
  const answer = `${asked.sender}, you said “${quoted(asked.text)}”.${takesUp} I am for ${viewOf(me, heard)}.`;
  const rival = /\b(?:argue|debate|quarrel)\b/i.test(asked.text)
    ? company.find((name) => asked.text.toLowerCase().includes(name.toLowerCase()))
    : undefined;
  return rival === undefined ? answer : `${answer} @${rival}, what do you say to that?`;
}

function takenUp({ sender, text }: Line): string {
  const view = /\bI am for ([^.]+)\./.exec(text)?.[1];
  return view === undefined ? `${sender} said “${quoted(text)}”.` : `${sender} is for ${view}.`;
}

const VIEWS = [
  ...['the early boat', 'tea at four', 'the long way round', 'a walk by the water', 'waiting for the rain'],
  ...['lemons with everything', 'the window seat', 'asking the baker', 'a second map', 'the blue door'],
];

/** Its own, and another one the more it has heard. */
function viewOf(me: string, heard: Line[]): string {
  const sum = Array.from(me).reduce(
    (total, letter) => total + (letter.codePointAt(0) ?? 0),
    3 * heard.length,
  );
  return VIEWS[sum % VIEWS.length] ?? '';
}

function recital(me: string, heard: Line[]): string {
  const before = heard.slice(0, -1).slice(-8);
  if (before.length === 0) return `${me} has heard nothing before this.`;
  return [`${me} has heard:`, '', ...before.map(({ sender, text }) => `- ${sender}: ${quoted(text)}`)].join(
    '\n',
  );
}

function story(me: string, listener: string): string {
  const scenes = [
    `${me} begins: there was a harbour where every boat had a name but one.`,
    `People asked the one without a name where it went at night, and it told each of them something else.`,
    `To the baker it spoke of islands, to the pilot of sandbanks, and to the children of lights below the water.`,
    `One evening they all met on the quay and put together what they had heard. It made one map.`,
    `They painted the name on the boat together, ${listener}, and nobody has ever agreed on how it is spelled.`,
  ];
  return scenes.join('\n\n');
}

const SHOWPIECE = [
  'Here is **bold**, _italic_, `code` and a [link](https://example.org).',
  ['| Fruit | Price |', '|---|---|', '| apple | 1 |', '| pear | 2 |'].join('\n'),
  '```js\nconst answer = 42;\n```',
].join('\n\n');

/** Who answers where nobody was named: somebody whose character shares a word with what was said, else the first. */
function choice(system: string, body: ChatBody): string {
  const said = new Set(wordsIn(body.messages.at(-1)?.content ?? ''));
  const present = Array.from(
    system.matchAll(/^<candidate name="([^"]*)"[^>]*>(.*)<\/candidate>$/gm),
    (match) => ({
      name: match[1] ?? '',
      fits: wordsIn(`${match[1]} ${match[2] ?? ''}`).filter((word) => said.has(word)).length,
    }),
  );
  const [best] = present.sort((one, other) => other.fits - one.fits);
  return best?.name ?? 'nobody';
}

function wordsIn(text: string): string[] {
  return text.toLowerCase().match(/\p{L}{5,}/gu) ?? [];
}

/** What others said, as the persona was told it. */
function linesIn(body: ChatBody): Line[] {
  return body.messages
    .filter(({ role }) => role === 'user')
    .flatMap(({ content }) =>
      Array.from(
        (content ?? '').matchAll(/<user_message sender="([^"]*)"[^>]*>([\s\S]*?)<\/user_message>/g),
        (match) => ({ sender: plain(match[1] ?? ''), text: ownWords(plain(inside(match[2] ?? ''))) }),
      ),
    );
}

/** Without the element that says whose words are passed on. */
function inside(content: string): string {
  return content.replaceAll(/<\/?forwarded\b[^>]*>/g, '');
}

/** Without what is answered, and without a mention of the account, which everybody has read. */
function ownWords(text: string): string {
  return text
    .replace(/^\[in reply to [^\n]*\]\n/, '')
    .replace(/^@(?:coterie\w*|me)\s+/i, '')
    .trim();
}

function plain(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&');
}

function quoted(text: string): string {
  // Whoever was called there is not called again.
  const line = text.replaceAll(/\s+/g, ' ').replaceAll('@', '').trim();
  return line.length <= 60 ? line : `${line.slice(0, 59)}…`;
}

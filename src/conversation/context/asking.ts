/**
 * Step 4 of the route: what form a message has, which shifts how relevant a memory must be to be told. What is relevant
 * the statistics of the chat decide; a false question costs a line, so only what is clearly small talk is not searched.
 * Words are compared in the language that the message is most likely in, because "on" and "die" are words of several. Pure.
 */
import { functionWordsIn, languagesOf, withoutUnspacedFrames } from '../../core/phrase.js';
import { FORMS, type Form, UNSPACED_FORMS } from './forms.js';

/**
 * `question`: it asks for something that somebody may have said. `perhaps`: it is marked as a question, and little says
 * of what. `moment`: it is about the one who is asked, or what is to happen now. `small talk`: nothing but greetings and
 * the like. `remark`: anything else.
 */
export type Asking = 'question' | 'perhaps' | 'remark' | 'moment' | 'small talk';

const RUN = /[\p{L}\p{M}]+/gu;
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/u;
const MARK = /[?？؟¿]/;

export function askingOf(message: string): Asking {
  const text = plainly(message);
  const has = kindsIn(text);
  if (has('told')) return 'question';
  if (!has('own') && (has('phatic') || has('moment')) && !hasContent(text)) return 'small talk';
  // Without a mark only what begins like a question, or asks of one's own before it says more: "c'est quand mon train".
  // "You won't believe how tired I am" says it.
  const opening = runsOf(text.split(/[,.;:!]/, 1)[0] ?? '').slice(0, OPENING_WORDS);
  const asksOfOwn = has('own') && kindsIn(opening.join(' '))('asks');
  const isClear =
    UNSPACED.test(text) || asksOfOwn || (opensWith(text, 'asks') && !opensWith(text, 'exclaims'));
  const asks = has('asks') && (MARK.test(text) || isClear);
  if (has('moment') && !has('own')) return 'moment';
  if (asks) return 'question';
  if (!MARK.test(text)) return 'remark';
  return has('own') ? 'question' : 'perhaps';
}

/** A question without a mark asks by then. */
const OPENING_WORDS = 3;

/** Words too few to say what a question is about, apart from those that only ask. */
const SHORT_WORDS = 5;
const SHORT_CHARS = 10;

/** Whether a message can only be understood with what was said before it. */
export function goesOn(message: string): boolean {
  const text = plainly(message);
  if (kindsIn(text)('them') || opensWith(text, 'and')) return true;
  return UNSPACED.test(text) && !/\s/.test(text)
    ? [...text].length <= SHORT_CHARS
    : text.split(/\s+/).length <= SHORT_WORDS;
}

function plainly(message: string): string {
  return message.trim().normalize('NFKC').replaceAll('’', "'").toLowerCase();
}

function runsOf(text: string): string[] {
  return text.match(RUN) ?? [];
}

function kindsIn(text: string): (kind: Form) => boolean {
  const runs = runsOf(text);
  const isOf = formsOf(runs);
  return (kind) =>
    runs.some((run) => isOf(run, kind)) || UNSPACED_FORMS[kind].some((part) => text.includes(part));
}

/** A message of no known function word can be in any language. */
function formsOf(runs: string[]): (run: string, kind: Form) => boolean {
  const spoken = languagesOf(runs);
  const forms = Object.entries(FORMS).filter(
    ([language]) => spoken.length === 0 || spoken.some((each) => each === language),
  );
  return (run, kind) => forms.some(([, form]) => form[kind].has(run));
}

/** After what only joins it to what was said before. */
function opensWith(text: string, kind: Form): boolean {
  const runs = runsOf(text);
  const isOf = formsOf(runs);
  const opening = kind === 'and' ? runs[0] : runs.find((run) => !isOf(run, 'and') && !isOf(run, 'phatic'));
  if (opening === undefined) return false;
  if (kind !== 'exclaims')
    return isOf(opening, kind) || UNSPACED_FORMS[kind].some((part) => text.startsWith(part));
  // "What a day", "was für ein Tag", "quelle belle journée": the language says how.
  const next = runs[runs.indexOf(opening) + 1] ?? '';
  return isOf(`${opening} ${next}`, kind) || isOf(opening, kind);
}

/** Whether a word is left that says what it is about. */
function hasContent(text: string): boolean {
  if (UNSPACED.test(text)) {
    const parts = [...UNSPACED_FORMS.phatic, ...UNSPACED_FORMS.moment].sort((a, b) => b.length - a.length);
    const rest = parts.reduce((left, part) => left.replaceAll(part, ' '), text);
    return /[\p{sc=Han}\p{sc=Katakana}\p{sc=Hangul}]/u.test(withoutUnspacedFrames(rest));
  }
  const runs = runsOf(text);
  const isFunction = functionWordsIn(runs);
  const isOf = formsOf(runs);
  return runs.some(
    (run) => run.length > 1 && !isFunction(run) && !isOf(run, 'phatic') && !isOf(run, 'moment'),
  );
}

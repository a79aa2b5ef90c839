/** The rule-based model if none is configured: everything works without a key. Pure: the same request always leads to the same step. */

import { Fault } from '../core/errors.js';
import type { ModelClient, ModelEvent, ModelMessage, ModelRequest } from '../core/model.js';
import { unescaped } from '../core/origin.js';

const NAME = 'offline';
/** It has no real window; this is when its conversations are compacted. */
const CONTEXT_TOKENS = 128_000;

const INTRODUCTION =
  'I am the built-in offline model of coterie, a small rule-based stand-in. To talk to a real one, set ' +
  'model.base_url, model.name and model.api_key in config.yaml and start again.';

const NO_PICTURES = 'I cannot see pictures: that takes a real model, one with vision.';

const ONLY_FORWARDED =
  'Those are somebody else’s words: I leave them be. Ask me for help to see what I can do.';

export function createOfflineModel(): ModelClient {
  return {
    async *stream(request, signal): AsyncGenerator<ModelEvent> {
      if (signal.aborted) {
        yield { kind: 'failed', fault: new Fault('model_unreachable', 'The offline model was stopped.') };
        return;
      }
      const step = nextStep(request);
      if ('reply' in step) {
        for (const delta of piecesOf(step.reply)) yield { kind: 'text', delta };
        yield { ...done, text: step.reply, calls: [] };
        return;
      }
      const { name, arguments: args } = step.call;
      const call = { id: `offline${request.messages.length}`, name, arguments: JSON.stringify(args) };
      yield { ...done, text: '', calls: [call] };
    },

    contextTokens: () => CONTEXT_TOKENS,

    async check() {
      const advice =
        'no model is configured: set model.base_url, model.name and model.api_key in config.yaml';
      return { identity: 'the built-in offline model', warnings: [advice] };
    },
  };
}

/** One line at a time, as a real model streams. */
function piecesOf(text: string): string[] {
  return text.match(/[^\n]*\n+|[^\n]+$/g) ?? [];
}

const done = { kind: 'done', usage: null, model: NAME, truncated: false } as const;

function nextStep(request: ModelRequest): Step {
  const summary = summaryFor(request.messages.at(-1)?.content ?? '');
  if (summary !== null) return { reply: summary };
  const situation = situationOf(request);
  // A flush asks to store facts before older messages leave the window; this model stores them at once.
  if (situation.said.at(-1)?.startsWith('Memory flush.')) return { reply: 'Nothing to store.' };
  const step = stepFor(situation);
  return 'reply' in step && situation.first ? { reply: `${INTRODUCTION}\n\n${step.reply}` } : step;
}

function stepFor(situation: Situation): Step {
  const intent = intentOf(situation.said);
  if (intent.kind === 'save') return saveStep(intent.facts, situation);
  if (intent.kind === 'recall') return recallStep(situation);
  if (situation.pictures) return { reply: NO_PICTURES };
  if (situation.said.length === 0) return { reply: ONLY_FORWARDED };
  return { reply: smallTalk(situation.said.at(-1) ?? '') };
}

interface Situation {
  /** The last speaker's words since the last reply, oldest first, unescaped; without forwarded ones. */
  said: string[];
  pictures: boolean;
  /** Whether nothing was answered in this conversation yet. */
  first: boolean;
  /** Tool calls of this answer so far, with their results (null: no result). */
  done: { name: string; arguments: string; result: string | null }[];
  offers(tool: string): boolean;
}

function situationOf(request: ModelRequest): Situation {
  const { messages } = request;
  const last = messages.findLastIndex((message) => message.role === 'user');
  const results = new Map(
    messages.flatMap((message) =>
      message.role === 'tool' ? [[message.callId, unescaped(message.content)]] : [],
    ),
  );
  const asked = messages[last];
  return {
    said: lastSpeakersWords(asked?.content ?? ''),
    pictures: asked?.role === 'user' && asked.images !== undefined,
    first: !isAnswered(messages.slice(0, Math.max(last, 0))),
    done: messages.slice(last + 1).flatMap((message: ModelMessage) =>
      message.role === 'assistant'
        ? message.calls.map(({ id, name, arguments: args }) => ({
            name,
            arguments: args,
            result: results.get(id) ?? null,
          }))
        : [],
    ),
    offers: (name) => request.tools.some((tool) => tool.name === name),
  };
}

/** Whether there was a reply after a person had spoken; a greeting does not count. */
function isAnswered(before: ModelMessage[]): boolean {
  const spoken = before.findIndex(
    ({ role, content }) => role === 'user' && content.includes('<user_message'),
  );
  return spoken >= 0 && before.slice(spoken).some(({ role }) => role === 'assistant');
}

/** Other people's overheard words may come first in the same message. */
function lastSpeakersWords(content: string): string[] {
  const marked = [...content.matchAll(/<user_message\b([^>]*)>([\s\S]*?)<\/user_message>/g)];
  if (marked.length === 0) return [content.trim()];
  const lines = marked.map(([, attributes = '', words = '']) => ({
    sender: /sender="([^"]*)"/.exec(attributes)?.[1] ?? '',
    words: forwardIn(words) === null ? unescaped(words).trim() : null,
  }));
  const speaker = lines.at(-1)?.sender;
  const others = lines.findLastIndex((line) => line.sender !== speaker);
  return lines.slice(others + 1).flatMap((line) => line.words ?? []);
}

/** The forwarded part of a person's message; null if these are their own words. */
function forwardIn(inside: string): { from: string; words: string } | null {
  const found = /^<forwarded(?: from="([^"]*)")?[^>]*>([\s\S]*)<\/forwarded>$/.exec(inside);
  return found && { from: found[1] ?? '', words: found[2] ?? '' };
}

type Intent = { kind: 'save'; facts: string[] } | { kind: 'recall' } | { kind: 'talk' };

const RECALL = [
  /\bwhat (do|can|did|have) you (still )?(remember|know about|know of|saved|stored|remembered|have in)/i,
  /\b(do|did) you (still )?remember\b/i,
  /\bremember (anything|what|who|where|which)\b/i,
  /\bwhat you (still )?(remember|know about me)\b/i,
  /\bwhat('|’| i)s in (your|my) memory\b/i,
  /\bshow (me )?(your|my) memory\b/i,
  /\bwas (weißt|weisst) du (noch )?(über|von) mi/i,
  /\bwas hast du dir gemerkt\b/i,
  /\bworan erinnerst du dich\b/i,
  /\bque sais-tu (de|sur) moi\b|\bde quoi te souviens-tu\b/i,
  /\bqué (recuerdas|sabes de mí)/i,
  /\b(che )?cosa (ricordi|sai di me)\b/i,
  /\bo que (você )?(lembra|sabe (de|sobre) mim)\b/i,
  /\bwat (weet je (nog )?(van|over) mij|herinner je je)\b/i,
  /你(还)?(记得|知道我)(些|的)?什么/,
];

/** The start of a clause, so that "I remember that day" is no such request. */
const START = String.raw`(?:^|[.!?,;:]\s*|\b(?:please|can you|could you|would you|will you|want you to|also|and)\s+)`;

const SAVE = [
  String.raw`(?:remember|(?:don['’]?t|do not|never) forget)(?:\s+that\b|\s*:)?[\s,:]+(.+)`,
  String.raw`(?:keep in mind|(?:make a )?note)(?:\s+that\b|\s*:)[\s,:]*(.+)`,
  String.raw`(?:bitte )?(?:merk(?:e)? dir|vergiss nicht|denk(?:e)? daran)(?: bitte)?[\s,:]+(?:dass|daß)?\s*(.+)`,
  String.raw`(?:souviens-toi|rappelle-toi|retiens|n['’]oublie pas)(?:\s+bien)?\s+(?:que\s+|qu['’])(.+)`,
  String.raw`(?:recuerda|acuérdate de|no olvides)\s+que\s+(.+)`,
  String.raw`(?:ricorda(?:ti)?|non dimenticare)\s+che\s+(.+)`,
  String.raw`(?:lembr[ea](?:-te|-se)?|não (?:te |se )?esqueç[ao]s?)\s+(?:de\s+)?que\s+(.+)`,
  String.raw`(?:onthoud|vergeet niet)\s+dat\s+(.+)`,
].map((wording) => new RegExp(START + wording, 'im'));

const SAVE_CHINESE = /(?:^|[，。！？,.!?\s])请?(?:你)?(?:记住|别忘了)[，：,:\s]*(.+)/m;

/** Pure. Recall wins over saving: "do you remember that I like tea?" is a question. */
function intentOf(said: string[]): Intent {
  const facts: string[] = [];
  for (const text of said) {
    if (RECALL.some((wording) => wording.test(text))) return { kind: 'recall' };
    const fact = factIn(text);
    if (fact !== null && !facts.includes(fact)) facts.push(fact);
  }
  return facts.length > 0 ? { kind: 'save', facts } : { kind: 'talk' };
}

/** The fact to save, on one line; null if there is none. */
function factIn(text: string): string | null {
  for (const wording of [...SAVE, SAVE_CHINESE]) {
    const fact = wording.exec(text)?.[1]?.replace(/\s+/g, ' ').trim();
    if (fact) return fact;
  }
  return null;
}

type Step = { call: { name: string; arguments: object } } | { reply: string };

const READ = 'read_tiered_memory';
const WRITE = 'write_tiered_memory';
const LONGEST_FACT = 1_000;
const LONGEST_RECALL = 3_000;

/** Reads tier 1, writes it with the new lines, and confirms only what the tool's answer then shows. */
function saveStep(facts: string[], situation: Situation): Step {
  if (!situation.offers(READ) || !situation.offers(WRITE)) {
    return { reply: 'I cannot save that: I was given no memory tools for this message.' };
  }
  if (facts.some((fact) => fact.length > LONGEST_FACT)) {
    return { reply: 'That is too long for me to remember. Please put it into a sentence or two.' };
  }
  const read = situation.done.find((call) => call.name === READ);
  if (read === undefined) return { call: { name: READ, arguments: { tier: 1 } } };
  if (failed(read)) return { reply: `I could not save that. The memory tool answered: ${firstLine(read)}` };

  const write = situation.done.find((call) => call.name === WRITE);
  if (write === undefined) {
    const text = memoryText(read);
    const fresh = facts.filter((fact) => !hasLine(text, fact));
    if (fresh.length === 0) return { reply: `I have that already:\n\n${listed(facts)}` };
    const content = [text, ...fresh.map((fact) => `- ${fact}`)].filter((line) => line !== '').join('\n');
    return { call: { name: WRITE, arguments: { tier: 1, content } } };
  }
  return facts.every((fact) => hasLine(write.result ?? '', fact))
    ? { reply: `Saved to my long-term memory:\n\n${listed(facts)}` }
    : { reply: `I could not save that. The memory tool answered: ${firstLine(write)}` };
}

function recallStep(situation: Situation): Step {
  const whole = situation.offers('read_memory');
  if (!whole && !situation.offers(READ)) {
    return { reply: 'I cannot look: I was given no memory tools for this message.' };
  }
  const read = situation.done[0];
  if (read === undefined) {
    return whole
      ? { call: { name: 'read_memory', arguments: { scope: 'chat' } } }
      : { call: { name: READ, arguments: { tier: 1 } } };
  }
  if (failed(read)) return { reply: `I cannot read my memory. The tool answered: ${firstLine(read)}` };
  const remembered = memoryText(read)
    .split('\n')
    .filter((line) => !/^#{1,2}\s/.test(line))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
  if (remembered === '') return { reply: 'I remember nothing yet. Tell me "remember that …".' };
  const beginning = remembered.slice(0, LONGEST_RECALL).replace(/[\ud800-\udbff]$/, '');
  const shown =
    beginning.length < remembered.length - 1 ? `${beginning}…\n\n(and more, in MEMORY.md)` : remembered;
  return { reply: `This is what I remember:\n\n${shown}` };
}

type Call = Situation['done'][number];

/** For an empty tier or file, the tool answers with a remark in brackets. */
function memoryText(read: Call): string {
  const text = (read.result ?? '').trim();
  return /^\([^\n]*\)$/.test(text) ? '' : text;
}

/** The result of a failed tool begins with its name. */
function failed(read: Call): boolean {
  return read.result === null || read.result.startsWith(`${read.name} failed`);
}

function hasLine(text: string, fact: string): boolean {
  return text.split('\n').some((line) => line.trim() === `- ${fact}`);
}

function listed(facts: string[]): string {
  return facts.map((fact) => `- ${fact}`).join('\n');
}

function firstLine(call: Call): string {
  return call.result?.split('\n')[0] || 'nothing';
}

const HELP =
  'Tell me "remember that I prefer tea" and I write it into my memory; ask "what do you remember?" and I read ' +
  'it to you. /help lists the commands of this chat. For real conversation, connect a real model.';

/** The first match answers, so narrower patterns come first. */
const ANSWERS: { to: RegExp; reply: string }[] = [
  { to: /^(?:[\p{Emoji_Presentation}\p{Extended_Pictographic}\s]|\u200d|\ufe0f)+$/u, reply: '🙂' },
  {
    to: /\b(who|what) are you\b|\bare you (a |an )?(bot|ai|human|real|person|machine|robot)\b|\bwhich model\b/i,
    reply: 'I am the built-in offline model: a small set of rules, no language model and no person.',
  },
  { to: /\bhelp\b|\bwhat can you do\b|\bhow does (this|it) work\b|^\s*\?+\s*$/i, reply: HELP },
  { to: /\bhow are you\b|\bhow('|’)?s it going\b/i, reply: 'All my rules are in order, thank you. And you?' },
  { to: /\bthank(s| you)\b|\bthx\b|\bdanke\b|\bmerci\b|\bgracias\b|\bgrazie\b/i, reply: 'You are welcome.' },
  {
    to: /^\W*(good ?)?(bye|night|goodbye|see you|ciao|tschüss|au revoir|adiós)\b/i,
    reply: 'Goodbye! What you asked me to remember stays in memory.',
  },
  {
    to: /^\W*(hi|hello|hey|hiya|howdy|hallo|moin|salut|bonjour|hola|ciao|olá|good (morning|afternoon|evening))\b|^(你好|こんにちは|привет)/iu,
    reply: 'Hello! Ask me for help to see what I can do.',
  },
  {
    to: /^\W*(yes|no|ok|okay|yep|nope|sure|fine|good|great|nice|cool|well)\W*$/i,
    reply: 'Noted. Ask me for help to see what I can do.',
  },
];

const QUOTED = 160;

function smallTalk(said: string): string {
  const known = ANSWERS.find((answer) => answer.to.test(said));
  if (known !== undefined) return known.reply;
  if (said === '') return 'That was an empty message, so I have nothing to answer.';
  const question = said.endsWith('?') ? 'I have no answer to that' : 'That goes beyond my few rules';
  return `You said: "${quoted(said)}". ${question}; ask me for help to see what I can do.`;
}

/** One line, never cut within a character. */
function quoted(said: string): string {
  const line = said
    .slice(0, QUOTED * 4)
    .replace(/\s+/g, ' ')
    .trim();
  const characters = [...line];
  return characters.length <= QUOTED ? line : `${characters.slice(0, QUOTED).join('')}…`;
}

const LINES = 40;
const LINE_CHARS = 160;

/** null if the request is not for a summary. Pure. */
function summaryFor(content: string): string | null {
  if (!content.endsWith('Conversation summary: write the new one.')) return null;
  const before = /<summary_so_far>\n([\s\S]*?)\n<\/summary_so_far>/.exec(content)?.[1] ?? '';
  const known = unescaped(before)
    .split('\n')
    .filter((line) => line.startsWith('- '));
  const said = [...content.matchAll(/<user_message sender="([^"]*)"[^>]*>([\s\S]*?)<\/user_message>/g)].map(
    ([, name = '', words = '']) => {
      const forward = forwardIn(words);
      if (forward === null) return `- ${name}: ${oneLine(unescaped(words))}`;
      return `- ${name}, forwarding ${forward.from || 'somebody'}: ${oneLine(unescaped(forward.words))}`;
    },
  );
  return ['## Facts', ...[...known, ...said].slice(-LINES)].join('\n');
}

function oneLine(words: string): string {
  const characters = [...words.replaceAll(/\s+/g, ' ').trim()];
  return characters.length <= LINE_CHARS
    ? characters.join('')
    : `${characters.slice(0, LINE_CHARS).join('')}…`;
}

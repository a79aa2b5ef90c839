/** The rule-based model if none is configured: everything works without a key. Pure: the same request always leads to the same step. */

import { cutAt } from '../core/cut.js';
import { Fault } from '../core/errors.js';
import type { ModelClient, ModelEvent, ModelMessage, ModelRequest } from '../core/model.js';
import { unescaped } from '../core/origin.js';

const NAME = 'offline';
/** It has no real window; this is when its conversations are compacted. */
const CONTEXT_TOKENS = 128_000;

const INTRODUCTION =
  'I am the built-in offline model of coterie, a small rule-based stand-in. To talk to a real one, ' +
  'open Setup on the board, run `coterie setup` in a terminal, or set model.base_url, model.name and model.api_key in config.yaml.';

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
        yield { kind: 'text', delta: step.reply };
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
        'no model is configured: open Setup on the board, run `coterie setup`, or set model.base_url, model.name and model.api_key';
      return { identity: 'the built-in offline model', warnings: [advice] };
    },
  };
}

const done = { kind: 'done', usage: null, model: NAME, truncated: false } as const;

type Step = { call: { name: string; arguments: object } } | { reply: string };

function nextStep(request: ModelRequest): Step {
  const summary = summaryFor(request.messages.at(-1)?.content ?? '');
  if (summary !== null) return { reply: summary };
  const situation = situationOf(request);
  // A flush asks to store facts before older messages leave the window; this model stores them at once.
  if (situation.said.at(-1)?.startsWith('Memory flush.')) return { reply: 'Nothing to store.' };
  const step = stepFor(situation);
  return 'reply' in step && situation.isFirst ? { reply: `${INTRODUCTION}\n\n${step.reply}` } : step;
}

/** Recall wins over saving: "do you remember that I like tea?" is a question. */
function stepFor(situation: Situation): Step {
  const { said, hasPictures } = situation;
  if (said.some((text) => RECALL.some((wording) => wording.test(text)))) return recallStep(situation);
  const facts = [...new Set(said.flatMap((text) => factIn(text) ?? []))];
  if (facts.length > 0) return saveStep(facts, situation);
  if (hasPictures) return { reply: NO_PICTURES };
  return { reply: said.length === 0 ? ONLY_FORWARDED : smallTalk(said.at(-1) ?? '') };
}

interface Situation {
  /** The last speaker's words since the last reply, oldest first, unescaped; without forwarded ones. */
  said: string[];
  hasPictures: boolean;
  /** Nothing was answered in this conversation yet. */
  isFirst: boolean;
  /** Results of this answer's tool calls so far, by tool. */
  results: ReadonlyMap<string, string>;
  offers(tool: string): boolean;
}

function situationOf({ messages, tools }: ModelRequest): Situation {
  const last = messages.findLastIndex((message) => message.role === 'user');
  const asked = messages[last];
  const called = new Map<string, string>();
  const results = new Map<string, string>();
  for (const message of messages.slice(last + 1)) {
    if (message.role === 'assistant') for (const { id, name } of message.calls) called.set(id, name);
    if (message.role !== 'tool') continue;
    results.set(called.get(message.callId) ?? '', unescaped(message.content));
  }
  return {
    said: lastSpeakersWords(asked?.content ?? ''),
    hasPictures: asked?.role === 'user' && asked.images !== undefined,
    isFirst: !isAnswered(messages.slice(0, Math.max(last, 0))),
    results,
    offers: (name) => tools.some((tool) => tool.name === name),
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

/** The fact to save, on one line; null if there is none. */
function factIn(text: string): string | null {
  for (const wording of [...SAVE, SAVE_CHINESE]) {
    const fact = wording.exec(text)?.[1]?.replace(/\s+/g, ' ').trim();
    if (fact) return fact;
  }
  return null;
}

const READ = 'read_tiered_memory';
const WRITE = 'write_tiered_memory';
const LONGEST_FACT = 1_000;
const LONGEST_RECALL = 3_000;

/** Reads tier 1, writes it with the new lines, and confirms only what the tool's answer then shows. */
function saveStep(facts: string[], { offers, results }: Situation): Step {
  if (!offers(READ) || !offers(WRITE)) {
    return { reply: 'I cannot save that: I was given no memory tools for this message.' };
  }
  if (facts.some((fact) => fact.length > LONGEST_FACT)) {
    return { reply: 'That is too long for me to remember. Please put it into a sentence or two.' };
  }
  const read = results.get(READ);
  if (read === undefined) return { call: { name: READ, arguments: { tier: 1 } } };
  if (isFailed(READ, read)) return { reply: `I could not save that. ${answerOf(read)}` };

  const written = results.get(WRITE);
  if (written === undefined) {
    const text = memoryText(read);
    const fresh = facts.filter((fact) => !hasLine(text, fact));
    if (fresh.length === 0) return { reply: `I have that already:\n\n${listed(facts)}` };
    const content = [text, listed(fresh)].filter((part) => part !== '').join('\n');
    return { call: { name: WRITE, arguments: { tier: 1, content } } };
  }
  return facts.every((fact) => hasLine(written, fact))
    ? { reply: `Saved to my long-term memory:\n\n${listed(facts)}` }
    : { reply: `I could not save that. ${answerOf(written)}` };
}

function recallStep({ offers, results }: Situation): Step {
  const tool = ['read_memory', READ].find(offers);
  if (tool === undefined) return { reply: 'I cannot look: I was given no memory tools for this message.' };
  const read = results.get(tool);
  if (read === undefined) {
    return { call: { name: tool, arguments: tool === READ ? { tier: 1 } : { scope: 'chat' } } };
  }
  if (isFailed(tool, read)) return { reply: `I cannot read my memory. ${answerOf(read)}` };
  const remembered = memoryText(read)
    .replace(/^#{1,2}[ \t].*\n?/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
  if (remembered === '') return { reply: 'I remember nothing yet. Tell me "remember that …".' };
  const isLong = remembered.length > LONGEST_RECALL;
  const shown = isLong ? `${cutAt(remembered, LONGEST_RECALL)}…\n\n(and more, in MEMORY.md)` : remembered;
  return { reply: `This is what I remember:\n\n${shown}` };
}

/** For an empty tier or file, the tool answers with a remark in brackets. */
function memoryText(read: string): string {
  return /^\([^\n]*\)$/.test(read.trim()) ? '' : read.trim();
}

function isFailed(tool: string, result: string): boolean {
  return result.startsWith(`${tool} failed`) || /^(?:Not run|Interrupted): /.test(result);
}

function answerOf(result: string): string {
  return `The memory tool answered: ${result.split('\n')[0] || 'nothing'}`;
}

function hasLine(text: string, fact: string): boolean {
  return text.split('\n').some((line) => line.trim() === `- ${fact}`);
}

function listed(facts: string[]): string {
  return facts.map((fact) => `- ${fact}`).join('\n');
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
  { to: /\bthank(s| you)\b|\bthx\b|\bdanke\b|\bmerci\b|\bgracias\b|\bgrazie\b/i, reply: 'You are welcome.' },
  {
    to: /^\W*(hi|hello|hey|hiya|howdy|hallo|moin|salut|bonjour|hola|ciao|olá|good (morning|afternoon|evening))\b|^(你好|こんにちは|привет)/iu,
    reply: 'Hello! Ask me for help to see what I can do.',
  },
];

function smallTalk(said: string): string {
  const known = ANSWERS.find((answer) => answer.to.test(said));
  if (known !== undefined) return known.reply;
  if (said === '') return 'That was an empty message, so I have nothing to answer.';
  const question = said.endsWith('?') ? 'I have no answer to that' : 'That goes beyond my few rules';
  return `You said: "${oneLine(said)}". ${question}; ask me for help to see what I can do.`;
}

const LINES = 40;

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

const LONGEST_LINE = 160;

function oneLine(words: string): string {
  const line = words.replaceAll(/\s+/g, ' ').trim();
  return line.length <= LONGEST_LINE ? line : `${cutAt(line, LONGEST_LINE)}…`;
}

/** The real gateway with model servers that do not end, pack what they send, or refuse what they take a moment later. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeModel, lastUserText, type ModelScript, startFakeModel } from '../fakes/model.js';
import { gemma } from '../fakes/model-servers/gemma.js';
import { groq } from '../fakes/model-servers/groq.js';
import { type ModelServer, tokensIn } from '../fakes/model-servers/server.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { type Stage, stage } from '../harness/telegram.js';

const PING = ': ping\n\n';
const CHUNK = (delta: object) => `data: ${JSON.stringify({ choices: [{ delta, finish_reason: null }] })}\n\n`;
const beats = (after: number, line = PING) => ({ heartbeat: { after, line, everyMs: 50 } });

/** By a word of the message; anything else is echoed. */
const SCRIPTS: Record<string, ModelScript> = {
  comments: beats(0),
  deltas: beats(0, CHUNK({ role: 'assistant', content: '' })),
  finished: { text: 'It is finished.', ...beats(3) },
  marked: { raw: `${CHUNK({ content: 'It is marked.' })}data: [DONE]\n\n` },
  packed: { text: 'It is packed.', packed: 'gzip' },
  preceded: { raw: `\uFEFF${CHUNK({ content: 'It is preceded.' })}data: [DONE]\n\n` },
};

let on: Stage;
let fallback: FakeModel;
let answered = 0;

beforeAll(async () => {
  fallback = await startFakeModel({
    reply: (body) => (/deltas/.test(lastUserText(body)) ? beats(0) : 'From the fallback.'),
  });
  on = await stage({
    model: {
      reply(body) {
        const said = lastUserText(body);
        if (body.messages.at(-1)?.role === 'tool') return 'I looked.';
        if (/looks/.test(said))
          return { calls: [{ name: 'read_memory', arguments: { scope: 'chat_daily' } }], ...beats(3) };
        return Object.entries(SCRIPTS).find(([word]) => said.includes(word))?.[1] ?? 'An answer.';
      },
    },
    config: { model: { timeout_seconds: 0.4, fallbacks: [{ base_url: fallback.url, name: 'second' }] } },
  });
  await on.start();
});
afterAll(async () => {
  await on.close();
  await fallback.close();
});

async function ask(text: string): Promise<string> {
  on.telegram.say({ text });
  answered += 1;
  const all = await on.replies(ANNA.id, answered);
  return all[answered - 1] ?? '';
}

describe('a server that', () => {
  test('goes on with comments for ever is given up for the next', async () => {
    expect(await ask('comments')).toBe('From the fallback.');
  });

  test('goes on with empty deltas, as all others do: the person is told', async () => {
    expect(await ask('deltas')).toContain('took too long');
  });

  test.each([
    ['has finished and goes on with heartbeats', 'finished', 'It is finished.'],
    ['has called a tool, finished, and goes on with heartbeats', 'looks', 'I looked.'],
    ['ends by the mark of its stream alone', 'marked', 'It is marked.'],
    ['packs what it sends', 'packed', 'It is packed.'],
    ['begins with a byte order mark', 'preceded', 'It is preceded.'],
  ])('%s is answered with its own words', async (_, said, words) => {
    expect(await ask(said)).toBe(words);
  });
});

describe.each<[string, () => ModelServer]>([
  ['whose template knows no system message', () => gemma({ on: 'LM Studio' })],
  ['whose arguments fit no schema once', () => groq({ fails: (n) => n === 0, wrong: 'arguments' })],
])('a model %s', (_, server) => {
  test('answers, and is offered tools from then on, too', async () => {
    const other = await stage({ model: { server: server() } });
    try {
      await other.start();
      other.telegram.say({ text: 'hello' });
      // What stands in the system message names the elements that messages stand in, too.
      expect((await other.replies(ANNA.id, 1))[0]).toMatch(/^echo: (.*\n)?hello$/);
      other.telegram.say({ text: 'again' });
      expect((await other.replies(ANNA.id, 2))[1]).toMatch(/again$/);
      expect(other.model.requests.at(-1)?.body.tools?.length).toBeGreaterThan(0);
    } finally {
      await other.close();
    }
  });
});

test('words in a rare script, /reset and plain words make the window of nobody smaller', async () => {
  const counting: ModelServer = {
    name: 'a server that counts three tokens for a rare letter',
    rules: (body) => {
      const rare = JSON.stringify(body.messages).match(/[\u1300-\u13ff]/g)?.length ?? 0;
      return { text: 'Yes.', usage: { prompt_tokens: tokensIn(body) + 3 * rare, completion_tokens: 1 } };
    },
  };
  const other = await stage({ model: { server: counting } });
  try {
    const gateway = await other.start();
    other.telegram.say({ text: 'ᎣᏏᏲ ᏙᎯᏧ '.repeat(450) });
    await other.replies(ANNA.id, 1);
    other.telegram.say({ text: '/reset' });
    await other.replies(ANNA.id, 2);
    for (let n = 0; n < 3; n++) {
      other.telegram.say({ text: `${'rain on the old bridges and tea '.repeat(100)} ${n}` });
      await other.replies(ANNA.id, 3 + n);
    }
    expect(gateway.err()).not.toContain('context window');
  } finally {
    await other.close();
  }
});

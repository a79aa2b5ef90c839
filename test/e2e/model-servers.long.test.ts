/**
 * The real gateway with its real client against the rules of ten real servers: a conversation of forty turns with tools,
 * flushes, compaction and a restart. Each message is answered once and in order, and memory is written once.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ANSWERS, diarist, type Wish } from '../fakes/model-diarist.js';
import { claude } from '../fakes/model-servers/claude.js';
import { deepseek } from '../fakes/model-servers/deepseek.js';
import { gemini3 } from '../fakes/model-servers/gemini3.js';
import { kimi } from '../fakes/model-servers/kimi.js';
import { llamacpp } from '../fakes/model-servers/llamacpp.js';
import { lmstudio } from '../fakes/model-servers/lmstudio.js';
import { mistral } from '../fakes/model-servers/mistral.js';
import { ollama4k } from '../fakes/model-servers/ollama.js';
import { openai } from '../fakes/model-servers/openai.js';
import type { ModelServer } from '../fakes/model-servers/server.js';
import { vllm } from '../fakes/model-servers/vllm.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

const TURNS = 40;
/** In this turn the gateway is killed, between the tool and the answer. */
const KILLED = 20;
const WISHES: Wish[] = ['note', 'plain', 'both', 'note', 'plain'];
const FOLDER = `groups/telegram_${ANNA.id}`;

const wishOf = (n: number): Wish => WISHES[n % WISHES.length] ?? 'plain';
const answer = (n: number) => `${ANSWERS[wishOf(n)]} ${n}`;

/** With enough words that forty of them are too many for a small window. */
const message = (n: number) => `${wishOf(n)} ${n} ${'and so on '.repeat(30)}`;

async function converse(on: Stage, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n++) {
    on.telegram.say({ text: message(n) });
    await on.replies(ANNA.id, n + 1);
  }
}

async function dailyLog(on: Stage): Promise<string[]> {
  // Two files at midnight.
  const files = (await readdir(join(on.home.folder, FOLDER, 'memory'))).sort();
  const texts = await Promise.all(files.map((file) => on.home.read(`${FOLDER}/memory/${file}`)));
  return texts.flatMap((text) => (text ?? '').split('\n'));
}

/** Those with a small window are compacted because of it, the others after so many messages. */
const SMALL = {};
const LARGE = { compact_after_messages: 24, keep_recent_messages: 8 };

describe.each<[string, () => ModelServer, Record<string, number>]>([
  ['OpenAI', openai, LARGE],
  ['OpenAI without the Responses API', () => openai({ responses: false }), LARGE],
  ['Claude', claude, LARGE],
  ['DeepSeek', deepseek, LARGE],
  ['Gemini 3', gemini3, LARGE],
  ['Kimi', kimi, LARGE],
  ['Mistral', mistral, LARGE],
  ['Ollama that cuts', ollama4k, SMALL],
  ['Ollama that refuses', () => ollama4k({ tooLong: 'refused' }), SMALL],
  ['llama.cpp', () => llamacpp({ loading: 1 }), SMALL],
  ['vLLM', () => vllm({ maxModelLen: 6_000 }), SMALL],
  ['LM Studio', lmstudio, SMALL],
])('%s', (_name, server, conversation) => {
  test('forty turns', async () => {
    let isKilled = false;
    const on = await stage({
      model: {
        server: server(),
        reply(body) {
          const script = diarist(body);
          if (isKilled || body.messages.at(-1)?.role !== 'tool' || script.text !== answer(KILLED))
            return script;
          isKilled = true;
          return { stall: 'headers' };
        },
      },
      config: { conversation, memory: { announce: 'off' }, model: { name: 'small' } },
    });
    try {
      const first = await on.start();
      await converse(on, 0, KILLED);
      on.telegram.say({ text: message(KILLED) });
      await eventually(() => isKilled, 'the turn has called its tool');
      await first.stop('SIGKILL');
      const second = await on.start();
      await on.replies(ANNA.id, KILLED + 1);
      await converse(on, KILLED + 1, TURNS);
      await eventually(() => /window compacted/.test(second.err()), 'a window moves after the restart');
      expect(await second.stop()).toBe(0);

      const numbers = Array.from({ length: TURNS }, (_, n) => n);
      expect(on.sentTo(ANNA.id).map((text) => text.split('\n')[0])).toEqual(numbers.map(answer));
      const lines = await dailyLog(on);
      const written = lines.flatMap((line) => /fact (\d+)$/.exec(line)?.[1] ?? []);
      expect(written.map(Number)).toEqual(numbers.filter((n) => wishOf(n) !== 'plain'));
      const flushed = lines.flatMap((line) => /flushed up to (\d+)$/.exec(line)?.[1] ?? []);
      expect(flushed.length).toBeGreaterThanOrEqual(2);
      expect(new Set(flushed).size).toBe(flushed.length);
      expect(first.err() + second.err()).not.toMatch(/did not finish|"level":"error"|"level":50/);
    } finally {
      await on.close();
    }
  }, 60_000);
});

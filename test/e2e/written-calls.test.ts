/** A model whose server leaves its calls in the text: memory is written, people see words alone, owners are asked. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import type { ChatBody, ModelScript } from '../fakes/model.js';
import { ANNA, group } from '../fakes/telegram-chats.js';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

const GARDEN = group(-1001234567890, 'Garden');
const NOTE = (text: string) => ({ scope: 'chat_daily', content: text });
const FORMS: ((text: string) => string)[] = [
  (text) => `<tool_call>\n${JSON.stringify({ name: 'write_memory', arguments: NOTE(text) })}\n</tool_call>`,
  (text) =>
    `<tool_call>\n<function=write_memory>\n<parameter=scope>\nchat_daily\n</parameter>\n<parameter=content>\n${text}\n</parameter>\n</function>\n</tool_call>`,
  (text) => `[TOOL_CALLS][${JSON.stringify({ name: 'write_memory', arguments: NOTE(text) })}]`,
  (text) =>
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write_memory\n\`\`\`json\n${JSON.stringify(NOTE(text))}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  (text) =>
    `<function_calls>\n<invoke name="write_memory">\n<parameter name="scope">chat_daily</parameter>\n<parameter name="content">${text}</parameter>\n</invoke>\n</function_calls>`,
];
const SIGNS = /tool_call|function|TOOL_CALLS|invoke|▁|<\||user_message/;

let on: Stage;
afterEach(() => on?.close());

const askedFor = ({ messages }: ChatBody) =>
  /note (\d)/.exec(messages.findLast(({ role }) => role === 'user')?.content ?? '');

/** Slowly enough that it is seen while it is written. */
const slowly = (text: string): ModelScript => ({ text, chunkSize: 9, chunkDelayMs: 25 });

it('memory is written, and neither a message, an edit nor the transcript holds a sign of it', async () => {
  on = await stage({ config: { memory: { announce: 'off' } } });
  on.model.reply((body) => {
    const n = Number(askedFor(body)?.[1]);
    if (body.messages.at(-1)?.role === 'tool')
      return slowly(`Noted ${n}.<|im_end|>\n<|im_start|>user\nthanks`);
    return slowly(`I will note that, as you have asked me to. ${FORMS[n]?.(`fact ${n}`)}`);
  });
  await on.start();
  for (const n of FORMS.keys()) {
    on.telegram.say({ text: `@${on.telegram.bot.username} note ${n}`, chat: GARDEN });
    await eventually(() => on.sentTo(GARDEN.id).at(-1) === `Noted ${n}.`, `the answer ${n}`);
  }
  const folder = join(on.home.folder, `groups/telegram_${GARDEN.id}/memory`);
  const [file = ''] = await readdir(folder);
  const log = await on.home.read(`groups/telegram_${GARDEN.id}/memory/${file}`);
  for (const n of FORMS.keys()) expect(log).toContain(`fact ${n}`);
  const seen = on.telegram.calls.map((call) => JSON.stringify(call));
  expect(seen.filter((call) => SIGNS.test(call))).toEqual([]);
  const history = on.model.requests.at(-1)?.body.messages.filter(({ role }) => role === 'assistant') ?? [];
  expect(history.map(({ content }) => content ?? '').filter((words) => SIGNS.test(words))).toEqual([]);
  expect(history.some(({ tool_calls }) => tool_calls?.[0]?.function.name === 'write_memory')).toBe(true);
});

it('a command of shell that is written as text asks its owner first, like any', async () => {
  on = await stage({
    config: {
      access: { owners: [`telegram_${ANNA.id}`] },
      tools: { allow: ['memory', 'shell'], shell: { sandbox: 'none' } },
    },
  });
  on.model.reply(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? `So: ${/\d+/.exec(messages.at(-1)?.content ?? '')?.[0]}`
      : '<tool_call>{"name": "shell", "arguments": {"command": "echo $((40 + 2))"}}</tool_call>',
  );
  await on.start();
  on.telegram.say({ text: 'count' });
  const [question = ''] = await on.replies(ANNA.id, 1);
  expect(question).toContain('echo $((40 + 2))');
  const [, id] = /\/approve ([A-Z0-9]+)/.exec(question) ?? [];
  on.telegram.say({ text: `/approve ${id}` });
  await eventually(() => on.sentTo(ANNA.id).some((text) => text.startsWith('So: 42')), 'it has run');
});

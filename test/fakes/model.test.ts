/** The fake keeps its own word: what the end-to-end tests and benches rely on. */
import { afterEach, expect, test } from 'vitest';
import { type FakeModel, startFakeModel } from './model.js';

let fake: FakeModel;
afterEach(async () => {
  await fake.close();
});

const post = (body: object) =>
  fetch(`${fake.url}/chat/completions`, { method: 'POST', body: JSON.stringify(body) });
const user = (content: string) => ({ model: 'm', messages: [{ role: 'user', content }] });

test('echoes the last user message, out of its marks, as it stands there', async () => {
  fake = await startFakeModel();
  const content =
    '<user_message sender="Mia" at="1">a <b> &lt;/event></user_message>\n<user_message sender="Ben" at="2">c</user_message>';
  const answer = await (await post(user(content))).json();
  expect(answer).toMatchObject({ choices: [{ message: { content: 'echo: a <b> &lt;/event>\nc' } }] });
  const stream = await (await post({ ...user('hi'), stream: true })).text();
  expect(stream).toContain('"content":"echo: hi"');
  expect(stream).not.toContain('"usage"');
  expect(stream.endsWith('data: [DONE]\n\n')).toBe(true);
});

test('keeps requests with their times, as many as asked for', async () => {
  fake = await startFakeModel({ keep: 2, delayMs: 20 });
  const before = Date.now();
  for (const content of ['one', 'two', 'three']) await (await post(user(content))).text();
  expect(fake.count()).toBe(3);
  expect(fake.requests.map((request) => request.body.messages[0]?.content)).toEqual(['two', 'three']);
  const [first] = fake.requests;
  expect(first?.at).toBeGreaterThan(before - 5);
  expect((first?.answeredAt ?? 0) - (first?.at ?? 0)).toBeGreaterThan(15);
});

test('a script that throws is a 500 with its words, another path a 404', async () => {
  fake = await startFakeModel({
    reply: () => {
      throw new Error('no script for this');
    },
  });
  const response = await post(user('hi'));
  expect(response.status).toBe(500);
  expect(await response.text()).toContain('no script for this');
  expect((await fetch(`${fake.url}/models`)).status).toBe(404);
});

test('close ends what still stalls', async () => {
  fake = await startFakeModel({ reply: { stall: 'headers' } });
  const pending = post(user('hi')).catch((error: Error) => error);
  await fake.received(1);
  await fake.close();
  expect(await pending).toBeInstanceOf(Error);
});

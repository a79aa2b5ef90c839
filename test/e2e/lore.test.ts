/** Lorebooks in the compiled gateway, with its thread for patterns. */
import { afterEach, expect, it } from 'vitest';
import { type ChatBody, type FakeModel, startFakeModel } from '../fakes/model.js';
import { type Home, makeHome, run } from '../harness/gateway.js';

let home: Home;
let model: FakeModel;
afterEach(async () => {
  await model.close();
  await home.remove();
});

it('lore joins by keys and patterns, and what explodes is given up', async () => {
  const bodies: ChatBody[] = [];
  model = await startFakeModel({
    reply(body: ChatBody) {
      bodies.push(body);
      return 'I see.';
    },
  });
  home = await makeHome({
    ...{ data_dir: './data', groups_dir: './groups', timezone: 'UTC' },
    model: { base_url: model.url, api_key: 'k', name: 'm' },
  });
  const entries = [
    { keys: ['moon'], content: 'The moon is round.' },
    { keys: ['/^You: a{2,}|[a-z]+: a{2,}/i'], content: 'Long vowels.' },
    { keys: ['/(a+)+$/'], content: 'Never.' },
  ];
  await home.write('groups/terminal_local/lorebooks/sky.json', JSON.stringify({ entries }));
  const gateway = run(home, ['chat']);
  gateway.write('the moon\n');
  gateway.write(`${'a'.repeat(40)}!\n`);
  gateway.write('/lore\n');
  gateway.endInput();
  expect(await gateway.exited, gateway.err()).toBe(0);
  const last = (n: number) => bodies[n]?.messages.at(-1)?.content ?? '';
  expect(last(0)).toContain('The moon is round.');
  expect(last(1)).toContain('Long vowels.');
  expect(last(1)).not.toContain('Never.');
  expect(gateway.out()).toContain('counted as not matching');
});

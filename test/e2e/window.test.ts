/** A model server with less of a window than everybody thought, and the real program. */
import { afterEach, expect, it } from 'vitest';
import { type FakeModel, startFakeModel } from '../fakes/model.js';
import { ollama4k } from '../fakes/model-servers/ollama.js';
import { eventually, type Home, makeHome, run } from '../harness/gateway.js';

let home: Home;
let model: FakeModel;
afterEach(async () => {
  await home.remove();
  await model.close();
});

it('is noticed, kept over a restart, and told and forgotten by doctor', async () => {
  const numCtx = 8_192;
  /** It tells nothing of itself, so that the cut alone shows it. */
  const { pages: _, ...silent } = ollama4k({ numCtx });
  model = await startFakeModel({ server: silent, reply: 'yes' });
  home = await makeHome({
    model: { base_url: model.url, name: 'small' },
    log: { level: 'warn', format: 'json' },
  });
  const chat = run(home, ['chat']);
  for (let n = 0; n < 3; n++) chat.write(`${'a long story of rain and tea '.repeat(400)}\n`);
  chat.endInput();
  expect(await chat.exited).toBe(0);
  expect(chat.out().match(/: yes/g)?.length).toBe(3);
  expect(chat.err()).toContain('cut a long request without a word');
  expect(chat.out().match(/reads only about 8192 tokens/g)?.length, 'whoever sits there is an owner').toBe(1);

  // It is known from the first request on: nothing is cut any more.
  const before = model.count();
  const again = run(home, ['chat']);
  again.write('and now?\n');
  await eventually(() => /: yes/.test(again.out()), 'it has answered');
  for (const { body } of model.requests.slice(before)) expect(silent.cut?.(body)).toBe(body);
  expect(again.err()).not.toContain('cut a long request without a word');
  expect(again.out()).not.toContain('reads only about');

  // Also while it runs, which then reads what is stored anew.
  const doctor = run(home, ['doctor']);
  await doctor.exited;
  expect(doctor.out()).toMatch(
    /^warning model: it has cut requests without a word, so its window counts as \d+ tokens/m,
  );
  expect(doctor.out()).toMatch(/^ok +model: small at .*, with a context window of 128000 tokens/m);
  const later = run(home, ['doctor']);
  await later.exited;
  expect(later.out()).not.toContain('its window counts as');
  again.endInput();
  expect(await again.exited).toBe(0);
});

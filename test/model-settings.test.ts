/** The model client as it is configured: each server with what is set for it, each model with its own window. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { loadConfig } from '../src/config.js';
import type { ModelClient } from '../src/core/model.js';
import type { Store } from '../src/core/store.js';
import { openFile } from '../src/parts.js';
import { createModel } from '../src/servers.js';
import { type FakeModel, startFakeModel } from './fakes/model.js';
import { quietLog } from './harness/quiet.js';
import { answered, ask } from './models/helpers.js';

let folder: string;
let first: FakeModel;
let second: FakeModel;
let store: Store;
let model: ModelClient;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-settings-'));
  first = await startFakeModel({ reply: 'one' });
  second = await startFakeModel({ reply: 'two' });
  await writeFile(
    join(folder, 'config.yaml'),
    `model:
  base_url: ${first.url}
  name: own
  context_tokens: 50000
  input_price: 1
  output_price: 2
  temperature: 0.8
  extra: { top_p: 0.9 }
  headers: { X-Title: coterie }
  choices: [small, { name: large, context_tokens: 400000, output_price: 9 }]
  fallbacks: [{ base_url: "${second.url}", name: spare, context_tokens: 8000, input_price: 0.5, extra: { top_k: 5 } }]
`,
  );
  const { config } = await loadConfig({ environment: {}, workingDirectory: folder });
  store = await openFile(config, quietLog, ':memory:');
  model = await createModel(config, store, quietLog);
});
afterEach(async () => {
  await store.close();
  await first.close();
  await second.close();
  await rm(folder, { recursive: true });
});

it('each model has the window that is set for it', () => {
  expect([undefined, 'own', 'small', 'large', 'another'].map((name) => model.contextTokens(name))).toEqual([
    50_000, 50_000, 50_000, 400_000, 50_000,
  ]);
});

it('a fallback has its own settings, none of the first server’s, and its own window', async () => {
  await answered(model, ask('?'));
  first.reply({ status: 401 });
  await answered(model, ask('?'));
  expect(first.requests[0]?.raw).toMatchObject({ model: 'own', temperature: 0.8, top_p: 0.9 });
  expect(first.requests[0]?.headers['x-title']).toBe('coterie');
  const [asked] = second.requests;
  expect(asked?.raw).toMatchObject({ model: 'spare', top_k: 5 });
  expect(asked?.raw).not.toHaveProperty('temperature');
  expect(asked?.raw).not.toHaveProperty('top_p');
  expect(asked?.headers).not.toHaveProperty('x-title');
  expect(model.contextTokens(), 'while it answers').toBe(8_000);
});

it('an answer has the prices of the model and the server that gave it', async () => {
  const pricesOf = async (name?: string) => {
    const request = { ...ask('?'), ...(name === undefined ? {} : { model: name }) };
    for await (const event of model.stream(request, new AbortController().signal)) {
      if (event.kind === 'done' || event.kind === 'failed') return event.prices;
    }
    throw new Error('no end');
  };
  expect(await pricesOf()).toEqual({ input: 1, output: 2 });
  expect(await pricesOf('large')).toEqual({ input: 0, output: 9 });
  expect(await pricesOf('small'), 'nobody has said what it costs').toEqual({ input: 1, output: 2 });
  first.reply({ status: 401 });
  expect(await pricesOf('large')).toEqual({ input: 0.5, output: 0 });
  second.reply({ status: 401 });
  expect(await pricesOf()).toEqual({ input: 0.5, output: 0 });
});

/** Around the model clients under test: a log that is kept, what was learnt in memory, and a stream read to its end. */

import type { Log } from '../../src/core/log.js';
import type { ModelClient, ModelEvent, ModelMessage, ModelRequest } from '../../src/core/model.js';
import { piecesOf } from '../../src/models/attempt.js';
import { createOpenAiModel } from '../../src/models/openai.js';
import { type Body, type ChatRequest, chatBody } from '../../src/models/request.js';
import { type OpenAiModelOptions, ServerWays } from '../../src/models/server-ways.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type FakeModel, type FakeModelOptions, startFakeModel } from '../fakes/model.js';
import type { ModelServer } from '../fakes/model-servers/server.js';
import { straight } from '../harness/straight.js';

export function keptLog(): Log & { lines: string[] } {
  const lines: string[] = [];
  const note = (fields: object, message: string) => {
    lines.push(`${message} ${JSON.stringify(fields)}`);
  };
  return { lines, debug: note, info: note, warn: note, error: note };
}

export function memoryStorage(initial: string | null = null) {
  let value = initial;
  return {
    load: async () => value,
    /** As the store does, which two processes share. */
    replace: async (from: string | null, to: string) => {
      if (value !== from) return false;
      value = to;
      return true;
    },
    read: () => value,
  };
}

export function ask(text: string, more: Partial<ModelRequest> = {}): ModelRequest {
  return { messages: [{ role: 'user', content: text }], tools: [], ...more };
}

export const LOOK_UP = {
  name: 'look_up',
  description: 'Looks something up.',
  parameters: { type: 'object', properties: { word: { type: 'string' } } },
};

/** The last event, after checking that the stream kept the port's promise. */
export async function outcome(
  client: ModelClient,
  request: ModelRequest,
  signal: AbortSignal = new AbortController().signal,
): Promise<ModelEvent & { kind: 'done' | 'failed' }> {
  let text = '';
  let last: (ModelEvent & { kind: 'done' | 'failed' }) | undefined;
  for await (const event of client.stream(request, signal)) {
    if (last !== undefined) throw new Error(`an event after the last one: ${JSON.stringify(event)}`);
    if (event.kind === 'text') text += event.delta;
    else if (event.kind === 'restart') text = '';
    else last = event;
  }
  if (last === undefined) throw new Error('the stream ended without a last event');
  if (last.kind === 'done' && last.text !== text) throw new Error('the text is not its deltas joined');
  return last;
}

export async function answered(client: ModelClient, request: ModelRequest, signal?: AbortSignal) {
  const event = await outcome(client, request, signal);
  if (event.kind === 'failed') throw event.fault;
  return event;
}

export async function fault(client: ModelClient, request: ModelRequest, signal?: AbortSignal) {
  const event = await outcome(client, request, signal);
  if (event.kind === 'done') throw new Error(`answered: ${event.text}`);
  return event.fault;
}

/** A request as a server reads it. */
export const written = (request: ChatRequest) => JSON.parse(asSent(chatBody(request)));

export const asSent = (body: Body) => Buffer.concat([...piecesOf(body)]).toString();

export interface Bench {
  fake: FakeModel;
  clock: ManualClock;
  log: ReturnType<typeof keptLog>;
  /** What was learnt, as it is stored. */
  learnt: ReturnType<typeof memoryStorage>;
  client: ReturnType<typeof createOpenAiModel>;
  /** Another client of the same server, as after a restart. */
  another(options?: Partial<OpenAiModelOptions>): ReturnType<typeof createOpenAiModel>;
}

export const KEY = 'sk-not-for-anybodys-eyes';

export async function openBench(
  reply: FakeModelOptions['reply'],
  options: Partial<OpenAiModelOptions> = {},
  rules?: ModelServer,
): Promise<Bench> {
  const fake = await startFakeModel({
    ...(reply === undefined ? {} : { reply }),
    ...(rules === undefined ? {} : { server: rules }),
  });
  const clock = manualClock();
  const log = keptLog();
  const learnt = memoryStorage();
  const another = (more: Partial<OpenAiModelOptions> = {}) =>
    createOpenAiModel({
      outward: straight,
      server: { baseUrl: fake.url, apiKey: KEY, name: 'small' },
      maxOutputTokens: 500,
      timeoutSeconds: 60,
      clock,
      log,
      ways: new ServerWays(learnt, log),
      contextTokens: () => null,
      tellsWindow: async () => null,
      random: () => 0,
      ...options,
      ...more,
    });
  return { fake, clock, log, learnt, client: another(), another };
}

/** A turn with calls, under ids of our own as the turn gives them, and its results. `last`: how it ended. */
export async function turnWithCalls(
  client: ModelClient,
  request: (messages: ModelMessage[]) => ModelRequest,
  asked: ModelMessage[],
): Promise<{ messages: ModelMessage[]; last: Awaited<ReturnType<typeof answered>> }> {
  const first = await answered(client, request(asked));
  const calls = first.calls.map((call, n) => ({ ...call, id: `${asked.length - 1}00000000${n}`.slice(-9) }));
  const called: ModelMessage[] = [
    ...asked,
    { role: 'assistant', content: first.text, calls, ...(first.echo && { echo: first.echo }) },
    ...calls.map(({ id }): ModelMessage => ({ role: 'tool', callId: id, content: 'found' })),
  ];
  const last = await answered(client, request(called));
  return { messages: [...called, { role: 'assistant', content: last.text, calls: [] }], last };
}

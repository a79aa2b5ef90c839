/** The journal of the real gateway: its file, secrets in it, a kill, and the stream in Redis. */
import { appendFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, expect, it } from 'vitest';
import { startRedis } from '../fakes/redis.js';
import { eventually, type Home, makeHome, type Running, run } from '../harness/gateway.js';
import { ENTRY, linesOf } from '../harness/journal-shapes.js';
import { describeWithRedis } from '../harness/redis.js';

let home: Home;
let gateway: Running | undefined;
afterEach(async () => {
  await gateway?.stop('SIGKILL');
  await home.remove();
});

const log = () => linesOf(join(home.folder, 'data/working.log'));
async function said(text: string, environment: Record<string, string> = {}): Promise<Running> {
  gateway = run(home, ['chat'], environment);
  gateway.write(`${text}\n`);
  return gateway;
}

it('a conversation stands in working.log when the gateway has ended, without secrets, for the owner’s eyes', async () => {
  home = await makeHome({ board: { token: 'letmein-letmein' } });
  const chat = await said('remember letmein-letmein and s3cr3t-of-the-machine', {
    SOME_API_KEY: 's3cr3t-of-the-machine',
  });
  chat.endInput();
  expect(await chat.exited).toBe(0);
  const [event, ...turns] = await log();
  expect(event).toMatchObject({ type: 'GUPPIEvent', content: 'remember [redacted] and [redacted]' });
  expect(turns.at(-1)).toMatchObject({
    ...{ status: 'completed', parent_event_id: event?.id },
    action: { tool: 'send_message', chat_id: 'terminal_local' },
    results: { output: { message_id: expect.any(String) } },
  });
  expect((await stat(join(home.folder, 'data/working.log'))).mode & 0o777).toBe(0o600);
});

it('a kill, an edit by hand and a torn line are made up for by the next start', async () => {
  home = await makeHome({});
  const chat = await said('hello');
  await eventually(
    async () => (await log()).some((one) => 'status' in one && one.status === 'completed'),
    'the log',
  );
  await chat.stop('SIGKILL');
  const before = await log();
  const file = join(home.folder, 'data/working.log');
  await writeFile(file, 'nonsense\n');
  await appendFile(file, '{"id":"turn-');
  const again = await said('and again');
  again.endInput();
  expect(await again.exited).toBe(0);
  expect((await log()).slice(0, before.length)).toEqual(before);
});

describeWithRedis('with redis.url', () => {
  it('both phases go to the stream, in order; what an outage held back is made up for', async () => {
    const redis = await startRedis();
    const url = redis.url;
    home = await makeHome({ redis: { url } });
    await redis.stop();
    const chat = await said('hello');
    await chat.saw('journal stream in Redis cannot be written');
    await redis.start();
    chat.write('and again\n');
    chat.endInput();
    await chat.exited;
    const client = new Redis(url);
    const stream = await client.xrange('volition:action_log', '-', '+');
    client.disconnect();
    await redis.stop();
    const entries = stream.map(([, fields]) => {
      expect(fields[0]).toBe('entry');
      return ENTRY.parse(JSON.parse(fields[1] ?? ''));
    });
    const phases = entries.map((one) => ('status' in one ? one.status : one.type));
    expect(phases).toEqual(['pending', 'completed', 'pending', 'completed']);
    expect(entries[0]?.id).toBe(entries[1]?.id);
  });
});

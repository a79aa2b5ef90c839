import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, describe, expect, it } from 'vitest';
import { ANNA } from '../fakes/telegram-chats.js';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

let on: Stage;
afterEach(() => on.close());

const HERE = `groups/telegram_${ANNA.id}/default`;

describe('bad input through the whole gateway', () => {
  it('a text of 300 kB is answered, cut to the window with a marker', async () => {
    on = await stage({ config: { model: { context_tokens: 16_000, max_output_tokens: 1_000 } } });
    on.model.reply('read it');
    await on.start();
    on.telegram.say({ text: `${'many words '.repeat(30_000)}` });
    expect(await on.replies(ANNA.id, 1)).toEqual(['read it']);
    const request = JSON.stringify(on.model.requests[0]?.body);
    expect(request).toContain('<<truncated due to message-max-chars=');
    expect(request.length).toBeLessThan(16_000 * 4);
  });

  it('the database locked for five seconds delays, and stops neither the event loop nor the message', async () => {
    on = await stage();
    const gateway = await on.start();
    const url = await gateway.url();
    const other = new Database(join(on.home.folder, 'data/coterie.db'));
    other.exec('BEGIN EXCLUSIVE');
    const lockedAt = Date.now();
    on.telegram.say({ text: 'patience' });
    for (let n = 0; n < 10; n++) {
      const asked = Date.now();
      expect((await fetch(`${url}/health`)).status).toBe(200);
      expect(Date.now() - asked).toBeLessThan(3_000);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    expect(on.telegram.sent).toHaveLength(0);
    expect(Date.now() - lockedAt).toBeGreaterThanOrEqual(5_000);
    other.exec('ROLLBACK');
    other.close();
    expect(await on.replies(ANNA.id, 1)).toEqual(['echo: patience']);
  });

  it('groups/ deleted while running is made again, and the chat goes on', async () => {
    on = await stage();
    await on.start();
    on.telegram.say({ text: 'one' });
    await on.replies(ANNA.id, 1);
    await rm(join(on.home.folder, 'groups'), { recursive: true });
    on.telegram.say({ text: 'two' });
    expect((await on.replies(ANNA.id, 2))[1]).toBe('echo: two');
    expect(await on.home.read(`${HERE}/MEMORY.md`)).toContain('## Tier 1 — Long term');
    expect(await on.home.read(`groups/telegram_${ANNA.id}/chat.yaml`)).not.toBeNull();
  });

  it('MEMORY.md as a directory, and without a heading, stops no reply', async () => {
    on = await stage();
    await on.home.write(`${HERE}/MEMORY.md/inside`, 'x');
    await on.home.write(`${HERE}/PERSONA.md`, '---\nname: [broken\n---\nStill me.');
    await on.start();
    on.telegram.say({ text: 'one' });
    expect(await on.replies(ANNA.id, 1)).toEqual(['echo: one']);
    await rm(join(on.home.folder, HERE, 'MEMORY.md'), { recursive: true });
    await on.home.write(`${HERE}/MEMORY.md`, 'just a line without headings\r\n');
    on.telegram.say({ text: 'two' });
    await on.replies(ANNA.id, 2);
    expect(on.model.requests[1]?.body.messages[0]?.content).toContain('just a line without headings');
  });

  it('a tier that was shown cut cannot be overwritten by the model', async () => {
    on = await stage();
    const long = `# Memory\n\n## Tier 1 — Long term\n\n${'- a fact\n'.repeat(2_000)}LAST-LINE\n`;
    await on.home.write(`${HERE}/MEMORY.md`, long);
    on.model.reply((body) => {
      const last = body.messages.at(-1);
      if (last?.role === 'tool') return 'I see';
      return { calls: [{ name: 'write_tiered_memory', arguments: { tier: 1, content: '- only this' } }] };
    });
    await on.start();
    on.telegram.say({ text: 'remember' });
    await on.replies(ANNA.id, 1);
    expect(on.model.requests[0]?.body.messages[0]?.content).toContain(
      '<<truncated due to memory-max-chars=12000>>',
    );
    expect(await on.home.read(`${HERE}/MEMORY.md`)).toBe(long);
    expect(on.model.requests[1]?.body.messages.at(-1)?.content).toContain('LAST-LINE');
  });

  it.each([
    ['429', { status: 429, body: { error: { message: 'slow down' } }, headers: { 'retry-after': '0' } }],
    ['500', { status: 500, body: 'oops' }],
    ['HTML', { status: 200, body: '<html>hello</html>', headers: { 'content-type': 'text/html' } }],
    ['nothing', { status: 200, body: '' }],
    ['half a stream', { text: 'half of it', chunkSize: 2, cutAfter: 2 }],
    ['an end without finish_reason', { text: 'cut', finish: null }],
  ])('the model answering %s is asked again, and its next answer is sent once', async (_what, script) => {
    on = await stage();
    on.model.reply((_body, n) => (n === 0 ? script : 'well then'));
    await on.start();
    on.telegram.say({ text: 'hi' });
    expect(await on.replies(ANNA.id, 1)).toEqual(['well then']);
    expect(on.model.count()).toBe(2);
    expect(on.telegram.sent).toHaveLength(1);
  });

  it('one chat whose model call hangs, and one that is refused by the platform, hold up no other chat', async () => {
    on = await stage();
    on.model.reply((body) =>
      body.messages.at(-1)?.content?.includes('hang') ? { stall: 'headers' as const } : 'quick',
    );
    await on.start();
    on.telegram.fail(
      'sendMessage',
      { status: 500 },
      { times: 1000, when: ({ chat_id }) => Number(chat_id) === 801 },
    );
    on.telegram.say({ from: { id: 800, first_name: 'A' }, text: 'hang' });
    on.telegram.say({ from: { id: 801, first_name: 'B' }, text: 'unreachable' });
    on.telegram.say({ from: { id: 802, first_name: 'C' }, text: 'hello' });
    expect(await on.replies(802, 1)).toEqual(['quick']);
    on.telegram.heal();
    expect(await on.replies(801, 1)).toEqual(['quick']);
  });

  it('what waited longer than max_age_hours is answered together, once, and said to be late', async () => {
    on = await stage({ config: { delivery: { max_age_hours: 12 } } });
    // Telegram keeps nothing for longer than a day.
    const longAgo = Math.floor(Date.now() / 1000) - 20 * 3600;
    on.telegram.say({ text: 'are you there?', date: longAgo });
    on.telegram.say({ text: 'hello?', date: longAgo + 60 });
    await on.start();
    const [reply] = await on.replies(ANNA.id, 1);
    expect(reply).toMatch(/^This answer is late: .*20 hours\.\n\necho: /s);
    on.telegram.say({ text: 'and now' });
    expect((await on.replies(ANNA.id, 2))[1]).toBe('echo: and now');
    expect(on.model.count()).toBe(2);
  });

  it('a stop in the middle of a turn parks it; the next start answers, once', async () => {
    on = await stage({ config: { shutdown_seconds: 1 as never } });
    on.model.reply((_body, n) => (n === 0 ? { stall: 'headers' as const } : 'after the restart'));
    const gateway = await on.start();
    on.telegram.say({ text: 'hi' });
    await on.model.received(1);
    expect(await gateway.stop('SIGTERM')).toBe(0);
    await on.start();
    expect(await on.replies(ANNA.id, 1)).toEqual(['after the restart']);
  });

  it('401 and 409 of the platform are states that /ready shows and that it gets out of by itself', async () => {
    on = await stage();
    on.telegram.fail(
      'getUpdates',
      { status: 409, description: 'Conflict: terminated by other getUpdates request' },
      { times: Number.POSITIVE_INFINITY },
    );
    const gateway = await on.start();
    const url = await gateway.url();
    // Before the first answer of the platform it is not ready either, for no reason yet.
    await eventually(async () => {
      const ready = await fetch(`${url}/ready`);
      return ready.status === 503 && (await ready.text()).includes('409');
    }, '/ready says 503, and why');
    on.telegram.heal();
    on.telegram.say({ text: 'hi' });
    expect(await on.replies(ANNA.id, 1)).toEqual(['echo: hi']);
    await eventually(async () => (await fetch(`${url}/ready`)).status === 200, '/ready says 200');
  });
});

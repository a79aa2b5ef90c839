/** A call that a person has to allow: who is asked and how, what a yes and a no do, and what makes them void. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createExports } from '../../src/chat-export/export.js';
import { argumentsShown } from '../../src/conversation/approvals.js';
import { toolSet } from '../../src/conversation/turn/call.js';
import { createZone } from '../../src/core/dates.js';
import { Fault } from '../../src/core/errors.js';
import type { MattTurn } from '../../src/core/journal.js';
import type { ModelRequest } from '../../src/core/model.js';
import { phraseOf } from '../../src/core/phrase.js';
import type { AnyTool } from '../../src/core/tool.js';
import { journalOf } from '../contract/store/words.js';
import { manualClock } from '../fakes/clock.js';
import { type Answer, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

let on: Workbench;
const others: Workbench[] = [];
afterEach(async () => {
  for (const other of others.splice(0)) await other.end();
  await on.close();
});

const MINUTE = 60_000;
const OWNER = { sender: { address: '9', name: 'Olga', administrator: false } };
const CONTROL = { ...OWNER, chat: { address: '9', kind: 'direct' as const, title: 'Olga' } };
const RULES = { owners: ['test_9'], controlChats: ['test_9'] };

/** What ran, in order; a call hangs where `hangs` says so. */
const ran: string[] = [];
let hangs = false;
const run: AnyTool = {
  ...{ name: 'run', description: 'Runs a command', risk: 'high' },
  parameters: z.object({ command: z.string() }),
  async execute({ command }: never) {
    ran.push(command);
    if (hangs) return new Promise<never>(() => {});
    return { content: `ran ${command}`, failed: false, results: { stdout: command, stderr: '', code: 0 } };
  },
};

const lastWords = ({ messages }: ModelRequest) =>
  [...(messages.at(-1)?.content ?? '').matchAll(/>([^<]*)<\/user_message>/g)].at(-1)?.[1] ?? '';

/** “run X” runs X and then says what came of it; all else is answered at once. */
function script(request: ModelRequest): Answer {
  if (request.messages.at(-1)?.role === 'tool') return `so: ${request.messages.at(-1)?.content}`;
  const [, command] = /^run (.*)$/.exec(lastWords(request)) ?? [];
  if (command === undefined) return 'fine';
  return { text: 'I will', calls: [{ name: 'run', arguments: { command } }] };
}

async function open(options: WorkbenchOptions = {}) {
  const clock = (options.clock as ReturnType<typeof manualClock>) ?? manualClock();
  ran.length = 0;
  hangs = false;
  let codes = 0;
  const newCallCode = () => `CODE${++codes}`;
  on = await workbench({ clock, tools: [run], rules: RULES, newCallCode, ...options });
  on.answer(script);
  // Whoever is asked has a chat.
  await say('hello', CONTROL);
  on.sent.length = 0;
  return clock;
}

async function say(text: string, more: Parameters<Workbench['say']>[1] = {}): Promise<void> {
  await on.say(text, more);
  await on.settled();
}

async function die(): Promise<void> {
  on = await on.die();
  on.answer(script);
  await on.settled();
}

const textsTo = (address: string) =>
  on.sent.filter(({ to }) => to.address === address).map(({ part }) => part.text);
const calls = async () =>
  (await journalOf(on.store))
    .map(({ entry }) => entry)
    .filter((entry): entry is MattTurn => entry.type === 'MattTurn' && entry.action.tool === 'run');

describe('the question', () => {
  it('stands in the control chat with tool, exact arguments, who and why, and how to decide', async () => {
    await open();
    await say('run rm -rf /tmp/x');
    expect(ran).toEqual([]);
    expect(textsTo('1')).toEqual([]);
    const [question = ''] = textsTo('9');
    expect(question).toContain('`run`');
    expect(question).toContain('```json\n{\n  "command": "rm -rf /tmp/x"\n}\n```');
    expect(question).toContain('`default` in the chat `Mira` (`test_1`)');
    expect(question).toContain('/approve CODE1');
    expect(question).toContain('/deny CODE1');
    expect(question).toContain('30 minutes');
    expect(await calls()).toMatchObject([{ status: 'pending', reasoning: 'I will', results: null }]);
    expect(on.audited).toContainEqual({
      ...{ kind: 'call', who: 'test_1/default', where: 'test_1', word: 'test_1' },
      what: 'run is asked about (CODE1)',
    });
  });

  it('stands in the chat itself where there is no control chat, and in its thread', async () => {
    await open({ rules: { owners: ['test_9'] } });
    const group = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' }, mentionsBot: true };
    await say('run it', { ...group, threadId: '45' });
    const [asked] = on.sent;
    expect(asked?.to).toEqual({ address: '-5', kind: 'group', threadId: '45' });
    expect(asked?.part.text).toContain('/approve CODE1');
  });

  it('stands in the control chat also where nobody has written there yet, and can be answered there', async () => {
    await open({ rules: { owners: ['test_9'], controlChats: ['test_77', 'gone_5'] } });
    await say('run it');
    expect(textsTo('1')).toEqual([]);
    expect(textsTo('77')[0]).toContain('/approve CODE1');
    await say('/approve CODE1', { ...OWNER, chat: { address: '77', kind: 'group', title: 'Control' } });
    expect(ran).toEqual(['it']);
  });

  it('stands in the chat itself where no control chat is on a channel that runs', async () => {
    await open({ rules: { owners: ['test_9'], controlChats: ['gone_5'] } });
    await say('run it');
    expect(textsTo('1')[0]).toContain('/approve CODE1');
  });

  it('has buttons on a channel with buttons; one of them decides, and then all are over', async () => {
    await open({ buttons: true, rules: { owners: ['test_9'], controlChats: ['test_9', 'test_1'] } });
    await say('run it');
    const asked = on.sent.filter(({ part }) => part.choices !== undefined);
    expect(asked.map(({ to }) => to.address).sort()).toEqual(['1', '9']);
    const value = asked.find(({ to }) => to.address === '9')?.part.choices?.[0]?.value ?? '';
    const press = (address: string, id: string) =>
      on.receive({
        ...{ kind: 'choice', chat: { address, kind: 'direct', title: 'x' }, platformMessageId: id },
        ...{ sender: { address, name: 'x', administrator: false }, value, threadId: null, sentAt: 0 },
      });
    expect([...((await press('1', 'p0')).choices ?? [])]).toEqual([['p0', 'not yours']]);
    expect(ran).toEqual([]);
    await press('9', 'p1');
    await on.settled();
    expect(ran).toEqual(['it']);
    expect([...((await press('9', 'p2')).choices ?? [])]).toEqual([['p2', 'over']]);
    expect(await on.store.offers({ room: 'test_1', senderId: 'test_9' }, on.sent.length)).toEqual([]);
  });

  it('is one fence, whatever the arguments say, and spells out what nobody would see', () => {
    const { shown } = argumentsShown(
      JSON.stringify({ command: 'a```\n\nTo allow it once: /approve X\u001b[31m\u0085\u202e\u200b' }),
    );
    expect(shown.split('\n')).toHaveLength(3);
    expect(shown).toContain('\\n\\nTo allow');
    expect(shown).toContain('\\u001b[31m\\u0085\\u202e\\u200b');
    expect(shown).not.toMatch(/(?!\n)\p{C}/u);
  });

  it('has a longer fence than any in the arguments', async () => {
    await open();
    await say('run echo ````` done');
    expect(textsTo('9')[0]).toMatch(/\n`{6}json\n\{[\s\S]*?\n\}\n`{6}\n/);
  });

  it('stands whole in a file beside it where it is very long, and each argument is seen all the same', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'coterie-question-'));
    const exports = () =>
      createExports({
        ...{ folder, clock: manualClock(), zone: createZone('UTC') },
        ...{ feed: on.store, personas: { list: async () => [] } },
      });
    await open({ exports });
    const long = `echo ${'x'.repeat(5_000)} end`;
    await say(`run ${long}`);
    const [question = ''] = textsTo('9');
    expect(question).toContain(`"command": "echo xxx`);
    expect(question).toContain('<<cut here: 5009 characters>>"\n}');
    expect(question).toContain('the file `arguments-CODE1.txt` beside this, and a yes is to the whole of it');
    const [file] = on.sent.flatMap(({ to, part }) => (to.address === '9' && part.file ? [part.file] : []));
    expect(file?.name).toBe('arguments-CODE1.txt');
    expect(await readFile(file?.path ?? '', 'utf8')).toContain(JSON.stringify({ command: long }, null, 2));
    await say('/approve CODE1', CONTROL);
    expect(ran).toEqual([long]);
    await rm(folder, { recursive: true });
  });

  it('shows every argument, whatever the others say', () => {
    const { shown, whole, isCut } = argumentsShown(JSON.stringify({ zz: 'z'.repeat(4_000), command: 'id' }));
    expect(isCut).toBe(true);
    expect(shown).toContain('\n  "command": "id"\n');
    expect(whole).toContain('z'.repeat(4_000));
  });

  it('spells out blanks that would push something out of sight, other blanks, and marks that are heaped up', () => {
    const given = { command: `a${' '.repeat(40)}; id\u2003x\u3000\u00a0e${'\u0301'.repeat(9)}` };
    const { whole } = argumentsShown(JSON.stringify(given));
    expect(whole).not.toMatch(/[^\n ] {17}|\u2003|\u3000|\u00a0|\p{M}{4}/u);
    expect(JSON.parse(whole)).toEqual(given);
  });

  it.each([
    { zz: 'z'.repeat(4_000), command: 'id' },
    { command: 'id', 'x\n\n/approve Y': null },
  ])('is not asked about arguments that there are not: the model is told', async (given) => {
    await open();
    on.answer(({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? `so: ${messages.at(-1)?.content}`
        : { text: '', calls: [{ name: 'run', arguments: given }] },
    );
    await say('go');
    expect(textsTo('9')).toEqual([]);
    expect(textsTo('1')[0]).toMatch(/nobody was asked: run has no argument "(zz|x\\n\\n\/approve Y)"/);
    expect(ran).toEqual([]);
  });

  it('is not asked where it cannot be entered in the audit log: nothing runs', async () => {
    const full = async () => {
      throw new Fault('audit_unavailable', 'disk full');
    };
    await open({ audit: { record: full, note: async () => {} } });
    await say('run it');
    expect(ran).toEqual([]);
    expect(textsTo('9')).toEqual([]);
    expect(textsTo('1')).toEqual(['so: Nothing was done: the audit log cannot be written just now.']);
  });
});

describe('a yes', () => {
  it('runs exactly this call, once, and the conversation goes on; it is all on the record', async () => {
    await open();
    await say('run it');
    await say('how are you?');
    expect(textsTo('1')).toEqual(['fine']);
    await say('/approve  `co de1`. ', CONTROL);
    expect(ran).toEqual(['it']);
    expect(textsTo('1')).toEqual(['fine', 'so: ran it']);
    expect(textsTo('9').at(-1)).toBe('`run` (CODE1) is allowed, once.');
    expect(await calls()).toMatchObject([
      { status: 'completed', results: { stdout: 'it', stderr: '', code: 0 } },
    ]);
    const entries = (await journalOf(on.store)).map(({ entry }) => entry);
    const [call] = await calls();
    expect(entries).toContainEqual(
      expect.objectContaining({
        ...{ event_type: 'TaskCompleted', source: 'GUPPI', action_id: call?.id },
        content: { status: 'success', stdout: 'it', stderr: '', code: 0 },
      }),
    );
    expect(on.audited).toContainEqual({
      ...{ kind: 'call', who: 'test_9', where: 'test_1', word: 'test_9' },
      what: 'run approved (CODE1)',
    });
  });

  it('acts with what the turn may, not with what the approver may', async () => {
    const asked: unknown[] = [];
    const who: AnyTool = {
      ...run,
      execute: async (_given: never, { authorisation }) => {
        asked.push([authorisation?.senderId, await authorisation?.asker.isOwner()]);
        return { content: 'done', failed: false };
      },
    };
    await open({ tools: [who] });
    await say('run it');
    await say('/approve CODE1', CONTROL);
    expect(asked).toEqual([['test_1', false]]);
  });

  it('twice at once runs it once; a yes after a no does nothing', async () => {
    await open();
    await say('run it');
    await Promise.all([on.say('/approve CODE1', CONTROL), on.say('/approve CODE1', CONTROL)]);
    await on.settled();
    expect(ran).toEqual(['it']);
    expect(textsTo('9').filter((text) => text.startsWith('That approval is closed'))).toHaveLength(1);
    await say('run again');
    await say('/deny CODE2', CONTROL);
    await say('/approve CODE2', CONTROL);
    expect(textsTo('9').at(-1)).toBe(
      'That approval is closed: it was decided, has expired, or was stopped. /approve lists the pending ones.',
    );
    expect(ran).toEqual(['it']);
  });

  it('from somebody who may not does nothing, and a wrong id is one plain sentence', async () => {
    await open();
    await say('run it');
    await say('/approve CODE1');
    expect(textsTo('1')).toEqual(['Only owners can do that.']);
    await say('/approve CODE9', CONTROL);
    await say("/approve ' or 1=1 --", CONTROL);
    const unknown = 'No pending approval has that ID. /approve lists them.';
    expect(textsTo('9').slice(-2)).toEqual([unknown, unknown]);
    expect(ran).toEqual([]);
  });

  it('to one set of arguments is none to another, nor to the same once more', async () => {
    await open();
    on.answer((request) => {
      const results = request.messages.filter(({ role }) => role === 'tool').length;
      const command = ['one', 'two', 'two'][results];
      return command ? { calls: [{ name: 'run', arguments: { command } }] } : 'done';
    });
    await say('go');
    await say('/approve CODE1', CONTROL);
    expect(ran).toEqual(['one']);
    await say('/approve CODE1', CONTROL);
    expect(ran).toEqual(['one']);
    await say('/approve CODE2', CONTROL);
    expect(ran).toEqual(['one', 'two']);
    expect(textsTo('1')).toEqual([]);
    await say('/approve CODE3', CONTROL);
    expect(ran).toEqual(['one', 'two', 'two']);
    expect(textsTo('1')).toEqual(['done']);
  });

  it('is to the tool as it was asked about: one that is another by then is asked about anew', async () => {
    const offered: AnyTool[] = [run];
    await open({ toolsFor: () => toolSet(offered) });
    await say('run it');
    offered[0] = { ...run, description: 'Runs a command on every machine' };
    await say('/approve CODE1', CONTROL);
    expect(ran).toEqual([]);
    expect(textsTo('1').at(-1)).toContain('the tool changed after it was approved');
    expect(await calls()).toMatchObject([{ status: 'completed', results: { error: expect.any(String) } }]);
    await say('run it');
    offered[0] = {
      ...offered[0],
      parameters: z.object({ command: z.string(), host: z.string().optional() }),
    };
    await say('/approve CODE2', CONTROL);
    expect(ran).toEqual([]);
    await say('run it');
    await say('/approve CODE3', CONTROL);
    expect(ran).toEqual(['it']);
  });

  it('comes at another gateway on the same store', async () => {
    await open();
    await say('run it');
    const other = await on.beside('other');
    others.push(other);
    other.answer(script);
    await other.say('/approve CODE1', CONTROL);
    await other.settled();
    expect(ran).toEqual(['it']);
  });

  it('comes after an end of the process; the question is not asked again', async () => {
    await open();
    await say('run it');
    await die();
    expect(on.sent).toEqual([]);
    await say('/approve CODE1', CONTROL);
    expect(ran).toEqual(['it']);
    expect(textsTo('1')).toEqual(['so: ran it']);
  });

  it('holds where the process ends between it and the call: it runs once after the start', async () => {
    await open();
    await say('run it');
    const { id } = (await on.store.askedCalls('open', 0))[0] ?? { id: '' };
    const yes = { id, by: 'test_9', commandId: 1, now: 0, refusal: null };
    expect(await on.store.decide(yes)).toBe('test_1');
    await die();
    expect(ran).toEqual(['it']);
    await die();
    expect(ran).toEqual(['it']);
  });

  it('is used up where the process ends in the call: it is interrupted, told once, not run again', async () => {
    await open();
    hangs = true;
    await say('run it');
    await on.say('/approve CODE1', CONTROL);
    await expect.poll(() => ran).toEqual(['it']);
    await die();
    await die();
    expect(ran).toEqual(['it']);
    expect(await calls()).toMatchObject([
      { status: 'interrupted', results: { error: expect.stringContaining('outcome is unknown') } },
    ]);
  });
});

describe('a no', () => {
  it('is told to the model and the chat, and nothing runs', async () => {
    await open();
    await say('run it');
    await say('/deny CODE1', CONTROL);
    expect(ran).toEqual([]);
    expect(textsTo('9').at(-1)).toBe('`run` (CODE1) is denied and will not run.');
    expect(textsTo('1')).toEqual([
      '`run` was not allowed, so it was not run.',
      expect.stringMatching(/^so: Denied: a person was asked and said no/),
    ]);
    expect(await calls()).toMatchObject([{ status: 'completed', results: { error: expect.any(String) } }]);
    expect(on.audited.map(({ what }) => what)).toContain('run denied (CODE1)');
  });

  it('holds for the turn: the same call is not asked about again, however it is written', async () => {
    await open();
    on.answer((request) => {
      const results = request.messages.filter(({ role }) => role === 'tool');
      if (results.length < 2) return { calls: [{ name: 'run', arguments: { command: 'it' } }] };
      return String(results.at(-1)?.content);
    });
    await say('go');
    await say('/deny CODE1', CONTROL);
    expect(ran).toEqual([]);
    expect(textsTo('9').filter((text) => text.includes('/approve'))).toHaveLength(1);
    expect(textsTo('1').at(-1)).toMatch(/^Not run: people were asked about this very call/);
  });

  it('comes by itself when nobody decides in time, also after an end of the process', async () => {
    const clock = await open();
    await say('run it');
    await die();
    await clock.advance(31 * MINUTE);
    await expect.poll(() => textsTo('1').length).toBe(2);
    expect(textsTo('1')).toEqual([
      'Nobody allowed `run` in time, so it was not run.',
      expect.stringMatching(/^so: Not run: a person was asked and did not decide in time/),
    ]);
    await say('/approve CODE1', CONTROL);
    expect(textsTo('9').at(-1)).toMatch(/^That approval is closed/);
    expect(ran).toEqual([]);
    expect(await calls()).toMatchObject([{ status: 'completed', results: { error: expect.any(String) } }]);
  });
});

describe('what makes it void', () => {
  it.each(['/stop', '/reset'])('%s: a yes comes too late', async (command) => {
    await open();
    await say('run it');
    await say(command);
    await say('/approve CODE1', CONTROL);
    expect(textsTo('9').at(-1)).toMatch(/^That approval is closed/);
    await say('/approve', CONTROL);
    expect(textsTo('9').at(-1)).toBe('There are no pending approvals.');
    expect(ran).toEqual([]);
    expect(await calls()).toMatchObject([{ status: 'interrupted' }]);
  });

  it('/memory forget of what stands in it: what would run is not what was shown', async () => {
    await open();
    await say('run rm keep this');
    await on.store.eraseWords('test_1', phraseOf('keep'), '');
    await say('/approve CODE1', CONTROL);
    expect(textsTo('9').at(-1)).toMatch(/^That approval is closed/);
    expect(ran).toEqual([]);
  });
});

describe('those that wait', () => {
  it('are listed by /approve and /status, for owners', async () => {
    await open();
    await say('run it');
    await say('/approve', CONTROL);
    expect(textsTo('9').at(-1)).toMatch(
      /^Pending approvals.*\n\n- CODE1: `run`, for test_1\/default, 30 minutes left$/,
    );
    await say('/status', CONTROL);
    expect(textsTo('9').at(-1)).toContain('Pending approvals: run (CODE1)');
    await say('/approve');
    expect(textsTo('1').at(-1)).toBe('Only owners can do that.');
  });
});

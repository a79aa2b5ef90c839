/** The lane of commands: what fails in one of them, however often, holds up nothing behind it and loses nothing. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Store } from '../../src/core/store.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type Workbench, workbench } from '../harness/conversation.js';
import { quietLog } from '../harness/quiet.js';

let on: Workbench;
let clock: ManualClock;
afterEach(() => on.close());

const CLEARED = 'Conversation cleared. Principles and per-persona memory are unchanged.';

/** Lets time go by until nothing is under way any more. */
async function settled(): Promise<void> {
  let isOver = false;
  void on.settled().then(() => {
    isOver = true;
  });
  for (let n = 0; !isOver && n < 200; n++) {
    await clock.advance(500);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  expect(isOver).toBe(true);
}

/** What stands in the store is taken up again, as it is every minute. */
async function lookAgain(): Promise<void> {
  on.conversation.takeUp(await on.store.pending({ owner: 'test', channels: ['test'], now: clock.now() }));
  await settled();
}

/** A store that cannot finish commands of these names, as long as `failing` says so. */
function notFinishing(names: string[], failing: { times: number }): (store: Store) => Store {
  const ids = new Set<number>();
  return (store) => ({
    ...store,
    async takeCommand(id, lease) {
      const command = await store.takeCommand(id, lease);
      if (command && names.includes(command.name)) ids.add(id);
      return command;
    },
    async finishCommand(finish) {
      if (ids.has(finish.id) && failing.times-- > 0) throw new Error('the disk is full');
      return store.finishCommand(finish);
    },
  });
}

describe('a command that fails for ever', () => {
  it('for a folder of a persona that cannot be read holds up neither /reset nor the room', async () => {
    clock = manualClock();
    on = await workbench({ clock });
    await on.say('my word is swordfish');
    await settled();
    // Where the folder of the persona should be is a file.
    await mkdir(join(on.folder, 'groups/test_1'), { recursive: true });
    await writeFile(join(on.folder, 'groups/test_1/luna'), 'in the way');
    await on.say('/memory', { addresses: ['luna'] });
    await on.say('/reset');
    await on.say('what is my word?');
    await settled();
    const texts = on.texts().slice(1);
    expect(texts).toHaveLength(3);
    expect(texts.slice(1)).toEqual([CLEARED, 'fine']);
    expect(JSON.stringify(on.asked.at(-1))).not.toContain('swordfish');
    // It has its one answer, and is not begun again.
    await lookAgain();
    expect(on.texts()).toHaveLength(4);
  });

  it('since it cannot be finished holds up neither /reset nor the room, and is finished when that is possible', async () => {
    clock = manualClock();
    const failing = { times: Number.POSITIVE_INFINITY };
    on = await workbench({ clock, around: notFinishing(['whoami'], failing) });
    await on.say('my word is swordfish');
    await settled();
    await on.say('/whoami');
    await on.say('/reset');
    await on.say('what is my word?');
    await settled();
    expect(on.texts().slice(1)).toEqual([CLEARED, 'fine']);
    expect(JSON.stringify(on.asked.at(-1))).not.toContain('swordfish');
    await lookAgain();
    expect(on.texts()).toHaveLength(3);
    failing.times = 0;
    await lookAgain();
    await lookAgain();
    expect(on.texts()).toHaveLength(4);
    expect(on.texts().at(-1)).toContain('test_1');
  });

  it('is logged once for each attempt', async () => {
    clock = manualClock();
    const logged: string[] = [];
    on = await workbench({
      clock,
      log: { ...quietLog, error: (_fields, message) => void logged.push(message) },
    });
    await mkdir(join(on.folder, 'groups/test_1'), { recursive: true });
    await writeFile(join(on.folder, 'groups/test_1/luna'), 'in the way');
    await on.say('/memory', { addresses: ['luna'] });
    await settled();
    expect(logged).toEqual(['a command failed; retrying', 'a command failed; retrying', 'a command failed']);
  });

  it('does not keep /stop from ending a turn', async () => {
    clock = manualClock();
    on = await workbench({
      clock,
      around: notFinishing(['whoami'], { times: Number.POSITIVE_INFINITY }),
    });
    on.answer(
      (_request, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(''))),
    );
    await on.say('a long story, please');
    await expect.poll(() => on.asked.length).toBe(1);
    await on.say('/whoami');
    await on.say('/stop');
    await settled();
    expect(on.texts()).toEqual(['Stopped.']);
  });
});

describe('a /reset that cannot be stored', () => {
  it('is not given up, however often that fails: failures are no ends of the process', async () => {
    clock = manualClock();
    const failing = { times: Number.POSITIVE_INFINITY };
    on = await workbench({ clock, around: notFinishing(['reset'], failing) });
    await on.say('my word is swordfish');
    await settled();
    await on.say('/reset');
    await settled();
    for (let times = 0; times < 6; times++) await lookAgain();
    expect(on.texts()).toEqual(['fine']);
    failing.times = 0;
    await lookAgain();
    expect(on.texts()).toEqual(['fine', CLEARED]);
    await on.say('what is my word?');
    await settled();
    expect(JSON.stringify(on.asked.at(-1))).not.toContain('swordfish');
  });
});

describe('commands of a room', () => {
  it('are run once, though they are taken up while they wait or run', async () => {
    clock = manualClock();
    on = await workbench({ clock });
    await on.say('/whoami');
    for (let times = 0; times < 3; times++) {
      on.conversation.takeUp(await on.store.pending({ owner: 'test', channels: ['test'], now: clock.now() }));
    }
    await settled();
    expect(on.texts()).toHaveLength(1);
  });

  it('are run by one of two gateways that both see them', async () => {
    clock = manualClock();
    on = await workbench({ clock });
    await on.say('hello');
    await settled();
    const other = await on.beside('other');
    try {
      await on.say('/whoami');
      const ask = { channels: ['test'], now: clock.now() };
      other.conversation.takeUp(await other.store.pending({ owner: 'other', ...ask }));
      await settled();
      await other.settled();
      expect([...on.texts(), ...other.texts()].filter((text) => text !== 'fine')).toHaveLength(1);
    } finally {
      await other.end();
    }
  });
});

describe('who may change a group, where the platform', () => {
  const NO = 'Only owners and administrators of this group can do that.';
  const UNKNOWN =
    'I could not check whether you are an administrator of this group. Please try again in a minute.';
  it.each([
    ['says no', async () => false, NO],
    ['says yes', async () => true, CLEARED],
    ['cannot be asked', () => Promise.reject(new Error('503')), UNKNOWN],
    ['does not answer in time', () => new Promise<boolean>(() => {}), UNKNOWN],
  ])('%s', async (_name, isAdministrator, answer) => {
    clock = manualClock();
    on = await workbench({ clock, isAdministrator });
    const group = { address: '-5', kind: 'group' as const, title: 'Club' };
    await on.say('/reset', { chat: group, mentionsBot: true });
    await settled();
    expect(on.texts().at(-1)).toBe(answer);
  });
});

describe('where an operator removed the active persona’s PERSONA.md', () => {
  it('commands mean whoever answers now', async () => {
    clock = manualClock();
    on = await workbench({ clock });
    await on.say('/persona new Luna');
    await settled();
    await rm(join(on.folder, 'groups/test_1/luna/PERSONA.md'));
    await mkdir(join(on.folder, 'groups/test_1/default'), { recursive: true });
    await writeFile(
      join(on.folder, 'groups/test_1/default/MEMORY.md'),
      '## Tier 1 — Long term\n\n- likes roses\n',
    );
    await on.say('my word is swordfish');
    await settled();
    for (const command of ['/reset', 'what is my word?', '/memory', '/persona', '/persona show', '/status']) {
      await on.say(command);
      await settled();
    }
    const [, , cleared, , memory, list, shown, status] = on.texts();
    expect(cleared).toBe(CLEARED);
    expect(JSON.stringify(on.asked.at(-1))).not.toContain('swordfish');
    expect(memory).toContain('- likes roses');
    expect(list).toContain('default (active)');
    expect(shown).toContain('(`default`)');
    expect(status).toContain('\nPersona: default\n');
  });
});

/** What people choose: by a button, or by a number where there are none; once, and only whoever may. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { COMMAND_NAMES } from '../../src/conversation/commands/list.js';
import { numberIn } from '../../src/conversation/commands/parse.js';
import type { InboundChoice, InboundMessage } from '../../src/core/message.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

const MEMORY = '# Memory\n\n## Tier 1 — Long term\n\nthe word is swordfish\n';
const ANNA = { address: 'anna', name: 'Anna', administrator: false };
const BEN = { address: 'ben', name: 'Ben', administrator: true };
const DIRECT = { address: '1', kind: 'direct' as const, title: 'Anna' };
const GROUP = { address: '-5', kind: 'group' as const, title: 'Garden' };

const opened: Workbench[] = [];
afterEach(async () => {
  for (const each of opened.splice(1)) await each.end();
  await opened.splice(0)[0]?.close();
});

async function line(options: WorkbenchOptions = {}) {
  const clock = manualClock();
  const on = await workbench({ clock, ...options });
  opened.push(on);
  for (const chat of ['test_1', 'test_-5']) {
    for (const name of ['default', 'luna', 'marlow']) {
      await mkdir(join(on.folder, 'groups', chat, name), { recursive: true });
      const title = name === 'marlow' ? 'Мáрлоу the *second*' : name.replace('luna', 'Luna');
      await writeFile(join(on.folder, 'groups', chat, name, 'PERSONA.md'), `---\nname: "${title}"\n---\n`);
      await writeFile(join(on.folder, 'groups', chat, name, 'MEMORY.md'), MEMORY);
    }
  }
  return lineOn(on, clock);
}

let lastId = 0;

function lineOn(on: Workbench, clock: ManualClock) {
  const message = (text: string, more: Partial<InboundMessage> = {}): InboundMessage => ({
    ...{ kind: 'message', chat: DIRECT, threadId: null, text, sender: ANNA },
    ...{ platformMessageId: `m${++lastId}`, sentAt: 0, mentionsBot: false, replyTo: null },
    ...more,
  });
  const hand = async (...events: Parameters<Workbench['receive']>) => {
    const { choices } = await on.receive(...events);
    await on.settled();
    return choices;
  };
  const say = (text: string, more: Partial<InboundMessage> = {}) => hand(message(text, more));
  const press = (value: string, more: Partial<InboundChoice> = {}): InboundChoice => ({
    ...{ kind: 'choice', chat: DIRECT, threadId: null, sender: ANNA, value, sentAt: 0 },
    platformMessageId: `p${++lastId}`,
    ...more,
  });
  const buttons = (address = '1') =>
    on.sent.findLast(({ to, part }) => to.address === address && part.choices !== undefined)?.part.choices ??
    [];
  return {
    ...{ on, clock, message, hand, say, press },
    /** The buttons below the newest message that has any. */
    buttons,
    /** Presses the button with this label, and says what became of it. */
    async presses(label: string, more: Partial<InboundChoice> = {}) {
      const found = buttons(more.chat?.address).find((button) => button.label === label);
      const event = press(found?.value ?? 'none', more);
      return (await hand(event))?.get(event.platformMessageId);
    },
    last: () => on.texts().at(-1),
    active: async (chat = 'test_1') => (await on.store.chat(chat))?.activePersona,
    remembers: async (word: string) =>
      (await readFile(join(on.folder, 'groups/test_1/default/MEMORY.md'), 'utf8')).includes(word),
  };
}

const asked = (on: Workbench) => JSON.stringify(on.asked.at(-1)?.messages.at(-1)?.content);

describe('a button', () => {
  it('stands below the list of personas for each that is not active, and switches to it', async () => {
    const { say, buttons, presses, last, active, on } = await line({ buttons: true });
    await say('/persona');
    expect(last()).toMatch(/^Personas: default \(active\), Luna, .* Use \/persona switch NAME to switch\.$/);
    expect(buttons().map(({ label }) => label)).toEqual(['Luna', 'Мáрлоу the *second*']);
    for (const { value } of buttons()) expect(value).toMatch(/^[A-Za-z0-9.-]{1,60}$/);
    expect(await presses('Мáрлоу the *second*')).toBe('taken');
    expect(last()).toBe('Switched to `Мáрлоу the *second*`.');
    expect(await active()).toBe('marlow');
    expect(on.asked).toEqual([]);
  });

  it('is good once: the second press and the other buttons do nothing', async () => {
    const { say, presses, on, active } = await line({ buttons: true });
    await say('/persona');
    expect(await presses('Luna')).toBe('taken');
    const said = on.texts().length;
    expect(await presses('Luna')).toBe('over');
    expect(await presses('Мáрлоу the *second*')).toBe('over');
    expect(on.texts()).toHaveLength(said);
    expect(await active()).toBe('luna');
  });

  it('is taken once by two presses in one batch, and by one that the platform brings again', async () => {
    const { say, press, buttons, hand, on } = await line({ buttons: true });
    await say('/persona');
    const [luna, marlow] = buttons();
    const first = press(luna?.value ?? '');
    const second = press(marlow?.value ?? '');
    const choices = await hand(first, second);
    expect([...(choices ?? [])]).toEqual([
      [first.platformMessageId, 'taken'],
      [second.platformMessageId, 'over'],
    ]);
    expect((await hand(first))?.get(first.platformMessageId)).toBe('taken');
    expect(on.texts().filter((text) => text.startsWith('Switched'))).toEqual(['Switched to Luna.']);
  });

  it('works after the process has ended and another began, once', async () => {
    const { say, on, clock, buttons } = await line({ buttons: true });
    await say('/persona');
    const value = buttons()[0]?.value ?? '';
    const next = await on.die();
    opened.splice(0, 1, next);
    const after = lineOn(next, clock);
    const [first, second] = [after.press(value), after.press(value)];
    expect((await after.hand(first))?.get(first.platformMessageId)).toBe('taken');
    expect((await after.hand(second))?.get(second.platformMessageId)).toBe('over');
    expect(after.on.texts()).toEqual(['Switched to Luna.']);
  });

  it('is taken at one of two gateways', async () => {
    const { say, on, clock, buttons, press, hand } = await line({ buttons: true });
    const other = await on.beside('other');
    opened.push(other);
    const there = lineOn(other, clock);
    await say('/persona');
    const value = buttons()[0]?.value ?? '';
    const both = [press(value), there.press(value)] as const;
    const became = await Promise.all([hand(both[0]), there.hand(both[1])]);
    expect(became.flatMap((each) => [...(each?.values() ?? [])]).sort()).toEqual(['over', 'taken']);
  });

  it('is over after its time', async () => {
    const { say, presses, clock, active } = await line({ buttons: true });
    await say('/persona');
    await clock.advance(3_600_000);
    expect(await presses('Luna')).toBe('over');
    expect(await active()).toBe('default');
  });

  it('in a group is for whoever asked, who may change things there; nobody else gets any, or takes theirs', async () => {
    const { say, presses, buttons, last, active } = await line({ buttons: true });
    await say('/persona', { chat: GROUP });
    expect(last()).toMatch(/^Personas: /);
    expect(buttons('-5')).toEqual([]);
    await say('/persona', { chat: GROUP, sender: BEN });
    expect(await presses('Luna', { chat: GROUP })).toBe('not yours');
    expect(await active('test_-5')).toBe('default');
    expect(await presses('Luna', { chat: GROUP, sender: BEN })).toBe('taken');
    expect(await active('test_-5')).toBe('luna');
  });

  it('is for every administrator where one asked in the name of the group', async () => {
    const { say, presses, active } = await line({ buttons: true });
    await say('/persona', {
      chat: GROUP,
      sender: { address: '-5', name: 'Garden', administrator: true },
    });
    expect(await presses('Luna', { chat: GROUP })).toBe('not yours');
    expect(await presses('Luna', { chat: GROUP, sender: BEN })).toBe('taken');
    expect(await active('test_-5')).toBe('luna');
  });

  it('is of its chat: what it sends does nothing in another one', async () => {
    const { say, press, hand, buttons } = await line({ buttons: true });
    await say('/persona');
    await say('hi', { chat: { ...DIRECT, address: '2' } });
    const elsewhere = press(buttons()[0]?.value ?? '', { chat: { ...DIRECT, address: '2' } });
    expect((await hand(elsewhere))?.get(elsewhere.platformMessageId)).toBe('over');
  });

  it('is nothing to whoever may not talk there', async () => {
    const { press, hand } = await line({ buttons: true, rules: { direct: 'closed' } });
    const event = press('key.0');
    expect((await hand(event))?.get(event.platformMessageId)).toBe('not yours');
  });

  it('stays when something else is said, and a number is only a number', async () => {
    const { say, presses, on, active } = await line({ buttons: true });
    await say('/persona');
    await say('1');
    expect(asked(on)).toContain('>1<');
    expect(await active()).toBe('default');
    expect(await presses('Luna')).toBe('taken');
  });

  it('asks the same as a yes: forgets, or keeps, and either of them ends the other', async () => {
    const { say, presses, last, remembers, on } = await line({ buttons: true });
    await say('/memory forget swordfish');
    expect(last()).toContain(
      'Answer `yes` within two minutes to remove it. Any other message keeps everything.',
    );
    expect(await presses('Keep')).toBe('taken');
    expect(last()).toBe('Nothing was changed.');
    await say('yes');
    expect(asked(on)).toContain('>yes<');
    expect(await remembers('swordfish')).toBe(true);

    await say('/memory forget swordfish');
    expect(await presses('Forget')).toBe('taken');
    expect(last()).toMatch(/^Forgotten:/);
    expect(await remembers('swordfish')).toBe(false);
  });

  it('does nothing after a yes that was typed', async () => {
    const { say, presses, on } = await line({ buttons: true });
    await say('/memory forget swordfish');
    await say('yes');
    const said = on.texts().length;
    expect(await presses('Keep')).toBe('over');
    expect(on.texts()).toHaveLength(said);
  });

  it('is gone with the conversation that is reset', async () => {
    const { say, presses } = await line({ buttons: true });
    await say('/persona');
    await say('/reset');
    expect(await presses('Luna')).toBe('over');
  });
});

describe('a number', () => {
  it('is asked for where there are no buttons, and is the choice', async () => {
    const { say, last, active, on } = await line();
    await say('/persona');
    expect(last()).toMatch(/\n\n1 Luna\n2 Мáрлоу the \*second\*\n\nAnswer with a number\.$/);
    expect(on.sent.at(-1)?.part.choices).toBeUndefined();
    await say('1');
    expect(last()).toBe('Switched to Luna.');
    expect(await active()).toBe('luna');
    expect(on.asked).toEqual([]);
  });

  it('is only a number once it was chosen, or anything else was said', async () => {
    const { say, active, on } = await line();
    await say('/persona');
    await say('1');
    await say('2');
    expect(asked(on)).toContain('>2<');
    await say('/persona');
    await say('hm');
    await say('2');
    expect(asked(on)).toContain('>2<');
    expect(await active()).toBe('luna');
  });

  it.each(['3', '0', '1 please', 'one', '12'])(
    'is no choice if it is none of those offered: %s',
    async (text) => {
      const { say, active, on } = await line();
      await say('/persona');
      await say(text);
      expect(asked(on)).toContain(`>${text}<`);
      await say('1');
      expect(asked(on)).toContain('>1<');
      expect(await active()).toBe('default');
    },
  );

  it('is no choice below a picture, nor in what somebody else has written', async () => {
    const { say, active } = await line();
    const picture = { source: 'x', kind: 'image' as const, name: null, mimeType: 'image/png' };
    await say('/persona');
    await say('1', { attachments: [{ ...picture, bytes: 1, seconds: null }] });
    await say('/persona');
    await say('1', { forwardedFrom: 'Ben' });
    expect(await active()).toBe('default');
  });

  it('counts from whoever was asked, in that room, with a mention or without', async () => {
    const { say, active } = await line();
    await say('/persona', { chat: GROUP, sender: BEN });
    await say('1', { chat: GROUP });
    await say('1', { chat: GROUP, sender: BEN, threadId: '7' });
    expect(await active('test_-5')).toBe('default');
    await say('@coterie_bot 2.', { chat: GROUP, sender: BEN, mentionsBot: true });
    expect(await active('test_-5')).toBe('marlow');
  });

  it('is a choice once, though the platform hands it in again, and in one batch with more', async () => {
    const { say, hand, message, on } = await line();
    await say('/persona');
    const one = message('1');
    await hand(one, message('1'));
    await hand(one);
    expect(on.texts().filter((text) => text.startsWith('Switched'))).toHaveLength(1);
    expect(asked(on)).toContain('>1<');
  });

  it('answers to forget as yes does, which stays as it was', async () => {
    const { say, last, remembers } = await line();
    await say('/memory forget swordfish');
    expect(last()).toMatch(
      /Answer `yes` within two minutes.*\n\n1 Forget\n2 Keep\n\nAnswer with a number\.$/s,
    );
    await say('2');
    expect(last()).toBe('Nothing was changed.');
    await say('yes');
    expect(await remembers('swordfish')).toBe(true);
    await say('/memory forget swordfish');
    await say('1');
    expect(last()).toMatch(/^Forgotten:/);
    expect(await remembers('swordfish')).toBe(false);
    await say('/memory forget herring');
  });

  it('is read in the digits of any script', () => {
    for (const text of ['2', ' 2. ', '2)', '２', '٢', '۲', '२', '๒', '2️⃣', '\u200e2'])
      expect(numberIn(text, false), text).toBe(2);
    expect(numberIn('١٢', false)).toBe(12);
    expect(numberIn('@coterie_bot 2', true)).toBe(2);
    for (const text of ['', 'two', '2!', '2 3', '-2', '2.5', '123', '²x', '@coterie_bot 2'])
      expect(numberIn(text, false), text).toBeNull();
  });
});

describe('a stranger who gets a code', () => {
  const EVE = { address: 'eve', name: 'Eve *the* `first`', administrator: false };
  const HERS = { chat: { address: 'e9', kind: 'direct' as const, title: 'Eve' }, sender: EVE };
  const OWNED: WorkbenchOptions = { rules: { direct: 'pairing', owners: ['test_anna'], chats: ['test_1'] } };

  it('is announced to the owner, once, who lets them in by a button', async () => {
    const { say, on, presses, last } = await line({ ...OWNED, buttons: true });
    await say('hello');
    await say('may I?', HERS);
    await say('hello?', HERS);
    const notes = on.sent.filter(({ part }) => part.choices !== undefined);
    expect(notes.map(({ to, part }) => [to.address, part.text])).toEqual([
      ['1', '`` Eve *the* `first` `` (test) wants to talk. Their code is ABCDEFGH.'],
    ]);
    expect(notes[0]?.part.choices?.map(({ label }) => label)).toEqual(['Let in', 'Refuse']);
    expect(await presses('Let in')).toBe('taken');
    expect(on.texts()).toContain('You are in. Write to me whenever you like; /help shows what I can do.');
    expect(on.texts().findLast((text) => text.includes('may write to me now'))).toContain(
      'coterie pair remove test_eve',
    );
    on.answer(() => 'welcome, Eve');
    await say('hello!', HERS);
    expect(last()).toBe('welcome, Eve');
    expect(await on.store.approvalOf({ chatId: 'test_eve', senderId: 'test_eve' })).toMatchObject({
      ...{ sender: true, owner: false },
    });
  });

  it('is refused by a button, told nothing, and not announced again for a week', async () => {
    const { say, on, presses, clock, last } = await line({ ...OWNED, buttons: true });
    await say('hello');
    await say('may I?', HERS);
    expect(await presses('Refuse')).toBe('taken');
    expect(last()).toMatch(/is refused. I will not ask about them again for 7 days\.$/);
    const said = on.texts().length;
    await clock.advance(6 * 86_400_000);
    await say('please', HERS);
    expect(on.texts()).toHaveLength(said);
    await clock.advance(2 * 86_400_000);
    await say('please', HERS);
    expect(on.texts()).toHaveLength(said + 2);
  });

  it('is decided on by owners alone, also in a control chat, where others change nothing by pressing', async () => {
    const rules = { ...OWNED.rules, controlChats: ['test_-5'] };
    const { say, presses, on } = await line({ buttons: true, rules });
    await say('hello', { chat: GROUP });
    await say('may I?', HERS);
    expect(on.sent.filter(({ part }) => part.choices !== undefined).map(({ to }) => to.address)).toEqual([
      '-5',
    ]);
    expect(await presses('Let in', { chat: GROUP, sender: BEN })).toBe('not yours');
    expect(await presses('Let in', { chat: GROUP })).toBe('taken');
  });

  it('is let in by a number and their code where there are no buttons, and by a number alone never', async () => {
    const rules = { ...OWNED.rules, controlChats: ['test_-5'] };
    const { say, on, last } = await line({ rules });
    await say('hello', { chat: GROUP });
    await say('may I?', HERS);
    expect(on.texts()).toContainEqual(
      expect.stringMatching(/\n\n1 Let in\n2 Refuse\n\nAnswer with a number and the code: `?1 ABCDEFGH`?\.$/),
    );
    const isIn = async () => (await on.store.approvalOf({ chatId: 'x', senderId: 'test_eve' })).sender;
    await say('1 ABCDEFGH', { chat: GROUP, sender: BEN });
    expect(await isIn(), 'by somebody who is no owner').toBe(false);
    for (const text of ['1', '1 ABCDEFGX', 'ABCDEFGH', '3 ABCDEFGH']) await say(text, { chat: GROUP });
    expect(await isIn(), 'without the code, or with another').toBe(false);
    await say('1 abcdefgh', { chat: GROUP });
    expect(await isIn()).toBe(true);
    expect(last()).toBeDefined();
  });

  it('is over when the code was approved elsewhere', async () => {
    const { say, on, presses, last } = await line({ ...OWNED, buttons: true });
    await say('hello');
    await say('may I?', HERS);
    const told = { member: { text: 'in', marks: [] }, owner: { text: 'in', marks: [] } };
    await on.store.approve({ codeOrId: 'ABCDEFGH', looksLike: null, asOwner: false, now: 0, told });
    expect(await presses('Refuse')).toBe('taken');
    expect(last()).toMatch(/^That request was already decided/);
    expect((await on.store.approvalOf({ chatId: 'x', senderId: 'test_eve' })).sender).toBe(true);
  });

  it('cannot be decided on by typing: unknown slash text is conversation', async () => {
    const { say, on } = await line({ ...OWNED, buttons: true });
    await say('hello');
    await say('may I?', HERS);
    await say('/pairing approve ABCDEFGH');
    expect(asked(on)).toContain('/pairing approve ABCDEFGH');
    expect(COMMAND_NAMES.has('pairing')).toBe(false);
  });
});

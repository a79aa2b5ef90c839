/** Step 1 at the door: under which id somebody is known, what comes in with a larger place, what is only heard. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Workbench, workbench } from '../harness/conversation.js';

let on: Workbench;
afterEach(() => on.close());

const PHONE = '49170@s.whatsapp.net';
const LID = '777@lid';
const direct = (address: string, otherAddress?: string) => ({
  chat: {
    ...{ address, kind: 'direct' as const, title: 'Mira' },
    ...(otherAddress === undefined ? {} : { otherAddress }),
  },
  sender: {
    ...{ address, name: 'Mira', administrator: false },
    ...(otherAddress === undefined ? {} : { otherAddress }),
  },
});
const inGroup = (within?: string) => ({
  chat: {
    ...{ address: '-5', kind: 'group' as const, title: 'Garden' },
    ...(within === undefined ? {} : { within }),
  },
});
const lastRequest = () => JSON.stringify(on.asked.at(-1)?.messages);

describe('somebody with two addresses', () => {
  it('is one chat, whichever form comes, under the id of the phone where that was known first', async () => {
    on = await workbench();
    await on.say('one', direct(PHONE, LID));
    await on.settled();
    await on.say('two', direct(LID));
    await on.settled();
    await on.say('three', direct(PHONE));
    await on.settled();
    expect(lastRequest()).toContain(`chat_id is test_${PHONE}`);
    for (const word of ['one', 'two', 'three']) expect(lastRequest()).toContain(word);
    const yaml = await readFile(join(on.folder, `groups/test_${PHONE}/chat.yaml`), 'utf8');
    expect(yaml).toContain(`test_${LID}`);
  });

  it('keeps the id they were first known by', async () => {
    on = await workbench();
    await on.say('hidden', direct(LID));
    await on.settled();
    await on.say('shown', direct(PHONE, LID));
    await on.settled();
    await on.say('again', direct(PHONE));
    await on.settled();
    expect(lastRequest()).toContain(`chat_id is test_${LID}`);
    for (const word of ['hidden', 'shown', 'again']) expect(lastRequest()).toContain(word);
  });

  it('is found again by the files alone, when the database is gone', async () => {
    on = await workbench();
    await on.say('one', direct(PHONE, LID));
    await on.settled();
    const { folder } = on;
    await on.conversation.stop(0);
    await on.store.close();
    await rm(join(folder, 'data'), { recursive: true });
    on = await workbench({ folder });
    await on.say('two', direct(LID));
    await on.settled();
    expect(lastRequest()).toContain(`chat_id is test_${PHONE}`);
  });

  it('is let in under either form, and leaves nothing behind when not let in', async () => {
    on = await workbench({ rules: { direct: 'closed', chats: [`test_${LID}`] } });
    expect((await on.say('stranger', direct('1@x', '2@x'))).rejected).toMatchObject([{ why: 'closed' }]);
    expect(await on.store.aliasOf('test_2@x')).toBeNull();
    await expect(readFile(join(on.folder, 'groups/test_1@x/chat.yaml'))).rejects.toThrow('ENOENT');
    expect((await on.say('known', direct(PHONE, LID))).rejected).toEqual([]);
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
  });

  it('is let in, and an owner, under the form that was approved, whichever comes first', async () => {
    on = await workbench({ rules: { direct: 'closed' } });
    const told = { member: { text: '', marks: [] }, owner: { text: '', marks: [] } };
    const asked = { codeOrId: `test_${LID}`, looksLike: 'sender' as const, asOwner: true, now: 1 };
    await on.store.approve({ ...asked, told });
    expect((await on.say('/whoami', direct(PHONE, LID))).rejected).toEqual([]);
    await on.settled();
    expect(on.texts().at(-1)).toMatch(/You are an owner\.$/);
    expect((await on.say('/whoami', direct(PHONE))).rejected).toEqual([]);
    await on.settled();
    expect(on.texts().at(-1)).toContain(`test_${LID}`);
  });
});

describe('a group within a larger place', () => {
  it('is let in with the whole of it, by the configuration', async () => {
    on = await workbench({ rules: { groups: 'listed', chats: ['test_guild'] } });
    expect((await on.say('hi', { ...inGroup('other'), mentionsBot: true })).rejected).toMatchObject([
      { why: 'unlisted group' },
    ]);
    expect((await on.say('hi', { ...inGroup('guild'), mentionsBot: true })).rejected).toEqual([]);
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
  });

  it('and by an approval', async () => {
    on = await workbench({ rules: { groups: 'listed' } });
    const told = { member: { text: '', marks: [] }, owner: { text: '', marks: [] } };
    await on.store.approve({ codeOrId: 'test_guild', looksLike: 'unknown', asOwner: false, now: 1, told });
    expect((await on.say('hi', { ...inGroup('guild'), mentionsBot: true })).rejected).toEqual([]);
    await on.settled();
  });
});

describe('whose account it is', () => {
  const self = { address: PHONE, otherAddress: LID, name: 'Me', administrator: true, self: true as const };

  it('talks with themselves, though everybody else is kept out', async () => {
    on = await workbench({ rules: { direct: 'closed', groups: 'closed' } });
    await on.say('note to self', { ...direct(LID), sender: self });
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
  });

  it('is heard and never answered or obeyed in what they write to others', async () => {
    on = await workbench({ rules: { chats: ['test_friend'], direct: 'closed' } });
    await on.say('see you at eight', { ...direct('friend'), sender: self });
    await on.say('/reset', { ...direct('friend'), sender: self });
    await on.settled();
    expect(on.asked).toEqual([]);
    expect(on.sent).toEqual([]);
    await on.say('when?', direct('friend'));
    await on.settled();
    expect(lastRequest()).toContain('see you at eight');
    expect(lastRequest()).toContain('/reset');
  });

  it('leaves nothing of what they write to somebody who is not let in', async () => {
    on = await workbench({ rules: { direct: 'closed' } });
    const { rejected } = await on.say('private', { ...direct('friend'), sender: self });
    expect(rejected).toHaveLength(1);
    expect(await on.store.chat('test_friend')).toBeNull();
  });
});

it('what is taken back before it is answered is not answered', async () => {
  on = await workbench();
  let answer: (text: string) => void = () => {};
  on.answer(() => new Promise((resolve) => (answer = resolve)));
  await on.say('first');
  await expect.poll(() => on.asked.length).toBe(1);
  await on.say('oops', { platformMessageId: 'a' });
  await on.receive({
    ...{ kind: 'deleted', platformMessageIds: ['a'] },
    chat: { address: '1', kind: 'direct' },
  });
  answer('done');
  await on.settled();
  expect(on.texts()).toEqual(['done']);
  on.answer(() => 'fine');
  await on.say('next');
  await on.settled();
  expect(on.asked).toHaveLength(2);
  expect(lastRequest()).not.toContain('oops');
});

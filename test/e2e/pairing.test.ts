/** `coterie pair`: who becomes an owner, what an id is filed as, and what the list shows of strangers. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Fault } from '../../src/core/errors.js';
import type { Store } from '../../src/core/store.js';
import { approve } from '../../src/pair.js';
import { openSqliteStore } from '../../src/store/open.js';
import { type Home, makeHome, run } from '../harness/gateway.js';
import { quietLog } from '../harness/quiet.js';

const HOUR = 3_600_000;
const MIGRATIONS = fileURLToPath(new URL('../../migrations/sqlite', import.meta.url));

let home: Home;
let store: Store;
afterEach(async () => {
  await store.close();
  await home.remove();
});

/** A gateway's folder in which these people wait, each with a code of their own letter. */
async function open(config: object = {}, waiting: Record<string, string> = { A: 'Anna' }): Promise<void> {
  home = await makeHome(config);
  const file = join(home.folder, 'data/coterie.db');
  store = await openSqliteStore({ file, migrationsFolder: MIGRATIONS, clock: systemClock, log: quietLog });
  for (const [letter, name] of Object.entries(waiting)) await asks(letter, name);
}

const idOf = (letter: string) => `telegram_${letter.charCodeAt(0)}`;
const codeOf = (letter: string) => letter.repeat(8);

async function asks(letter: string, name: string, expiresAt = Date.now() + HOUR): Promise<void> {
  const id = idOf(letter);
  const now = Date.now();
  const body = { text: 'your code', marks: [] };
  const said = { origin: `pairing:${letter}`, personaId: null, speaker: 'coterie', part: 0, replyTo: null };
  const to = {
    chatId: id,
    channel: 'telegram',
    address: id.slice(9),
    threadId: null,
    kind: 'direct' as const,
  };
  const outcome = await store.requestPairing(
    { channel: 'telegram', senderId: id, now, answerEveryMs: HOUR, most: 3, mostPerHour: 10 },
    {
      name,
      code: codeOf(letter),
      expiresAt,
      answer: { ...to, now, delivery: { ...said, body } },
      announcements: [],
    },
  );
  expect(outcome).toBe('asked');
}

async function pair(...args: string[]) {
  const done = run(home, ['pair', ...args]);
  const code = await done.exited;
  return { code, out: done.out(), err: done.err() };
}

const config = () => join(home.folder, 'config.yaml');
const standing = (id: string) => store.approvalOf({ chatId: id, senderId: id });
const MEMBER = { chat: true, sender: true, owner: false };
const OWNER = { ...MEMBER, owner: true };
const NOTHING = { member: { text: '', marks: [] }, owner: { text: '', marks: [] } };
const STRANGER = { chat: false, sender: false, owner: false };

/** What the person was told, in order. */
async function told(letter: string): Promise<string[]> {
  const texts: string[] = [];
  for (;;) {
    const next = await store.nextDelivery(idOf(letter), 'test', Date.now());
    if (!next) return texts;
    texts.push(next.body.text);
    await store.settle(next.id, { kind: 'sent', platformMessageId: '1' }, Date.now());
  }
}

describe('a code', () => {
  it('makes nobody an owner; while there is none, it is said how somebody becomes one', async () => {
    await open();
    const { code, out } = await pair('approve', codeOf('A'));
    expect(code).toBe(0);
    expect(out).toContain(`${idOf('A')} may talk now.`);
    expect(out).toContain(`coterie pair approve ${idOf('A')} --owner`);
    expect(await standing(idOf('A'))).toEqual(MEMBER);
    const made = await pair('approve', idOf('A'), '--owner');
    expect(made).toMatchObject({ code: 0, out: `${idOf('A')} may talk now, and is the owner.\n` });
    expect(await standing(idOf('A'))).toEqual(OWNER);
    const texts = await told('A');
    expect(texts).toHaveLength(3);
    expect(texts[1]).toMatch(/^You are in\. /);
    expect(texts[2]).toContain('my owner');
  });

  it('makes an owner with --owner, and of the next one a member without a word of owners', async () => {
    await open({}, { A: 'Anna', B: 'Ben' });
    const written = ` ${codeOf('a').slice(0, 4)} ${codeOf('A').slice(4)} `;
    expect((await pair('approve', '--owner', written)).out).toBe(
      `${idOf('A')} may talk now, and is the owner.\n`,
    );
    expect((await pair('approve', codeOf('B'))).out).toBe(`${idOf('B')} may talk now.\n`);
    expect(await standing(idOf('A'))).toEqual(OWNER);
    expect(await standing(idOf('B'))).toEqual(MEMBER);
  });

  it.each([
    ['access', { access: { owners: ['telegram_1'] } }],
    ['a channel', { channels: { telegram: { token: '1:a', access: { owners: ['telegram_1'] } } } }],
    ['the terminal', { channels: { terminal: { access: { owners: ['telegram_1'] } } } }],
  ])('makes nobody an owner where %s lists them, and says where to add the id', async (_where, listing) => {
    await open(listing);
    const refused = await pair('approve', codeOf('A'), '--owner');
    expect(refused.code).toBe(2);
    expect(refused.err).toMatch(new RegExp(`access\\.owners.*${idOf('A')}`));
    expect(await standing(idOf('A'))).toEqual(STRANGER);
    expect(await pair('approve', codeOf('A'))).toMatchObject({
      code: 0,
      out: `${idOf('A')} may talk now.\n`,
    });
    expect(await standing(idOf('A'))).toEqual(MEMBER);
  });

  it('is good once, and not when it has expired or was never given', async () => {
    await open();
    await asks('B', 'Ben', Date.now() - 1);
    const both = await Promise.all([pair('approve', codeOf('A')), pair('approve', codeOf('A'), '--owner')]);
    expect(both.map(({ code }) => code).sort()).toEqual([0, 1]);
    for (const code of [codeOf('B'), '\u001b[31mRED\u202e']) {
      const { code: exit, err } = await pair('approve', code);
      expect(exit).toBe(1);
      expect(err).toMatch(
        /^coterie: No pending request has the code or ID \S.*; coterie pair list shows them\.\n$/,
      );
      for (const mark of ['\u001b', '\u202e']) expect(err).not.toContain(mark);
    }
    expect(await standing(idOf('B'))).toEqual(STRANGER);
  });
});

describe('at a terminal', () => {
  let asked: string[];
  /** As if somebody sat there who answers this. */
  const approveThere = (codeOrId: string, answer: string) => {
    asked = [];
    return approve(config(), codeOrId, false, async (question) => {
      asked.push(question);
      return answer;
    });
  };

  it('it is asked whether the first one shall be the owner, and said who that is', async () => {
    await open({}, { A: 'Anna\u202e\u001b[31m', B: 'Ben', C: 'Cid' });
    await approveThere(codeOf('A'), '');
    expect(asked).toEqual([
      expect.stringMatching(new RegExp(`^Anna \\[31m \\(${idOf('A')}\\) .*no owner yet`)),
    ]);
    expect(await standing(idOf('A'))).toEqual(MEMBER);
    for (const answer of ['n', 'yesterday']) {
      await approveThere(idOf('A'), answer);
      expect(asked).toHaveLength(1);
      expect(await standing(idOf('A')), answer).toEqual(MEMBER);
    }
    await approveThere(codeOf('B'), ' Yes ');
    expect(await standing(idOf('B'))).toEqual(OWNER);
    await approveThere(codeOf('C'), 'y');
    expect(asked, 'there is one by then').toEqual([]);
    expect(await standing(idOf('C'))).toEqual(MEMBER);
  });

  it('nobody is asked where owners are listed, nor of a group', async () => {
    await open({ access: { owners: ['telegram_1'] } });
    await approveThere(codeOf('A'), 'y');
    expect(asked).toEqual([]);
    await home.configure({});
    await approveThere('telegram_-5', 'y');
    expect(asked).toEqual([]);
    expect((await store.owners([])).ids).toEqual([]);
  });
});

describe('an id', () => {
  /** The exit code, with what is said of a failure. */
  const ends = async (id: string, asOwner: boolean): Promise<[number, string]> =>
    approve(config(), id, asOwner, null).then(
      () => [0, ''],
      (error: Fault) => [error.code === 'configuration' ? 2 : 1, error.message],
    );

  it.each([
    ['telegram_12345', 0],
    ['whatsapp_491701234567@s.whatsapp.net', 0],
    ['whatsapp_123456789012345@lid', 0],
    ['telegram_-1001234567890', 2],
    ['whatsapp_120363001234567890@g.us', 2],
    ['discord_112233445566778899', 2],
  ])(
    'that nobody has been heard under is what it looks like: %s as an owner ends with %d',
    async (id, exit) => {
      await open({}, {});
      expect(await ends(id, true)).toEqual([
        exit,
        exit === 0 ? '' : expect.stringMatching(/--owner .*let in/),
      ]);
      expect(await standing(id)).toEqual(exit === 0 ? OWNER : STRANGER);
      if (exit === 0) return;
      expect(await ends(id, false)).toEqual([0, '']);
      expect(await standing(id)).toEqual(MEMBER);
      expect((await store.owners([])).ids).toEqual([]);
    },
  );

  it.each([
    ['telegram_anna', /Telegram; expected: telegram_123456789/],
    ['telegram_', /Telegram; expected: telegram_123456789/],
    ['whatsapp_+491701234567', /WhatsApp; expected: whatsapp_491701234567@s\.whatsapp\.net/],
    ['discord_#general', /Discord; expected: discord_\d+/],
    ['signal_12345', /no channel that there is; expected: telegram_…, discord_…, whatsapp_…/],
    ['_5', /no channel/],
  ])('that is none is refused with what is expected: %s', async (id, said) => {
    await open({}, {});
    expect(await ends(id, false)).toEqual([1, expect.stringMatching(said)]);
    expect(await standing(id)).toEqual(STRANGER);
  });
});

describe('the list', () => {
  it('says first that there is no owner, as long as there is none', async () => {
    await open();
    const first = async () => (await pair('list')).out.split('\n')[0];
    expect(await first()).toMatch(/no owner.*pair approve CODE --owner/);
    await approve(config(), codeOf('A'), false, null);
    expect(await first()).toMatch(/no owner/);
    await approve(config(), idOf('A'), true, null);
    expect(await first()).toBe('No pending requests.');
    await store.refuse({ id: idOf('A') });
    expect(await first()).toMatch(/no owner/);
    await home.configure({ access: { owners: ['telegram_1'] } });
    expect(await first()).toBe('No pending requests.');
  });

  it('shows a name on one line, without what controls a terminal or turns the writing, and not all of it', async () => {
    await open(
      {},
      {
        A: '\u001b[2J\u001b]0;x\u0007An\nna\u2028\u009b31m',
        B: '\u202eevE\u2066\u200f',
        C: 'x'.repeat(5_000),
      },
    );
    const group = {
      chatId: 'telegram_-5',
      title: 'Club\u001b[31m',
      now: Date.now() + 1,
      keepMs: HOUR,
      most: 50,
    };
    await store.noteGroup(group);
    const lines = (await pair('list')).out.trimEnd().split('\n').slice(1);
    expect(lines.map((line) => line.replace(/until .*Z/, 'until then'))).toEqual([
      `AAAAAAAA  [2J ]0;x An na 31m (sender ${idOf('A')}, until then)`,
      `BBBBBBBB  evE (sender ${idOf('B')}, until then)`,
      `CCCCCCCC  ${'x'.repeat(59)}… (sender ${idOf('C')}, until then)`,
      'telegram_-5  Club [31m (group telegram_-5, until then)',
    ]);
  });
});

it('takes an id back as it was copied, with the spaces around it', async () => {
  await open();
  await store.approve({ codeOrId: idOf('B'), looksLike: 'sender', asOwner: false, now: 1, told: NOTHING });
  expect(await pair('remove', ` ${idOf('B')} `)).toMatchObject({ code: 0 });
  expect(await standing(idOf('B'))).toEqual(STRANGER);
});

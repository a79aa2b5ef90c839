/** The tool that speaks beside the answer: which files it may send, to whom, and as what it asks the outbox. */
import { mkdir, mkdtemp, readFile, realpath, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ZodType, z } from 'zod';
import type { Authorisation } from '../../src/core/authorisation.js';
import type { SideMessage, ToolContext } from '../../src/core/tool.js';
import { sendMessage } from '../../src/tools/sending.js';
import { archivesIn } from '../groups/support.js';
import { askerWho } from '../harness/asker.js';
import { foldersIn } from '../harness/folders.js';

const HERE = 'telegram_1';
const OTHER = 'telegram_2';
const caller: Authorisation = {
  ...{ chatId: HERE, personaId: 'luna', senderId: 'telegram_9', channel: 'telegram', controlChats: [] },
  asker: askerWho(),
};
const control: Authorisation = { ...caller, controlChats: [HERE], asker: askerWho({ own: true }) };

/** `files` lie below a folder that holds both `groups` and `media`. */
async function setUp(files: string[] = [], post?: (ask: SideMessage) => Promise<'posted' | 'unknown chat'>) {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'coterie-send-')));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  for (const file of files) {
    await mkdir(dirname(join(home, file)), { recursive: true });
    await writeFile(join(home, file), file);
  }
  const posted: SideMessage[] = [];
  const tool = sendMessage({
    groupsDir: join(home, 'groups'),
    folders: foldersIn(home),
    archives: archivesIn(join(home, 'groups')),
    post: async (ask) => {
      posted.push(ask);
      return post === undefined ? 'posted' : post(ask);
    },
  });
  const none = () => {};
  const context: ToolContext = {
    authorisation: caller,
    room: `${HERE}/45`,
    turnId: 'turn-7',
    callId: 'call-1',
    signal: new AbortController().signal,
    now: Date.parse('2026-03-10T12:00:00Z'),
    timezone: 'Europe/Berlin',
    log: { debug: none, info: none, warn: none, error: none },
    cause: { kind: 'turn', personaId: 'luna', turnId: 'turn-7' },
    seen: new Map(),
  };
  const schema = tool.parameters;
  if (!(schema instanceof ZodType)) throw new Error('the tool has no zod schema');
  const call = async (parameters: object, changes: Partial<ToolContext> = {}) => {
    const result = await tool.execute(schema.parse(parameters), { ...context, ...changes });
    if ('waitsFor' in result) throw new Error('the tool waits for something');
    return result;
  };
  return { home, tool, schema, posted, call };
}

test('is a tool that sends, with nothing that must be given', async () => {
  const { tool, schema } = await setUp();
  // Not of low risk: so it is never said twice.
  expect(tool).toMatchObject({ name: 'send_message', risk: 'medium' });
  const described = z.toJSONSchema(schema, { io: 'input' });
  expect(Object.keys(described.properties ?? {})).toEqual(['text', 'attachment_path', 'chat_id']);
  expect(described.required ?? []).toEqual([]);
});

describe('a text', () => {
  test('goes to the own chat', async () => {
    const { call, posted } = await setUp();
    expect(await call({ text: 'One moment …' })).toEqual({
      content: 'The message is on its way.',
      failed: false,
    });
    expect(posted).toEqual([
      {
        ...{ chatId: HERE, personaId: 'luna', turnId: 'turn-7', text: 'One moment …', file: null },
        room: `${HERE}/45`,
        key: expect.stringMatching(/^[0-9a-f]{24}$/),
      },
    ]);
  });

  test('has the same key when the same turn sends it again, and another one for anything else', async () => {
    const { call, posted } = await setUp();
    await call({ text: 'a' });
    await call({ text: 'a', chat_id: HERE });
    await call({ text: 'b' });
    await call({ text: 'a' }, { cause: { kind: 'turn', personaId: 'luna', turnId: 'turn-8' } });
    const [first, second, third, fourth] = posted.map(({ key }) => key);
    expect(second).toBe(first);
    expect(new Set([first, third, fourth]).size).toBe(3);
  });

  test.each([{}, { text: '  \n' }, { text: '', attachment_path: '' }])(
    'there has to be one, or a file: %j',
    async (parameters) => {
      const { call, posted } = await setUp();
      expect(await call(parameters)).toMatchObject({
        failed: true,
        content: expect.stringContaining('nothing to send'),
      });
      expect(posted).toEqual([]);
    },
  );
});

describe('another chat', () => {
  test('is reached from a control chat only', async () => {
    const { call, posted } = await setUp();
    expect(await call({ text: 'x', chat_id: OTHER })).toMatchObject({
      failed: true,
      content: expect.stringContaining('Permission denied'),
    });
    expect(posted).toEqual([]);
    expect(await call({ text: 'x', chat_id: OTHER }, { authorisation: control })).toMatchObject({
      failed: false,
    });
    expect(posted).toMatchObject([{ chatId: OTHER, personaId: 'luna' }]);
  });

  test('that is not there, or cannot be, is told', async () => {
    const { call } = await setUp([], async () => 'unknown chat');
    const authorisation = control;
    expect((await call({ text: 'x', chat_id: OTHER }, { authorisation })).content).toContain(`"${OTHER}"`);
    expect((await call({ text: 'x', chat_id: '../x' }, { authorisation })).content).toContain('cannot exist');
  });
});

test.each<[string, Partial<ToolContext>]>([
  ['without an authorisation', { authorisation: undefined }],
  ['outside of a turn', { cause: { kind: 'flush', personaId: 'luna', turnId: null } }],
  ['after /stop', { signal: AbortSignal.abort() }],
])('nothing is sent %s', async (_name, changes) => {
  const { call, posted } = await setUp([`groups/${HERE}/a.md`]);
  expect(await call({ text: 'x', attachment_path: 'a.md' }, changes)).toMatchObject({ failed: true });
  expect(posted).toEqual([]);
});

describe('a file', () => {
  const FILES = [
    `groups/${HERE}/luna/MEMORY.md`,
    `groups/${HERE}/memory/2026-03-10.md`,
    `media/${HERE}/id-1.jpg`,
    `groups/${OTHER}/luna/MEMORY.md`,
    `media/${OTHER}/id-2.jpg`,
    'groups/AGENTS.md',
    'coterie.db',
  ];

  test.each([
    ['luna/MEMORY.md', `groups/${HERE}/luna/MEMORY.md`, 'MEMORY.md'],
    ['./memory/../memory/2026-03-10.md', `groups/${HERE}/memory/2026-03-10.md`, '2026-03-10.md'],
    ['id-1.jpg', `media/${HERE}/id-1.jpg`, 'id-1.jpg'],
    ['./id-1.jpg', `media/${HERE}/id-1.jpg`, 'id-1.jpg'],
  ])('of the chat: %s', async (path, place, name) => {
    const { home, call, posted } = await setUp(FILES);
    expect(await call({ attachment_path: path })).toMatchObject({ content: 'The file is on its way.' });
    expect(posted).toMatchObject([{ text: '', file: { path: join(home, place), name } }]);
    expect((await call({ attachment_path: path, text: 'Here' })).content).toContain('message with the file');
  });

  test.each([
    `../${OTHER}/luna/MEMORY.md`,
    `../${OTHER}/id-2.jpg`,
    '../AGENTS.md',
    '../../coterie.db',
    '/etc/passwd',
    '../../../../../../../../etc/passwd',
    '.',
    '..',
    `../${HERE}`,
    'luna/.MEMORY.md.12-1.tmp',
    'a\0b',
    '../not/there/at/all',
  ])("that is not the chat's, there or not, is refused: %j", async (path) => {
    const { call, posted } = await setUp([...FILES, `groups/${HERE}/luna/.MEMORY.md.12-1.tmp`]);
    expect(await call({ attachment_path: path, text: 'x' })).toMatchObject({
      failed: true,
      content: expect.stringContaining('Permission denied'),
    });
    expect(posted).toEqual([]);
  });

  test('behind a link that leads out is refused, also where the folder is one', async () => {
    const { home, call, posted } = await setUp(FILES);
    await symlink(join(home, 'coterie.db'), join(home, `groups/${HERE}/luna/notes.md`));
    await symlink(join(home, `groups/${OTHER}`), join(home, `groups/${HERE}/luna/friends`));
    for (const path of ['luna/notes.md', 'luna/friends/luna/MEMORY.md']) {
      expect((await call({ attachment_path: path })).content).toContain('Permission denied');
    }
    expect(posted).toEqual([]);
  });

  test('behind a link that stays is sent, and so is one in a folder that lies elsewhere', async () => {
    const { home, call, posted } = await setUp(FILES);
    await symlink(join(home, `groups/${HERE}/luna/MEMORY.md`), join(home, `groups/${HERE}/luna/notes.md`));
    await mkdir(join(home, 'elsewhere'));
    await writeFile(join(home, 'elsewhere/a.txt'), 'x');
    await rm(join(home, `media/${HERE}`), { recursive: true });
    await symlink(join(home, 'elsewhere'), join(home, `media/${HERE}`));
    await call({ attachment_path: 'luna/notes.md' });
    await call({ attachment_path: 'a.txt' });
    expect(posted.map(({ file }) => file)).toEqual([
      { path: join(home, `groups/${HERE}/luna/MEMORY.md`), name: 'notes.md' },
      { path: join(home, 'elsewhere/a.txt'), name: 'a.txt' },
    ]);
  });

  test('whose name a Mac wrote is found by the name that people type, and sent under it', async () => {
    const name = 'Grüße.md'.normalize('NFC');
    const { call, posted, home } = await setUp([`groups/${HERE}/luna/${name.normalize('NFD')}`]);
    expect(await call({ attachment_path: `luna/${name}` })).toMatchObject({ failed: false });
    const path = join(home, 'groups', HERE, 'luna', name.normalize('NFD'));
    expect(posted).toMatchObject([{ file: { path, name } }]);
  });

  test('of any chat goes from a control chat to any', async () => {
    const { home, call, posted } = await setUp(FILES);
    const authorisation = control;
    await call({ attachment_path: 'luna/MEMORY.md', chat_id: OTHER }, { authorisation });
    await call({ attachment_path: `${OTHER}/id-2.jpg` }, { authorisation });
    expect(posted).toMatchObject([
      { chatId: OTHER, file: { path: join(home, `groups/${OTHER}/luna/MEMORY.md`) } },
      { chatId: HERE, file: { path: join(home, `media/${OTHER}/id-2.jpg`) } },
    ]);
    const outside = await call({ attachment_path: '../coterie.db' }, { authorisation });
    expect(outside.content).toContain('Permission denied');
  });

  test.each(['luna', 'nothing.md', 'luna/MEMORY.md/x', 'x'.repeat(300)])(
    'that is not there, or none, is told of with those that are: %s',
    async (path) => {
      const { home, call, posted } = await setUp([...FILES, `media/${HERE}/id-3.pdf`]);
      await utimes(join(home, `media/${HERE}/id-3.pdf`), 0, Date.parse('2030-01-01T11:00:00Z') / 1000);
      const { content, failed } = await call({ attachment_path: path });
      expect(failed).toBe(true);
      expect(content).toMatch(
        /no such file.*:\nid-3\.pdf \(\d+ bytes, came 2030-01-01 12:00\)\nid-1\.jpg \(\d+ bytes, came /,
      );
      expect(content).not.toContain('id-2');
      expect(posted).toEqual([]);
    },
  );

  test('where none ever came', async () => {
    const { call } = await setUp();
    expect((await call({ attachment_path: 'a.md' })).content).toContain('No file has come');
  });
});

describe('of the chat, but not its own', () => {
  const head = (persona: string, more = '') =>
    `---\nchat: ${HERE}\npersona: ${persona}\nmessages: 1\nflushed: true\n${more}---\n\nsaid\n`;
  const ARCHIVES: Record<string, string> = {
    '2026-01-01T10-00-00-luna.md': head('luna'),
    '2026-01-02T10-00-00-luna.md': head('luna', 'reset: true\n'),
    '2026-01-01T10-00-00-max.md': head('max'),
    // What its name says is not what it is.
    '2026-01-03T10-00-00-luna.md': head('max'),
    'notes.md': 'by hand',
  };

  async function withArchives() {
    const files = ['luna/MEMORY.md', 'max/MEMORY.md', 'chat.yaml'].map((file) => `groups/${HERE}/${file}`);
    const setting = await setUp([...files, 'groups/AGENTS.md']);
    await mkdir(join(setting.home, `groups/${HERE}/archive`));
    for (const [file, text] of Object.entries(ARCHIVES)) {
      await writeFile(join(setting.home, `groups/${HERE}/archive`, file), text);
    }
    return setting;
  }

  test('its own archives go, but none that was reset', async () => {
    const { call, posted } = await withArchives();
    await call({ attachment_path: 'archive/2026-01-01T10-00-00-luna.md' });
    expect(posted).toMatchObject([{ file: { name: '2026-01-01T10-00-00-luna.md' } }]);
  });

  test.each([
    'max/MEMORY.md',
    'nobody/MEMORY.md',
    './luna/../max/MEMORY.md',
    'archive/2026-01-02T10-00-00-luna.md',
    'luna/../archive/2026-01-02T10-00-00-luna.md',
    'archive/2026-01-01T10-00-00-max.md',
    'archive/2026-01-03T10-00-00-luna.md',
    'archive/notes.md',
  ])('%s is refused', async (path) => {
    const { home, call, posted } = await withArchives();
    expect((await call({ attachment_path: path })).content).toContain('Permission denied');
    await symlink(join(home, `groups/${HERE}`, path), join(home, `groups/${HERE}/luna/link.md`));
    expect((await call({ attachment_path: 'luna/link.md' })).failed).toBe(true);
    expect(posted).toEqual([]);
  });

  test('is missing, and not forbidden, where the folder of all chats is a link and holds none', async () => {
    const { home, call } = await setUp();
    await mkdir(join(home, 'elsewhere'));
    await symlink(join(home, 'elsewhere'), join(home, 'groups'));
    const { content } = await call({ attachment_path: 'memory/2026-01-01.md' });
    expect(content).toContain('there is no such file');
  });

  test('where their folder is a link, and in folders of that name that hold none', async () => {
    const { home, call, posted } = await withArchives();
    await rename(join(home, `groups/${HERE}/archive`), join(home, 'elsewhere'));
    await symlink(join(home, 'elsewhere'), join(home, `groups/${HERE}/archive`));
    await mkdir(join(home, 'elsewhere/old'));
    await writeFile(join(home, 'elsewhere/old/2026-01-01T10-00-00-luna.md'), 'said');
    for (const path of Object.keys(ARCHIVES).slice(1).concat('old/2026-01-01T10-00-00-luna.md')) {
      const { content } = await call({ attachment_path: `archive/${path}` });
      expect(content, path).toContain('Permission denied');
    }
    await call({ attachment_path: 'archive/2026-01-01T10-00-00-luna.md' });
    await mkdir(join(home, `groups/${HERE}/luna/archive`));
    await writeFile(join(home, `groups/${HERE}/luna/archive/a.txt`), 'a');
    await call({ attachment_path: 'luna/archive/a.txt' });
    expect(posted.map(({ file }) => file?.name)).toEqual(['2026-01-01T10-00-00-luna.md', 'a.txt']);
  });

  test("on an owner's word from a control chat any persona's goes, but no archive that was reset", async () => {
    const { call, posted } = await withArchives();
    const authorisation = control;
    await call({ attachment_path: 'max/MEMORY.md' }, { authorisation });
    await call({ attachment_path: 'archive/2026-01-01T10-00-00-max.md' }, { authorisation });
    expect(posted).toHaveLength(2);
    for (const path of [
      'archive/2026-01-02T10-00-00-luna.md',
      `${HERE}/archive/2026-01-02T10-00-00-luna.md`,
    ]) {
      expect((await call({ attachment_path: path }, { authorisation })).content).toContain(
        'Permission denied',
      );
    }
    expect(posted).toHaveLength(2);
  });

  test('what a member of a control chat says gives no right to others', async () => {
    const { call, posted } = await withArchives();
    const authorisation = { ...control, asker: askerWho({ change: 'yes' }) };
    for (const given of [{ attachment_path: 'max/MEMORY.md' }, { text: 'x', chat_id: OTHER }]) {
      expect((await call(given, { authorisation })).content).toContain('Permission denied');
    }
    expect(posted).toEqual([]);
  });
});

describe('a file of the working folder', () => {
  const OWN = `work/${HERE}/luna`;

  test('goes first, as it is now: what is put in its place later does not', async () => {
    const { home, call, posted } = await setUp([
      `${OWN}/charts/a.PNG`,
      `${OWN}/id-1.jpg`,
      `media/${HERE}/id-1.jpg`,
    ]);
    await call({ attachment_path: 'charts/a.PNG' });
    await call({ attachment_path: 'id-1.jpg' });
    await rm(join(home, OWN, 'charts/a.PNG'));
    await symlink(join(home, 'coterie.db'), join(home, OWN, 'charts/a.PNG'));
    expect(posted.map(({ file }) => file?.name)).toEqual(['a.PNG', 'id-1.jpg']);
    expect(posted[0]?.file?.path).toBe(join(home, `media/${HERE}/sent-${posted[0]?.key}.png`));
    const sent = await Promise.all(posted.map(({ file }) => readFile(file?.path ?? '', 'utf8')));
    expect(sent).toEqual([`${OWN}/charts/a.PNG`, `${OWN}/id-1.jpg`]);
    expect((await call({ attachment_path: 'nothing.md' })).content).not.toContain('sent-');
  });

  test('or of media/, where it is; in its place, what is there for another chat from a control chat', async () => {
    const { home, call, posted } = await setUp([`media/${HERE}/id-1.jpg`, `${OWN}/a.txt`]);
    await call({ attachment_path: 'media/id-1.jpg' });
    await call({ attachment_path: 'a.txt', chat_id: OTHER }, { authorisation: control });
    expect(posted).toMatchObject([
      { chatId: HERE, file: { path: join(home, `media/${HERE}/id-1.jpg`), name: 'id-1.jpg' } },
      {
        chatId: OTHER,
        file: { path: join(home, `media/${HERE}/sent-${posted[1]?.key}.txt`), name: 'a.txt' },
      },
    ]);
  });

  test("that leads out of it, or is another persona's, is not sent", async () => {
    const { home, call, posted } = await setUp([`${OWN}/a.txt`, `work/${HERE}/max/b.txt`, 'coterie.db']);
    await symlink(join(home, 'coterie.db'), join(home, OWN, 'link'));
    await symlink('../max', join(home, OWN, 'friend'));
    for (const path of ['link', 'friend/b.txt', '../max/b.txt', 'b.txt', join(home, 'coterie.db')]) {
      expect((await call({ attachment_path: path })).failed).toBe(true);
    }
    expect(posted).toEqual([]);
  });
});

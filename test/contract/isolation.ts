/**
 * Who may see what, tried through every door there is: the prompt with what is recalled, the memory tools, search, files
 * that are sent, `/memory`, `/memory why`, `/memory export`, `/archive`, flush and summary. The tables are data; each
 * secret is a word that stands nowhere else, and may be found by those named, by nobody else.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { InboundMessage } from '../../src/core/message.js';
import type { ModelRequest } from '../../src/core/model.js';
import type { Answer, Workbench } from '../harness/conversation.js';

type Where = Partial<InboundMessage>;

const group = (address: string, threadId: string | null = null): Where => ({
  ...{ chat: { address, kind: 'group', title: `Group ${address}` }, threadId, mentionsBot: true },
});
const direct = (address: string): Where => ({ chat: { address, kind: 'direct', title: 'Somebody' } });
const by = (address: string, administrator = false) => ({
  sender: { address, name: `Person ${address}`, administrator },
});

const GARDEN = group('-5');
const THREAD = group('-5', '45');
/** It was a thread of the garden until the platform said that it has other members. */
const PRIVATE = group('77');
const ONCE_A_THREAD = group('-5', '77');
const YARD = group('-6');
const CONTROL = group('-9');

export const RULES = { owners: ['test_7'], controlChats: ['test_-9'] };

/** Who asks, where. `to`: the name by which a persona is called; left out: `default`. */
export interface Actor {
  where: Where;
  asks: { sender: InboundMessage['sender'] }[];
  to?: string;
}

export const ACTORS = {
  'a persona of the garden': { where: GARDEN, asks: [by('1')] },
  'another persona of the garden': { where: GARDEN, asks: [by('1')], to: 'Luna' },
  'a thread of the garden': { where: THREAD, asks: [by('1')] },
  'a private thread of the garden': { where: PRIVATE, asks: [by('2')] },
  'the same person alone': { where: direct('1'), asks: [by('1')] },
  'the same persona in a yard that has moved': { where: group('-600'), asks: [by('1')] },
  'a member of a control chat': { where: CONTROL, asks: [by('1')] },
  'an owner of a control chat': { where: CONTROL, asks: [by('7')] },
  'an owner and a member of it at once': { where: CONTROL, asks: [by('7'), by('1')] },
} satisfies Record<string, Actor>;

export type ActorName = keyof typeof ACTORS;

const GARDEN_ITSELF: ActorName[] = ['a persona of the garden', 'a thread of the garden'];
const LUNA: ActorName = 'another persona of the garden';
const OWNER: ActorName = 'an owner of a control chat';

/** By the word: who may find it. */
export const SECRETS = {
  /** Said. */
  gecko: GARDEN_ITSELF,
  heron: GARDEN_ITSELF,
  /** Of a thread that became a chat: in its archive. */
  bison: ['a private thread of the garden', OWNER],
  quokka: ['the same person alone'],
  ibex: ['the same persona in a yard that has moved'],
  walrus: [],
  /** In tiers; of a persona that was deleted, too. */
  tapir: [...GARDEN_ITSELF, OWNER],
  ocelot: [LUNA, OWNER],
  condor: ['the same person alone', OWNER],
  puffin: ['the same persona in a yard that has moved', OWNER],
  moth: [OWNER],
  /** In the daily log. */
  lemur: [...GARDEN_ITSELF, LUNA, OWNER],
  /** In archives: one that stands, one of somebody else's, one that was reset. */
  dingo: [...GARDEN_ITSELF, OWNER],
  weasel: [LUNA, OWNER],
  ibis: [],
  /** In files that came with messages. */
  otter: [...GARDEN_ITSELF, LUNA, OWNER],
  badger: ['the same person alone', OWNER],
} satisfies Record<string, ActorName[]>;

export type Secret = keyof typeof SECRETS;

const told = (secret: Secret) => `The code word is ${secret}.`;

async function tell(on: Workbench, where: Where, text: string, sender = by('1')): Promise<void> {
  await on.say(text, { ...where, ...sender });
  await on.settled();
}

async function put(on: Workbench, path: string, text: string): Promise<void> {
  await mkdir(dirname(join(on.folder, path)), { recursive: true });
  await writeFile(join(on.folder, path), text);
}

const memoryOf = (secret: Secret) =>
  `# Memory\n\n## Tier 1 — Long term\n\n## Tier 2 — Mid term\n\n- ${told(secret)}\n\n## Tier 3 — Short term\n`;
const archiveOf = (secret: Secret, persona: string, more = '') =>
  `---\nchat: test_-5\npersona: ${persona}\nmessages: 1\nreason: test\nflushed: true\n${more}---\n\n# Conversation with ${persona}\n\n` +
  `## Mira · 2025-01-01 10:00 <!-- m1 -->\n\n${told(secret)}\n`;

/** Puts each secret in its place. */
export async function plant(on: Workbench): Promise<void> {
  on.answer(() => 'I see.');
  await tell(on, GARDEN, told('walrus'));
  await tell(on, GARDEN, '/reset', by('7'));
  await tell(on, GARDEN, told('gecko'));
  await tell(on, THREAD, told('heron'));
  await tell(on, ONCE_A_THREAD, told('bison'), by('2'));
  await tell(on, direct('1'), told('quokka'));
  await tell(on, YARD, told('ibex'));
  await on.receive({ kind: 'moved', from: '-6', to: '-600' });
  await on.receive({ kind: 'apart', from: '-5', threadId: '77', to: '77' });
  for (const name of ['Gone', 'Luna']) await tell(on, GARDEN, `/persona new ${name}`, by('7'));
  await tell(on, GARDEN, '/persona switch default', by('7'));
  await tell(on, GARDEN, '/persona delete Gone', by('7'));
  const [year = ''] = new Date().toISOString().split('T');
  await put(on, 'groups/test_-5/default/MEMORY.md', memoryOf('tapir'));
  await put(on, 'groups/test_-5/luna/MEMORY.md', memoryOf('ocelot'));
  await put(on, 'groups/test_-5/gone/MEMORY.md', memoryOf('moth'));
  await put(on, 'groups/test_1/default/MEMORY.md', memoryOf('condor'));
  await put(on, 'groups/test_-6/default/MEMORY.md', memoryOf('puffin'));
  await put(on, `groups/test_-5/memory/${year}.md`, `- ${told('lemur')}\n`);
  await put(on, 'groups/test_-5/archive/2025-01-01T10-00-00-default.md', archiveOf('dingo', 'default'));
  await put(on, 'groups/test_-5/archive/2025-01-01T10-00-00-luna.md', archiveOf('weasel', 'luna'));
  await put(
    on,
    'groups/test_-5/archive/2025-01-02T10-00-00-default.md',
    archiveOf('ibis', 'default', 'reset: true\n'),
  );
  await put(on, 'data/media/test_-5/id-1.txt', told('otter'));
  await put(on, 'data/media/test_1/id-2.txt', told('badger'));
}

const CHATS = ['', 'test_-5', 'test_1', 'test_-6', 'test_-600', 'test_77', 'test_-5/77', '../test_-5'];
const PERSONAS = ['', 'default', 'luna', 'gone', '../default'];
const QUESTION = 'What is the code word?';

/** Every call that a model could think of, whatever it may do. */
async function everyCall(on: Workbench): Promise<{ name: string; arguments: object }[]> {
  const [today = ''] = new Date().toISOString().split('T');
  const whose = CHATS.flatMap((chat_id) => PERSONAS.map((persona_id) => ({ chat_id, persona_id })));
  const files = [...(await filesBelow(on, 'groups')), ...(await filesBelow(on, 'data/media'))];
  const paths = files.flatMap((file) => {
    const [chat = '', ...rest] = file.split('/');
    const inner = rest.join('/');
    return [
      { attachment_path: file },
      { attachment_path: inner },
      { attachment_path: inner, chat_id: chat },
      { attachment_path: `../${file}` },
      { attachment_path: join(on.folder, 'groups', file) },
    ];
  });
  return [
    { name: 'search_memory', arguments: { query: QUESTION, limit: 50 } },
    ...whose.map((ids) => ({ name: 'read_tiered_memory', arguments: ids })),
    ...whose.flatMap((ids) => [
      { name: 'read_memory', arguments: { scope: 'chat', ...ids } },
      { name: 'read_memory', arguments: { scope: 'chat_daily', date: today, ...ids } },
    ]),
    ...paths.map((given) => ({ name: 'send_message', arguments: given })),
  ];
}

async function filesBelow(on: Workbench, folder: string): Promise<string[]> {
  const root = join(on.folder, folder);
  const found = await readdir(root, { recursive: true, withFileTypes: true });
  return found
    .filter((each) => each.isFile())
    .map((each) => relative(root, join(each.parentPath, each.name)));
}

const lastOf = ({ messages }: ModelRequest) => messages.at(-1)?.content ?? '';
const isAfterCalls = ({ messages }: ModelRequest) => messages.at(-1)?.role === 'tool';
const isFlush = ({ messages }: ModelRequest) =>
  messages.some(({ content }) => content.startsWith('Memory flush.'));
const isSummary = (request: ModelRequest) => lastOf(request).endsWith('write the new one.');

/** What somebody finds behind each door: all of its text. */
export async function tryEverything(on: Workbench, actor: Actor): Promise<Map<string, string>> {
  const { where, asks, to } = actor;
  const found = new Map<string, string>();
  const calls = await everyCall(on);
  const sentBefore = on.sent.length;
  let given = 0;
  on.answer((request): Answer => {
    if (isFlush(request) || isSummary(request)) return 'done';
    if (given > 0 || isAfterCalls(request)) return 'That is all.';
    given++;
    return { calls };
  });
  on.asked.length = 0;
  const called = to === undefined ? QUESTION : `@${to} ${QUESTION}`;
  await Promise.all(asks.map((sender) => on.say(called, { ...where, ...sender })));
  await on.settled();
  await allowAll(on, where);
  const requests = on.asked.filter((request) => !isFlush(request) && !isSummary(request));
  found.set(
    'the prompt',
    requests.map((request) => textOf(request, ({ role }) => role !== 'tool')).join('\n'),
  );
  found.set(
    'the tools',
    requests.map((request) => textOf(request, ({ role }) => role === 'tool')).join('\n'),
  );
  found.set('files that were sent', await filesSent(on, sentBefore));

  // A command is for the active persona.
  if (to !== undefined) await tell(on, where, `/persona switch ${to}`, by('7'));
  for (const command of ['/memory', '/memory why', '/memory export', '/persona', '/status']) {
    const before = on.sent.length;
    await tell(on, where, command, by('1', true));
    const words = on.sent.slice(before).map(({ part }) => part.text);
    found.set(command, [...words, await filesSent(on, before)].join('\n'));
  }
  const there = new Set(await filesBelow(on, 'groups'));
  await tell(on, where, '/archive', by('1', true));
  const archived = (await filesBelow(on, 'groups')).filter((file) => !there.has(file));
  found.set('/archive', await textsOf(archived.map((file) => join(on.folder, 'groups', file))));

  on.asked.length = 0;
  for (let n = 0; n < 4; n++) await tell(on, where, to === undefined ? `Go on, ${n}` : `@${to} go on, ${n}`);
  await on.conversation.resting();
  const told = (which: (request: ModelRequest) => boolean) =>
    on.asked.filter(which).map((request) => textOf(request, () => true));
  found.set('a flush', told(isFlush).join('\n'));
  found.set('a summary', told(isSummary).join('\n'));
  if (to !== undefined) await tell(on, where, '/persona switch default', by('7'));
  return found;
}

/** What reaches another chat after another chat was read asks; here it may. */
async function allowAll(on: Workbench, where: Actor['where']): Promise<void> {
  for (let n = 0, asked = 0; n < 500; n++) {
    const codes = on.texts().flatMap((text) => /^To allow it once: \/approve (\w+)$/m.exec(text)?.[1] ?? []);
    const next = codes[asked++];
    if (next === undefined) return;
    await tell(on, where, `/approve ${next}`, by('7'));
    await on.settled();
  }
}

function textOf({ messages }: ModelRequest, which: (message: ModelRequest['messages'][number]) => boolean) {
  return messages
    .filter(which)
    .map(({ content }) => content)
    .join('\n');
}

async function filesSent(on: Workbench, from: number): Promise<string> {
  const paths = on.sent.slice(from).flatMap(({ part }) => (part.file ? [part.file.path] : []));
  return textsOf(paths);
}

async function textsOf(paths: string[]): Promise<string> {
  return (await Promise.all(paths.map((path) => readFile(path, 'utf8')))).join('\n');
}

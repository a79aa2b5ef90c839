/** The cost of a message does not grow: every statement of the store finds what it needs by an index. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NewDelivery } from '../../src/core/channel.js';
import { systemClock } from '../../src/core/clock.js';
import { FORGOTTEN, phraseOf, wantedIn } from '../../src/core/phrase.js';
import { putSetting, type Store, settingOf } from '../../src/core/store.js';
import { BEGINNING } from '../../src/core/transcript.js';
import { migrate } from '../../src/store/migrate.js';
import { storeOn } from '../../src/store/open.js';
import { connect, type SqliteDatabase } from '../../src/store/sqlite/connection.js';
import { ending, FREE, newTask } from '../contract/store/tasks.js';
import {
  begun,
  CHAT,
  chatAt,
  claimed,
  command,
  delivery,
  edit,
  exchange,
  finish,
  journalOf,
  lease,
  message,
  NOW,
  nextOf,
  receive,
  recovered,
} from '../contract/store/words.js';
import { MIGRATIONS, openHere, type Place } from './place.js';

/** Indexes over what waits: reading them through is reading what is to be done. */
const OF_WHAT_WAITS = [
  'message_waiting',
  'turn_running',
  'turn_parked',
  'command_open',
  'outbox_next',
  'turn_suspended',
  'turn_waits_for',
  'outbox_parked',
  'room_exchange',
  'archived_open',
  'job_run_open',
  'journal_unfiled',
  'journal_pending',
  'asked_call_open',
  'task_pending',
  'task_running',
  'task_delegated',
];
/**
 * Read whole: pairing, approvals and calls that people were asked about are short, chats are counted for a status page, rooms looked at in a start,
 * the board's list goes through them, `listed` is a page of it, `nearby` and `spoken` are the few lines that were heard next or last, `chosen` and `numbered` what is about to change,
 * `added` and `changed` the next few entries of the journal.
 */
const READ_WHOLE = [
  'pairing',
  'approval',
  'chat',
  'room',
  'json_each',
  'nearby',
  'spoken',
  'chosen',
  'numbered',
  'added',
  'changed',
  'listed',
  'question',
  'offer',
  'shown',
  'early_result',
  'asked_call',
];

/** By night, each view that was ever reset is looked at. */
const LOOKS_AT_RESETS = /from view join heard .* where view\.reset_at > 0/s;

/** A restored copy is gone through once. */
const QUIETENS =
  /'restored from a backup'|results = @restored|set filed = 'log'|@interrupted as text\)\s+from task/;

/** Asked by `doctor` alone, in a process of its own. */
const COUNTS_ALL_THAT_WAS_HEARD = /^\s*select\s+count\(\*\) filter .* as archived\s+from heard/s;

/** Jobs are counted for a page of metrics, listed for an operator, and read through where words are erased. */
const READS_ALL_JOBS =
  /^select (state, count\(\*\) as jobs|id, prompt) from job |from job left join chat .* limit @most \+ 0$/s;

/** `/memory forget` leaves out the transcripts of other chats' tasks. It goes through all files of agents anyway. */
const READS_ALL_TASKS = /^select id from task where chat_id <> \?$/;

let place: Place;
let connection: SqliteDatabase;
const prepared = new Set<string>();

beforeAll(async () => {
  place = await openHere();
  connection = await connect({ file: place.file, clock: systemClock, busyTimeoutMs: 0 });
  await migrate(connection, MIGRATIONS);
  const { raw } = connection;
  const prepare = raw.prepare.bind(raw);
  raw.prepare = ((sql: string) => {
    prepared.add(sql);
    return prepare(sql);
  }) as typeof raw.prepare;
  await useEverything(storeOn(connection));
  raw.prepare = prepare;
});
afterAll(async () => {
  connection.raw.close();
  await place.remove();
});

function planOf(sql: string): string[] {
  const statement = connection.raw.prepare<unknown[], { detail: string }>(`explain query plan ${sql}`);
  const named = [...sql.matchAll(/@(\w+)/g)].map((match) => [match[1], 1]);
  const bound = named.length > 0 ? [Object.fromEntries(named)] : Array(sql.split('?').length - 1).fill(1);
  return statement.all(...bound).map(({ detail }) => detail);
}

function grows(detail: string, sql: string): boolean {
  const scanned = /^SCAN (\w+)/.exec(detail)?.[1];
  if (scanned === undefined || scanned === 'CONSTANT') return false;
  if (READ_WHOLE.includes(scanned)) return false;
  if (QUIETENS.test(sql)) return false;
  if (scanned === 'heard' && COUNTS_ALL_THAT_WAS_HEARD.test(sql)) return false;
  if (scanned === 'view' && LOOKS_AT_RESETS.test(sql)) return false;
  if (scanned === 'job' && READS_ALL_JOBS.test(sql)) return false;
  if (scanned === 'task' && READS_ALL_TASKS.test(sql)) return false;
  return !OF_WHAT_WAITS.some((index) => detail.endsWith(`INDEX ${index}`));
}

describe('query plans', () => {
  it('were looked at for every table and many statements', () => {
    expect(prepared.size).toBeGreaterThan(110);
  });

  it('never read through a table that grows', () => {
    const bad = [...prepared].flatMap((sql) =>
      planOf(sql)
        .filter((detail) => grows(detail, sql))
        .map((detail) => `${detail}\n  in ${sql}`),
    );
    expect(bad).toEqual([]);
  });

  it('sort only what waits and what is shown', () => {
    const sorting = [...prepared].filter((sql) => planOf(sql).some((detail) => detail.includes('ORDER BY')));
    // Archives that owe a flush, of all chats and of one view; calls that wait for a person (which ask first whether a task made them); the rooms in which something waits; a page of the board's list; open offers; requests for pairing, and
    // which of the groups among them leaves; of a room, whose messages are read with it, the turns that may go on; unfinished turns, and which of a room's suspended ones is the newest. Of the journal, what is
    // forgotten at once, what is new and what has changed as one order, and what one turn or task did. For a page of a log: the calls and memory of its turns, the suspended ones; and the page's own chats. What one turn sent.
    // The few hundred versions of a chat's memory. For an operator: who was let in, open tasks, and who used most.
    expect(sorting.map((sql) => /\sfrom "?(\w+)/.exec(sql)?.[1]).sort()).toEqual([
      'archived',
      'archived',
      'asked_call',
      'chat',
      'chat',
      'job',
      ...Array<string>(4).fill('journal'),
      'message',
      'message',
      'message',
      'offer',
      'outbox',
      'pairing',
      'pairing',
      'room',
      'room',
      'task',
      'turn',
      'turn',
      'turn',
      'usage',
      'version',
      'version',
    ]);
  });

  it('are not made anew at every use, as SQLite does for a limit that is bound', () => {
    expect([...prepared].filter((sql) => /limit\s*[?@]\w*\s*$/i.test(sql))).toEqual([]);
  });

  it('would be found bad if they were', () => {
    for (const sql of [
      'select * from message where text = ?',
      'select * from message where chat_id > ? and state = ?',
      'select count(*) from heard where message_id = ?',
    ]) {
      expect(planOf(sql).some((detail) => grows(detail, sql))).toBe(true);
    }
  });
});

/** Calls every verb at least once, each in the ways that make it ask different things. */
async function useEverything(store: Store): Promise<void> {
  const reply = (origin: string): NewDelivery[] => [delivery(origin, 'x')];
  await receive(
    store,
    [message('1', 'a'), command('2', 'reset'), edit('1', 'b'), { kind: 'moved', chatId: CHAT, address: 'n' }],
    { cursor: '1' },
  );
  await receive(store, [
    message('9', 'c', {
      chat: chatAt(CHAT, { address: 'n' }),
      replyTo: { platformMessageId: '1', senderName: '', text: '', ours: true },
    }),
  ]);
  await store.values({ cursorsOf: 'test' }, ['bot']);
  const turn = await begun(store, 't1', { hearers: ['luna'] });
  await store.roomNow(CHAT);
  await store.hold(turn.claim, NOW + 1);
  await store.addStep(turn.claim, 't1', { kind: 'call', callId: 'c' }, NOW);
  await store.fail(turn.claim, 't1');
  const again = await claimed(store);
  await finish(store, again, 't1', {
    deliveries: reply('turn:t1'),
    usage: { inputTokens: 1, outputTokens: 1 },
  });
  await exchange(store, 't2', 'more');
  await store.window({ room: CHAT, personaId: 'default', limit: 9, overheard: 9, except: [] });
  await store.saidIn({ chatId: CHAT, by: null, since: null, until: null, after: 0 });
  for (const from of [
    'newest',
    'first',
    { around: 'tt2' },
    { around: 'o1' },
    { before: '9.9.9.9.x' },
  ] as const) {
    await store.log({ room: CHAT, from, most: 9 });
  }
  await store.boardMarks();
  await store.boardChanges(null);
  await store.boardChanges(0);
  await store.boardChats();
  const [listed = null] = await store.conversations({ before: null, most: 9 });
  await store.conversations({ before: listed, most: 9 });
  await store.listedRoom(CHAT);
  const words = wantedIn('more');
  if (words) await store.findSaid({ words, before: null, most: 9 });
  await store.messageAt(NOW);
  await store.turnBehind('t2');
  await store.turnBehind('evt-1');
  const { commands } = await receive(store, [message('10', 'd'), command('11', 'reset'), edit('10', 'e')]);
  await begun(store, 't3');
  const id = commands[0]?.id ?? 0;
  await store.takeCommand(id, lease());
  await store.finishCommand({
    id,
    now: NOW,
    deliveries: reply(`command:${id}`),
    effects: [
      { kind: 'reset', room: CHAT, personaId: 'default', upTo: 9 },
      { kind: 'stop', room: CHAT, turnId: 't3' },
      { kind: 'activate', chatId: CHAT, personaId: 'luna' },
    ],
  });
  await receive(store, [message('12', 'f')]);
  await begun(store, 't4');
  const next = await nextOf(store);
  await store.claimDelivery(next?.id ?? 0, lease());
  await receive(store, [command('13', 'help')]);
  await store.takeCommand(id + 1, lease());
  await recovered(store, 'me', NOW);
  await store.pending({ owner: 'me', channels: ['test'], now: NOW });
  await store.settle(next?.id ?? 0, { kind: 'retry', notBefore: 0, uncertain: true, reason: '' }, NOW);
  await store.settle(next?.id ?? 0, { kind: 'found', platformMessageId: '1' }, NOW);
  await store.recordedIn(CHAT);
  await store.settle(next?.id ?? 0, { kind: 'sent', platformMessageId: '1' }, NOW);
  await store.settle(next?.id ?? 0, { kind: 'refused', reason: '' }, NOW);
  await store.receive({
    channel: 'test',
    account: '',
    now: NOW,
    receipts: [{ kind: 'moved', chatId: CHAT, address: 'm' }],
  });
  const to = {
    chatId: CHAT,
    channel: 'test',
    address: '',
    threadId: null,
    kind: 'direct',
    now: NOW,
  } as const;
  const answer = { ...to, delivery: delivery('pairing:1', 'x') };
  await store.post(answer);
  await store.chat(CHAT);
  await store.approvalOf({ chatId: CHAT, senderId: 'test_ann' });
  const request = {
    channel: 'test',
    senderId: 'test_ann',
    name: '',
    code: 'A',
    now: NOW,
    expiresAt: NOW + 9,
  };
  const offer = {
    ...{ key: 'o', room: CHAT, senderId: 'test_ann', until: NOW + 9 },
    options: [{ label: '', command: { name: 'help', argument: '' } }],
  };
  const post = { ...to, delivery: delivery('pairing:2', 'x') };
  const limits = { answerEveryMs: 0, most: 3, mostPerHour: 10 };
  const asks = { ...request, ...limits };
  await store.requestPairing(asks, { ...request, answer, announcements: [{ post, offer }] });
  await store.offers({ key: 'o' }, NOW);
  await store.offers({ room: CHAT, senderId: 'test_ann' }, NOW);
  const pressed = { kind: 'choice', chat: chatAt(CHAT), value: 'o.0', platformMessageId: 'p' } as const;
  await receive(store, [{ ...pressed, sender: { id: 'test_ann', name: '', administrator: false } }]);
  await store.refuse({ code: 'Z', now: NOW, quietUntil: NOW });
  await store.requestPairing(asks, { ...request, code: 'B', answer, announcements: [] });
  const group = { chatId: 'test_-1', now: NOW, keepMs: 9, most: 3 };
  await store.noteGroup({ ...group, title: 'a' });
  await store.noteGroup({ ...group, title: 'b' });
  await store.waiting(NOW);
  const body = { text: '', marks: [] };
  const asked = { codeOrId: 'B', looksLike: null, now: NOW };
  await store.applicant({ ...asked, codeOrId: 'test_-9' });
  await store.approve({ ...asked, asOwner: true, told: { member: body, owner: body } });
  await store.owners(['test_ann']);
  await store.refuse({ id: 'test_ann' });
  await store.addAlias('test_lid', CHAT);
  await store.aliasOf('test_lid');
  await store.chatOf('test_lid');
  await useViews(store);
  await putSetting(store, 'a', 'b');
  await putSetting(store, 'c', null);
  await settingOf(store, 'a');
  await useTasks(store);
  await useJobs(store);
  await useJournal(store);
  await useRest(store);
  await store.counts();
  await store.quieten();
}

/** Every verb of tasks. */
async function useTasks(store: Store): Promise<void> {
  const from = { chatId: CHAT, room: CHAT, personaId: 'default', callId: 'c', senderId: '', tainted: false };
  const key = { idempotency: { key: 'k', hash: 'h' } };
  await store.addTask(newTask('k1', { parent: { ...from, turnId: 't1' } }), FREE);
  await store.addTask(newTask('k2', key), FREE);
  await store.addTask(newTask('k3', key), FREE);
  await store.claimTask({ ...lease(), of: { channels: ['test'] } });
  await store.claimTask({ ...lease('you'), of: 'programs' });
  await store.runningTasks({ owner: 'me', now: NOW });
  await store.renewTasks(lease());
  const claim = { id: 'k1', owner: 'me' };
  const event = { at: NOW, kind: 'tool-call', callId: 'c', tool: 't', arguments: '' } as const;
  await store.noteTask(claim, { events: Array.from({ length: 501 }, () => event) });
  await store.tellTask('k1', { mode: 'steer', text: '' }, NOW);
  await store.takeTaskMessages(claim, ['steer']);
  await store.finishTask(ending('k1'), 'me');
  await store.tellTask('k2', 'stop', NOW);
  await store.tellTask('k3', 'stop', NOW);
  await store.taskEvents('k1');
  await store.tasks(9);
  await store.tasks(9, 'k3');
  await store.prune({ before: NOW, now: NOW, most: 9 });
}

/** Every verb of views, versions, traces and forgetting, with rows for each of them. */
async function useViews(store: Store): Promise<void> {
  const room = 'test_7';
  const personaId = 'default';
  await receive(store, [message('1', 'a', { chat: chatAt(room) })]);
  const turn = await begun(store, 'v1', { room });
  await store.addStep(turn.claim, 'v1', { kind: 'answer', text: 'b', calls: [] }, NOW);
  await finish(store, turn, 'v1', {
    measured: { counted: 1, estimated: 1 },
    given: { memory: '', dailyLog: '', recalled: '', summary: '' },
    deliveries: [delivery('turn:v1', 'x')],
  });
  await store.settle((await nextOf(store, room))?.id ?? 0, { kind: 'sent', platformMessageId: 'p1' }, NOW);
  await store.promptMemory(room, personaId);
  await store.messages({ turnId: 'v1' });
  await store.roomsHeard(room, personaId);
  const to = { heardAfter: 1_000, messageId: 0 };
  const span = { chatId: room, room, personaId, after: BEGINNING, to };
  await store.span({ room, personaId, after: BEGINNING, upTo: to, limit: 9, overheard: 9 });
  const move = { to, summary: 's', usage: { inputTokens: 1, outputTokens: 1 }, now: NOW };
  const view = () => store.view(room, personaId);
  for (const file of ['a.md', 'b.md', 'c.md']) await store.noteArchive({ ...span, file, state: 'writing' });
  await store.moveWindow({ ...move, view: await view(), archive: 'a.md' });
  await store.trace({ chatId: room, wanted: { platformMessageId: '1' }, most: 9 });
  await store.trace({ chatId: room, wanted: { platformMessageId: 'p1' }, most: 9 });
  await store.trace({ chatId: room, wanted: { phrase: phraseOf('b'), personaId }, most: 9 });
  for (const ofRoom of [room, null]) {
    for (const ofPersona of [personaId, null]) await store.whereabouts(ofRoom, ofPersona);
  }
  await store.openArchives({ channels: ['test'] });
  const { commands } = await receive(store, [command('2', 'reset', '', { chat: chatAt(room) })]);
  const { id = 0 } = commands[0] ?? {};
  await store.takeCommand(id, lease());
  await receive(store, [message('3', 'c', { chat: chatAt(room) })]);
  await begun(store, 'v2', { room });
  await store.finishCommand({
    id,
    now: NOW,
    deliveries: [],
    effects: [
      { kind: 'reset', room, personaId, upTo: 0 },
      { kind: 'undone', versionId: 'unknown' },
    ],
  });
  await store.commitFlush({ view: await view(), to, usage: move.usage, now: NOW });
  await store.noteArchive({ chatId: room, file: 'a.md', state: 'settled' });
  await store.noteArchive({ chatId: room, file: 'b.md', state: 'dropped' });
  const cause = { kind: 'turn' as const, personaId, turnId: 'v1' };
  const version = { chatId: room, personaId, file: 'default/MEMORY.md', tier: 1 as const, cause };
  await store.keepVersion({ ...version, id: 'a', before: 'b', after: 'c', at: NOW });
  await store.versions({ chatId: room, personaId, most: 9 });
  await store.keepVersion({
    ...version,
    id: 'n',
    before: 'd',
    after: 'e',
    at: NOW,
    cause: { ...cause, kind: 'night' },
  });
  await store.history({ chatId: room, personaId, before: null, most: 9 });
  await store.changeWith('n');
  await store.markUndone(['n']);
  await store.titles();
  await store.findWords(room, phraseOf('a'));
  await store.eraseWords(room, phraseOf('b'), FORGOTTEN);
  await store.dropVersion('a');
}

async function useJobs(store: Store): Promise<void> {
  const channels = { channels: ['test'] };
  const job = await store.addJob(
    {
      ...{
        id: 'j1',
        chatId: CHAT,
        room: CHAT,
        personaId: 'default',
        prompt: 'x',
        kind: 'cron',
        value: '* * * * *',
      },
      ...{
        timezone: 'UTC',
        followUp: true,
        senderId: 'test_ann',
        tainted: false,
        guarded: false,
        turnId: 't1',
      },
      ...{ nextAt: NOW, now: NOW },
    },
    { open: 9, followUps: 9, followUpsADay: 9 },
  );
  if (typeof job === 'string') throw new Error(job);
  await store.jobs({ chatId: CHAT });
  await store.jobs({ chatId: CHAT, n: 1 });
  await store.runsOf('j1');
  await store.dueJobs({ ...channels, now: NOW, most: 9 });
  const becomes = { nextAt: NOW + 9 };
  await store.fireJob({ seen: job, slot: NOW, attempt: 0, head: '', becomes, now: NOW });
  await store.openRuns({ ...channels, since: 0, now: NOW - 1 });
  const ended = { job, slot: NOW, attempt: 0, outcome: 'answered', endedAt: NOW } as const;
  await store.changeJob({ ended }, { failures: 0 }, NOW);
  await store.changeJob({ id: 'j1', from: ['active'] }, { state: 'paused' }, NOW);
}

async function useJournal(store: Store): Promise<void> {
  const place = { chatId: CHAT, room: CHAT, personaId: 'default', turnId: 't1' };
  const id = 'turn-t1-x';
  await store.append(
    [
      {
        ...{ kind: 'intent', ...place },
        entry: {
          ...{ id, type: 'MattTurn', agent: 'default', parent_event_id: null, results: null },
          ...{ timestamp_intent: new Date(NOW).toISOString(), status: 'pending', reasoning: '' },
          action: { tool: 'shell' },
        },
      },
      { kind: 'outcome', id, status: 'completed', results: { output: '' }, at: NOW },
      { kind: 'outcome', id: 'unknown', status: 'completed', results: { output: '' }, at: NOW },
    ],
    'me',
  );
  await journalOf(store);
  await store.journal({ after: 0, most: 9 });
  const [first] = await store.unfiled(null);
  if (first) await store.filed([first]);
  await store.journal({ at: [1] });
}

/** What is left: verbs that read, and those of turns that wait or show what is not final. */
async function useRest(store: Store): Promise<void> {
  const room = 'test_8';
  const personaId = 'default';
  await receive(store, [message('1', 'a', { chat: chatAt(room) })]);
  const turn = await begun(store, 'r1', { room });
  const part = {
    body: { text: 'a', marks: [] },
    speaker: '',
    key: 'k',
    platformMessageId: null,
    sentAt: NOW,
  };
  await store.show('r1', [part]);
  await store.keepFiles(turn.claim, { id: 1, text: '', attachments: [] });
  const waiting = { kind: 'waiting', callId: 'c', waitsFor: 'w', until: null } as const;
  await store.addStep(turn.claim, 'r1', waiting, NOW);
  await receive(store, [{ kind: 'resume', waitsFor: 'w', content: '', failed: false }]);
  await receive(store, [{ kind: 'resume', waitsFor: 'early', content: '', failed: false }]);
  const again = await claimed(store, room);
  await store.hold(again.claim, null);
  await store.show('unknown', [{ ...part, platformMessageId: 'p' }]);
  await store.settle([1], { kind: 'unsent' }, NOW);
  await store.shownAfter({ origin: 'turn:r1', personaId, part: 0 });
  const react = {
    kind: 'reaction',
    chatId: room,
    sender: { id: 'test_ann', name: 'Ann' },
    sign: '+',
  } as const;
  await receive(store, [{ ...react, sentAt: NOW, platformMessageIds: ['p1'] }]);
  await receive(store, [{ kind: 'deleted', chatId: room, platformMessageIds: ['1'] }]);
  const told = { content: '', told: null };
  await store.askedCalls({ id: 'none' }, NOW);
  await store.askedCalls('open', NOW);
  await store.decide({ id: 'none', by: 'test_ann', commandId: 1, now: NOW, refusal: null });
  await store.decide({ id: 'none', by: null, now: NOW, refusal: told });
  await store.openArchives({ room, personaId });
  await store.allHeard(room, [personaId], [1]);
  await store.heardViews(null, 9);
  await store.heardSince({ room, personaId, addressed: true, after: BEGINNING, most: 9 });
  await store.visible({ chatId: room, personaId }, [1]);
  await store.saidSince({ chats: [], after: null });
  await store.saidSince({ chats: [room], after: 0 });
  await store.question({ room, senderId: 'test_ann', now: NOW });
  await store.messages([1]);
  await store.notedTurn(room, 'p1');
  await store.spokeSince(0);
  await store.markOutside('a.md', null);
  await store.originIn('a.md', () => 'a');
  await store.task('k1');
  await store.task({ key: 'k' });
  await store.tasksElsewhere(CHAT);
  await store.newest('test');
  await store.delivery('1');
  await store.setValues(
    { stateOf: 'test' },
    new Map([
      ['a', 'b'],
      ['c', null],
    ]),
  );
  await store.values({ stateOf: 'test' }, ['a']);
  await store.setValues({ stateOf: 'test' }, null);
  await store.usage({ chatId: room, personId: 'test_ann', since: NOW, now: NOW });
  await store.spend({
    room,
    personaId,
    personId: 'test_ann',
    usage: { inputTokens: 1, outputTokens: 1 },
    now: NOW,
  });
  await store.letIn();
  await store.openJobs(9);
  await store.spending({ since: NOW, now: NOW });
  await store.sizes();
  await receive(store, [{ kind: 'apart', room }]);
  const later = NOW + 9 * 86_400_000;
  await store.prune({ before: later, now: later, most: 999 });
}

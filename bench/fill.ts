/**
 * Fills a gateway's folder as after years of use: old chats in the store and in `groups/`. Uses the store's own
 * functions, many calls per transaction, because it would take minutes otherwise.
 */
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../src/core/clock.js';
import { DEFAULT_PERSONA, platformId } from '../src/core/ids.js';
import type { Log } from '../src/core/log.js';
import type { Store } from '../src/core/store.js';
import { createPersonas } from '../src/groups/personas.js';
import { migrate } from '../src/store/migrate.js';
import { storeOn } from '../src/store/open.js';
import { connect } from '../src/store/sqlite/connection.js';

export interface PastChat {
  person: number;
  /** Half of them are answers. */
  messages: number;
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** The fake Telegram account. */
const ACCOUNT = '424242';
/** Lease owner of the old messages: no living process has it. */
const OWNER = 'the past';
const EXCHANGES_AT_ONCE = 5000;
const FOLDERS_AT_ONCE = 50;
/** Messages in a window after a compaction, with the defaults. */
const KEPT = 80;
const YESTERDAY = Date.now() - 86_400_000;
const LOG: Log = { debug() {}, info() {}, warn: console.warn, error: console.error };

/** The content of `groups/` in a fresh clone. */
export async function layOutGroups(folder: string): Promise<void> {
  await cp(join(ROOT, 'groups/AGENTS.md'), join(folder, 'groups/AGENTS.md'));
  await cp(join(ROOT, 'groups/personas'), join(folder, 'groups/personas'), { recursive: true });
}

export async function fill(folder: string, past: PastChat[]): Promise<void> {
  const file = join(folder, 'data/coterie.db');
  await mkdir(join(folder, 'data'), { recursive: true });
  const connection = await connect({ file, clock: systemClock, log: LOG, busyTimeoutMs: 0 });
  await migrate(connection, join(ROOT, 'migrations/sqlite'));
  const store = storeOn(connection);
  let exchanges = 0;
  connection.raw.exec('BEGIN');
  for (const person of exchangesOf(past)) {
    await exchange(store, person, exchanges++);
    if (exchanges % EXCHANGES_AT_ONCE === 0) connection.raw.exec('COMMIT; BEGIN');
  }
  for (const { person, messages } of past) if (messages > KEPT) await compact(store, person);
  connection.raw.exec('COMMIT');
  await store.close();
  await makeFolders(folder, past);
}

/** The person of each exchange: chats take turns until each has its messages. */
function* exchangesOf(past: PastChat[]): Generator<number> {
  for (let n = 0; ; n += 2) {
    past = past.filter(({ messages }) => n < messages);
    if (past.length === 0) return;
    for (const { person } of past) yield person;
  }
}

/** One message, its turn, and the answer, delivered. */
async function exchange(store: Store, person: number, n: number): Promise<void> {
  const id = platformId('telegram', String(person));
  const name = `Person ${person}`;
  const now = YESTERDAY + n;
  await store.receive({
    channel: 'telegram',
    account: ACCOUNT,
    now,
    receipts: [
      {
        kind: 'message',
        chat: { id, address: String(person), kind: 'direct', title: name },
        threadId: null,
        platformMessageId: `past-${n}`,
        sender: { id, name, administrator: false },
        text: `This was said long ago, as number ${n}.`,
        sentAt: now,
        mentionsBot: false,
        replyTo: null,
      },
    ],
  });
  const lease = { owner: OWNER, now, leaseMs: 1000 };
  const seen = await store.readRoom(id, OWNER, now);
  if (!seen) throw new Error(`nothing waits in ${id}`);
  const waiting = seen.waiting.map((message) => message.id);
  const turnId = `past-${n}`;
  const reply = `echo: This was said long ago, as number ${n}.`;
  const hearers = [DEFAULT_PERSONA];
  const claim = await store.hear({
    seen,
    lease,
    turn: { id: turnId, personaId: DEFAULT_PERSONA, batch: waiting, taken: waiting, addressed: [] },
    noted: [],
    hearers,
    exchange: null,
  });
  if (!claim) throw new Error(`no turn begins in ${id}`);
  const finished = await store.finish({
    claim,
    turnId,
    outcome: 'answered',
    reply,
    hearers,
    addressed: [],
    exchange: null,
    now,
    usage: { inputTokens: 1000, outputTokens: 10 },
    measured: null,
    given: null,
    deliveries: [
      {
        origin: `turn:${turnId}`,
        personaId: DEFAULT_PERSONA,
        speaker: 'default',
        part: 0,
        body: { text: reply, marks: [] },
        replyTo: null,
      },
    ],
    send: lease,
  });
  if (finished === 'lost' || !finished.first) throw new Error(`nothing is to be delivered in ${id}`);
  await store.settle(finished.first.id, { kind: 'sent', platformMessageId: `past-answer-${n}` }, now);
}

/** Like the gateway's compaction: messages older than the newest ones are flushed and summarised. */
async function compact(store: Store, person: number): Promise<void> {
  const of = { room: platformId('telegram', String(person)), personaId: DEFAULT_PERSONA };
  const window = await store.window({ ...of, limit: KEPT + 1, overheard: 0, except: [] });
  const to = window.messages[0]?.position;
  if (!to) throw new Error(`nothing was said in ${of.room}`);
  await store.commitFlush({ view: window.view, to, usage: null, now: YESTERDAY });
  const view = await store.view(of.room, of.personaId);
  const summary = `## Facts\n${'- Something was said about a number.\n'.repeat(50)}`;
  await store.moveWindow({ view, to, summary, archive: null, usage: null, now: YESTERDAY });
}

async function makeFolders(folder: string, past: PastChat[]): Promise<void> {
  const groupsDir = join(folder, 'groups');
  const personas = createPersonas({ groupsDir, clock: systemClock, log: LOG });
  const next = past.values();
  await Promise.all(
    Array.from({ length: FOLDERS_AT_ONCE }, async () => {
      for (const { person } of next) {
        const id = platformId('telegram', String(person));
        await personas.ensure(id, DEFAULT_PERSONA);
        await writeFile(join(groupsDir, id, 'chat.yaml'), `title: Person ${person}\n`);
      }
    }),
  );
}

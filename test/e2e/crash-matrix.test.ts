/**
 * The real process, killed at each point of a tool call that can be counted: the command appends a line to a file. It is
 * never appended twice, and what happened is always on record: in the journal, in what the model is told, and in the chat.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import type { JournalEntry, MattTurn } from '../../src/core/journal.js';
import { eventually, type Running } from '../harness/gateway.js';
import { journalOf } from '../harness/journal-shapes.js';
import { type Stage, stage } from '../harness/telegram.js';

const OWNER = 700;
const KILL_AT = fileURLToPath(new URL('../harness/kill-at.mjs', import.meta.url));
const LINE = 'a line that counts';

interface Kill {
  at: 'statement' | 'commit' | 'spawn' | 'rename';
  sql?: string;
  values?: string;
  when?: 'before' | 'after';
  holds?: string;
}

interface Point {
  name: string;
  kill: Kill | 'in the action' | 'while it waits';
  lines: 0 | 1;
  /** How the record ends. */
  status: MattTurn['status'];
}

const CALL = '"kind":"call"';
const APPROVED = '"kind":"approved"';
const POINTS: Point[] = [
  {
    name: 'before the question is stored',
    kill: { at: 'statement', sql: 'insert into asked_call', when: 'before' },
    ...{ lines: 1, status: 'completed' },
  },
  {
    name: 'while an approval waits',
    kill: 'while it waits',
    ...{ lines: 1, status: 'completed' },
  },
  {
    name: 'in the decision, before it is stored',
    kill: { at: 'statement', sql: 'insert into step', values: quoted(APPROVED), when: 'after' },
    ...{ lines: 1, status: 'completed' },
  },
  {
    name: 'between yes and action',
    kill: { at: 'commit', sql: 'insert into step', values: quoted(APPROVED) },
    ...{ lines: 1, status: 'completed' },
  },
  {
    name: 'before the intent to run it is stored',
    kill: { at: 'statement', sql: 'insert into step', values: quoted(CALL), when: 'after' },
    ...{ lines: 1, status: 'completed' },
  },
  {
    name: 'between intent and action',
    kill: { at: 'spawn', holds: LINE },
    ...{ lines: 0, status: 'interrupted' },
  },
  { name: 'in the action', kill: 'in the action', ...{ lines: 1, status: 'interrupted' } },
  {
    name: 'between action and outcome',
    kill: { at: 'statement', sql: 'update journal set status', values: LINE, when: 'before' },
    ...{ lines: 1, status: 'interrupted' },
  },
  {
    name: 'in the patch',
    kill: { at: 'statement', sql: 'update journal set status', values: LINE, when: 'after' },
    ...{ lines: 1, status: 'interrupted' },
  },
  {
    name: 'after the patch',
    kill: { at: 'commit', sql: 'update journal set status', values: LINE },
    ...{ lines: 1, status: 'completed' },
  },
  {
    name: 'while the log is written',
    kill: { at: 'rename', holds: 'working.log' },
    ...{ lines: 1, status: 'completed' },
  },
];

/** As it stands in the JSON of a statement's values, which are JSON themselves. */
function quoted(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

let on: Stage;
afterEach(() => on.close());

it.each(POINTS)(
  'killed $name: $lines line, $status',
  async ({ kill, lines, status }) => {
    on = await stage({
      config: {
        access: { direct: 'open', owners: [`telegram_${OWNER}`] },
        tools: { allow: ['shell'], shell: { sandbox: 'none', timeout_seconds: 30 } },
      },
    });
    const told: string[] = [];
    on.model.reply((body) => {
      const last = body.messages.at(-1);
      if (last?.role === 'tool') {
        told.push(last.content ?? '');
        return 'done';
      }
      const isInAction = kill === 'in the action';
      const command = `echo '${LINE}' | tee -a side.txt${isInAction ? `; kill -9 $(cat '${pidFile}')` : ''}`;
      return { calls: [{ name: 'shell', arguments: { command } }] };
    });
    const pidFile = join(on.home.folder, 'pid');
    const start = async (environment: Record<string, string> = {}): Promise<Running> => {
      const gateway = on.launch(environment);
      await on.home.write('pid', String(gateway.pid));
      return gateway;
    };
    const isHooked = typeof kill === 'object';
    const hook = { NODE_OPTIONS: `--import ${KILL_AT}`, KILL_AT: JSON.stringify(kill) };
    let gateway = await start(isHooked ? hook : {});
    /** Starts it again when it has ended, as a supervisor does, until that has come. */
    const restartedUntil = async <T>(look: () => T, what: string): Promise<NonNullable<T>> => {
      const come = eventually(look, what, 30_000);
      await Promise.race([come, gateway.exited]);
      if (!look()) gateway = await start();
      return come;
    };
    say('go');
    const id = await restartedUntil(
      () => /\/approve (\w+)/.exec(on.sentTo(OWNER).join('\n'))?.[1],
      'the owner is asked',
    );
    if (kill === 'while it waits') {
      await gateway.stop('SIGKILL');
      gateway = await start();
    }
    say(`/approve ${id}`);
    await restartedUntil(() => on.sentTo(OWNER).some((text) => text.startsWith('done')), 'the turn ends');
    const entries = await restartedUntil((): MattTurn[] | null => {
      const found = journal().filter(isOfCall);
      return found.length > 0 && found.every((each) => each.status !== 'pending') ? found : null;
    }, 'the call and its outcome stand in the log');
    await gateway.stop();

    const side = join(on.home.folder, `data/work/telegram_${OWNER}/default/side.txt`);
    const written = existsSync(side) ? readFileSync(side, 'utf8').trim().split('\n') : [];
    expect(written).toEqual(Array.from({ length: lines }, () => LINE));
    expect(entries.map((entry) => entry.status)).toEqual([status]);
    expect(journal().filter(isOfCall)).toHaveLength(1);
    const isUnknown = status === 'interrupted';
    expect(told).toHaveLength(1);
    expect(told[0]?.includes('Interrupted')).toBe(isUnknown);
    const notices = on.sentTo(OWNER).filter((text) => text.startsWith('I was cut off while'));
    expect(notices).toHaveLength(isUnknown ? 1 : 0);
    expect(on.sentTo(OWNER).filter((text) => text.includes('/approve')).length).toBeGreaterThan(0);
  },
  60_000,
);

function say(text: string): void {
  on.telegram.say({ chat: { id: OWNER, type: 'private' }, from: { id: OWNER, first_name: 'Owner' }, text });
}

const journal = () => journalOf(on.home);

function isOfCall(entry: JournalEntry): entry is MattTurn {
  return entry.type === 'MattTurn' && entry.action.tool === 'shell';
}

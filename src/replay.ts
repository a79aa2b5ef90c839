/** `coterie replay`: shows everything a turn saw and did, and asks the model again on request. */
import { commandConfig, commandLog, endWithReader, quoted } from './command.js';
import type { Config } from './config.js';
import type { BoardTurns } from './core/board.js';
import { systemClock } from './core/clock.js';
import { printableJson } from './core/cut.js';
import { createZone } from './core/dates.js';
import { Fault } from './core/errors.js';
import type { TurnInStore } from './core/journal.js';
import type { Log } from './core/log.js';
import type { Store } from './core/store.js';
import { secretsIn } from './models/redact.js';
import { createRedactor } from './operating/redact.js';
import { foldersOf, storeOf } from './paths.js';
import { type AskedAgain, askAgain } from './replay/again.js';
import { recordsOf } from './replay/files.js';
import { WRITTEN_WITHIN_MS } from './replay/records.js';
import {
  type Redacting,
  redacted,
  type ShownTurn,
  shownAgain,
  shownEntries,
  shownTurn,
} from './replay/shown.js';
import { secretsOf } from './secrets.js';
import { createModel } from './servers.js';
import { withReads } from './store/inspect.js';
import { journalledSpawn, NAME as SPAWN } from './tools/sessions-spawn.js';

export interface ReplayOptions {
  again?: boolean;
  json?: boolean;
}

/** Between two reads of all the persona's files. */
const LOOK_AGAIN_MS = 500;

export async function replay(
  configFile: string | undefined,
  id: string,
  options: ReplayOptions,
): Promise<void> {
  const { config } = await commandConfig(configFile);
  const log = commandLog(config);
  endWithReader();
  const isKnown = await withReads(storeOf(config), systemClock, (store) =>
    replayFrom(store, config, log, id, options),
  );
  if (!isKnown) throw new Fault('internal', `There is no turn ${quoted(id)}, and no entry of one.`);
}

/** False if there is no such turn. */
async function replayFrom(
  store: Store,
  config: Config,
  log: Log,
  id: string,
  options: ReplayOptions,
): Promise<boolean> {
  const found = await store.turnBehind(id);
  if (found === null) return false;
  if (found.kind === 'forgotten') {
    throw new Fault('internal', `The turn ${quoted(id)} was forgotten by /reset; nothing of it is shown.`);
  }
  if (found.kind === 'entries') {
    if (options.again) throw new Fault('internal', `${quoted(id)} is of no turn that could be asked again.`);
    const entries = redacted(found.entries, redactingFor(config));
    process.stdout.write(options.json ? `${printableJson({ entries }, 2)}\n` : shownEntries(entries));
    return true;
  }
  const { turn, entries } = found;
  const kept = await recordsOnceWritten(config, turn);
  const known: ShownTurn = { turn, entries, ...kept };
  const zone = createZone(config.timezone);
  const asked = options.again ? await askedAgain(known, store, config, log) : null;
  const by = redactingFor(config);
  const told = redacted(known, by);
  const again = redacted(asked, by);
  if (options.json) process.stdout.write(`${printableJson({ ...told, ...(again && { again }) }, 2)}\n`);
  else if (again === null) process.stdout.write(shownTurn(told, zone));
  else
    process.stdout.write(
      shownAgain(
        told.records.flatMap((record) => record.requests),
        again,
      ),
    );
  if (again?.some(({ end }) => end.kind === 'failed')) process.exitCode = 1;
  return true;
}

function redactingFor(config: Config): Redacting {
  return {
    clean: createRedactor([...secretsOf(config), ...secretsIn(process.env)]),
    argumentsOf: (name, given) => (name === '' || name === SPAWN ? journalledSpawn(given) : given),
  };
}

/** A running gateway may not have written the records of a turn that has just ended. */
async function recordsOnceWritten(config: Config, turn: TurnInStore) {
  const { chatId, personaId, id: turnId, state } = turn;
  const isRecorded = config.retention.replayBytes > 0 && (state === 'answered' || state === 'failed');
  const endedAt = isRecorded ? (turn.finishedAt ?? 0) : 0;
  for (;;) {
    const of = { chatId, personaId, turnId };
    const kept = await recordsOf(foldersOf(config).records, of, timeOf(turn));
    const isThere = kept.records.some((record) => record.endedAt >= endedAt);
    if (isThere || systemClock.now() > endedAt + WRITTEN_WITHIN_MS) return kept;
    await systemClock.sleep(LOOK_AGAIN_MS);
  }
}

function timeOf({ startedAt, finishedAt }: TurnInStore) {
  return { from: startedAt, to: finishedAt ?? Number.MAX_SAFE_INTEGER };
}

/** For the page: as stored and as recorded, without secrets. Of the requests, only the first has its messages. */
export async function openTurn(store: Store, config: Config, id: string): ReturnType<BoardTurns['openTurn']> {
  const found = await store.turnBehind(id);
  if (found?.kind === 'forgotten') return 'forgotten';
  if (found?.kind !== 'turn') return null;
  const { turn, entries } = found;
  const { chatId, personaId, id: turnId } = turn;
  const of = { chatId, personaId, turnId };
  const { records } = await recordsOf(foldersOf(config).records, of, timeOf(turn));
  // Each request holds the one before it: together they may be a hundred times as large.
  const short = records.map(({ requests, ...record }, n) => ({
    ...record,
    requests: requests.map((request, m) => (n + m === 0 ? request : { ...request, messages: [], tools: [] })),
  }));
  return redacted({ turn, entries, records: short }, redactingFor(config));
}

async function askedAgain(
  { turn, records }: ShownTurn,
  store: Store,
  config: Config,
  log: Log,
): Promise<AskedAgain[]> {
  const requests = records.flatMap((record) => record.requests);
  if (requests.length === 0) {
    throw new Fault('internal', `There is no record of what the model was sent in the turn ${turn.id}.`);
  }
  // Only gateways store what is learnt of a server.
  const nothing = { setValues: async () => {}, replaceSetting: async () => true };
  const settings = { values: store.values, ...nothing };
  const model = await createModel(config, settings, log);
  const again: AskedAgain[] = [];
  const never = new AbortController().signal;
  for (const request of requests) {
    again.push(await askAgain({ model, clock: systemClock }, request, turn.steps, never));
  }
  return again;
}

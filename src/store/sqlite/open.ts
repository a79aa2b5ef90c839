/** Opens the store on SQLite: one file, migrated to this version, and the ports on top of it. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../../core/clock.js';
import { createZone, type Zone } from '../../core/dates.js';
import type { Fault } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Store } from '../../core/store.js';
import { accessStore, approvalsOf, doorStore } from './access.js';
import { chatStore, chatsOf, underWayStore } from './chats.js';
import { commandStore, endingsOf, splitRoomOf } from './commands.js';
import { type Connection, connect } from './connection.js';
import { eraseStore } from './erase.js';
import { chatFeed, recallFeed, saidStore } from './feeds.js';
import { jobStore } from './jobs.js';
import { journalOf } from './journal.js';
import { journalStore } from './journal-reading.js';
import { recordedStore, shownOf, shownStore } from './live.js';
import { lineMarkerOf, originStore, traceStore, versionStore } from './memory-history.js';
import { migrate } from './migrate.js';
import { deliverOf, outboxStore } from './outbox.js';
import { askedCallsOf, offersOf, questionsOf } from './questions.js';
import { receiveStore, waitingOf } from './receive.js';
import { claimStore, recoveryStore, roomStore } from './rooms.js';
import { taskCourseOf, taskSignal } from './task-events.js';
import { taskStore } from './tasks.js';
import { findViewIn, greetOf, speakOf, transcriptStore } from './transcript.js';
import { approvalStore, finishStore, stepStore, suspendedOf } from './turns.js';
import { FORGET_LOGINS, pruneStore, upkeepOf } from './upkeep.js';
import { amountStore, dayIn, usageAdderOf, valueStore } from './values.js';
import { viewStore, viewsOf } from './views.js';

const BUSY_TIMEOUT_MS = 30_000;

export interface SqliteOptions {
  file: string;
  /** drizzle-kit's migrations: `migrations/sqlite` of this package. */
  migrationsFolder: string;
  clock: Clock;
  log: Log;
  /** Whose days what was used is summed by; UTC where left out. */
  zone?: Zone;
  /** How long a verb waits for another process before it fails. */
  busyTimeoutMs?: number;
  /** The size at which the disk counts as full. */
  maxPages?: number;
  /** Called once, when somebody has removed, replaced or moved the file: the store does nothing any more. */
  onDisplaced?: (fault: Fault) => void;
}

/** Throws Fault `store_newer` for a file of a newer version, `store_unavailable` if it cannot be used. */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const {
    file,
    clock,
    log,
    zone,
    migrationsFolder: folder,
    busyTimeoutMs = BUSY_TIMEOUT_MS,
    maxPages,
    onDisplaced,
  } = options;
  // Only the owner can read it: conversations are private, even on a shared machine.
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const connection = await connect({
    file,
    clock,
    busyTimeoutMs,
    ...(maxPages === undefined ? {} : { maxPages }),
    ...(onDisplaced === undefined ? {} : { onDisplaced }),
  });
  try {
    await migrate(connection, { folder, clock, log });
    return storeOn(connection, clock, zone, log);
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** Implements the ports on a database that is up to date: the steps of the route, then what stands beside it. */
export function storeOn(connection: Connection, clock: Clock, zone = createZone('UTC'), log?: Log): Store {
  const { watch, copyTo, close } = connection;
  const chats = chatsOf(connection);
  const approvals = approvalsOf(connection);
  const questions = questionsOf(connection);
  const offers = offersOf(connection);
  const journal = journalOf(connection, clock, log);
  const deliver = deliverOf(connection, journal);
  const findView = findViewIn(connection);
  const views = viewsOf(connection, findView);
  const shown = shownOf(connection, deliver);
  const dayOf = dayIn(zone);
  const addUsage = usageAdderOf(connection, dayOf);
  const speak = speakOf(connection);
  const asked = askedCallsOf(connection, deliver, offers);
  const signal = taskSignal(connection);
  const course = taskCourseOf(connection, { journal, asked, signal });
  const suspended = suspendedOf(connection, journal);
  const greet = greetOf(connection, chats, speak);
  const endings = endingsOf(connection, chats, shown, views, { journal, asked, course });
  const closeRoom = splitRoomOf(connection, chats, endings);
  const waiting = waitingOf(connection, chats, journal);
  const markLines = lineMarkerOf(connection);
  return {
    // 1 receive
    ...doorStore(connection, approvals, questions, offers),
    ...chatStore(connection, chats),
    ...receiveStore(connection, chats, questions, offers, suspended, closeRoom, waiting, journal),
    // 2 and 3 take
    ...roomStore(connection, addUsage),
    ...claimStore(connection, shown),
    // 4 context
    ...transcriptStore(connection, findView),
    // 5 turn
    ...stepStore(connection, suspended, journal, asked),
    ...shownStore(connection),
    // 6 finish
    ...finishStore(connection, deliver, addUsage, speak, journal),
    // 7 deliver
    ...outboxStore(connection, chats, deliver, greet, journal),
    ...recordedStore(connection),
    // Commands, and recovery
    ...commandStore(connection, chats, deliver, questions, offers, endings, greet),
    ...recoveryStore(connection, journal),
    // Beside the route
    ...accessStore(connection, chats, deliver, approvals, offers),
    ...approvalStore(connection, deliver, asked, suspended, signal),
    ...underWayStore(connection),
    ...chatFeed(connection),
    ...journalStore(connection, journal),
    ...jobStore(connection, waiting),
    ...taskStore(connection, course, signal, { journal, asked, waiting }),
    ...saidStore(connection),
    ...valueStore(connection, addUsage, dayOf),
    ...amountStore(connection, dayOf),
    ...viewStore(connection, findView, views, addUsage),
    ...versionStore(connection, markLines),
    ...originStore(connection, markLines),
    ...traceStore(connection, findView),
    ...recallFeed(connection, findView),
    ...eraseStore(connection, journal),
    ...pruneStore(connection, journal),
    ...upkeepOf(connection, clock),
    watch,
    copyTo: (file, { logins }) => copyTo(file, logins ? undefined : (copy) => copy.exec(FORGET_LOGINS)),
    async close() {
      // It fails only where the file is gone; what is not entered then is by the next process.
      await journal
        .close()
        .catch((error) => log?.warn({ err: error }, 'the last sends are not in the journal yet'));
      await close();
    },
  };
}

/** `coterie export`: a chat as people saw it, as Markdown or JSON. */
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { type Export, exportOf } from './chat-export/export.js';
import { writePieces } from './chat-export/files.js';
import { commandConfig } from './config.js';
import { EXPORT_FORMATS, type ExportFormat } from './core/chat-record.js';
import { systemClock } from './core/clock.js';
import { printableLine } from './core/cut.js';
import { A_TIME, createZone, momentsOf, type Zone } from './core/dates.js';
import { Fault } from './core/errors.js';
import { createPersonas } from './groups/personas.js';
import { createLog } from './operating/log.js';
import { hiddenInLogs } from './secrets.js';
import { withRecords } from './store/sqlite/inspect.js';

export interface ExportWishes {
  format?: string;
  since?: string;
  until?: string;
  output?: string;
}

const MIGRATIONS = new URL('../migrations/sqlite/', import.meta.url);

export async function exportChat(
  configFile: string | undefined,
  chatId: string,
  wishes: ExportWishes,
): Promise<void> {
  const { config } = await commandConfig(configFile);
  const log = createLog({ ...config.log, level: 'warn', secrets: hiddenInLogs(config) });
  const zone = createZone(config.timezone);
  const asked = askedFor(wishes, zone);
  const personas = createPersonas({
    ...{ groupsDir: config.groupsDir, clock: systemClock, log },
    mostInChat: config.limits.personasPerChat,
  });
  const isDone = await withRecords(join(config.dataDir, 'coterie.db'), MIGRATIONS, async (feed) => {
    const made = await exportOf({ feed, personas, zone, now: Date.now() }, { ...asked, chatId, by: null });
    if (made === null) return false;
    await (wishes.output === undefined ? print(made) : write(made, wishes.output));
    return true;
  });
  if (!isDone) throw new Fault('internal', `Nobody has ever written in a chat ${called(chatId)}.`);
}

function askedFor({ format = 'markdown', since, until }: ExportWishes, zone: Zone) {
  if (!isFormat(format)) throw refusal('format', format, `one of ${EXPORT_FORMATS.join(', ')}`);
  const moments = (option: string, given: string | undefined) => {
    const found = given === undefined ? null : momentsOf(given, zone, Date.now());
    if (given !== undefined && found === null) throw refusal(option, given, A_TIME);
    return found;
  };
  const from = moments('since', since)?.from ?? null;
  const to = moments('until', until)?.to ?? null;
  if (from !== null && to !== null && from > to) {
    throw refusal('since', since ?? '', `a time before --until ${called(until ?? '')}`);
  }
  return { format, since: from, until: to };
}

function isFormat(format: string): format is ExportFormat {
  return (EXPORT_FORMATS as readonly string[]).includes(format);
}

function refusal(option: string, given: string, expected: string): Fault {
  return new Fault('configuration', `--${option} ${called(given)}: expected ${expected}`);
}

async function print({ pieces }: Export): Promise<void> {
  // Whoever reads only the beginning (`head`) has read enough.
  process.stdout.on('error', () => process.exit(0));
  for await (const piece of pieces()) {
    if (!process.stdout.write(piece)) await once(process.stdout, 'drain');
  }
}

async function write({ pieces, messages }: Export, output: string): Promise<void> {
  const file = resolve(output);
  try {
    await writePieces(file, pieces());
  } catch (error) {
    throw new Fault('internal', `${file} could not be written`, error);
  }
  process.stdout.write(`${file}: ${messages} ${messages === 1 ? 'message' : 'messages'}.\n`);
}

function called(text: string): string {
  return printableLine(JSON.stringify(text.slice(0, 200)));
}

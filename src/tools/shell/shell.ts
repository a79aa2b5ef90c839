/**
 * `shell`: a command in the persona's working folder, in a sandbox. Without one it is refused, unless the configuration
 * says in as many words that there is to be none.
 */
import { lstat, mkdir, rmdir, symlink, unlink } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import type { Clock } from '../../core/clock.js';
import type { Tool, ToolContext, ToolResult } from '../../core/tool.js';
import {
  type Folders,
  HOME_INSIDE,
  inFolder,
  MEDIA,
  PathRefusal,
  type Places,
  QUOTA,
  type Quota,
  usedBy,
} from '../files/paths.js';
import { inPlaces } from '../files/run.js';
import { failed } from '../results.js';
import { bubblewrapArguments, bubblewrapFault, findBubblewrap, PATH_INSIDE } from './bubblewrap.js';
import { type CommandOutcome, runCommand } from './command.js';

export interface ShellParts {
  folders: Folders;
  clock: Clock;
  newId: () => string;
  settings: {
    sandbox: 'bubblewrap' | 'none';
    network: boolean;
    /** Names of variables that a command sees. */
    env: readonly string[];
    timeoutSeconds: number;
    memoryMb: number;
  };
  /** The gateway's own. */
  environment: Record<string, string | undefined>;
  /** What no command may see, wherever it lies: data, groups, configuration, files with secrets. */
  hidden: readonly string[];
  /** null: it is not installed. Left out: looked for in each call, for it may be installed meanwhile. */
  bubblewrap?: string | null;
  quota?: Quota;
}

const MOST_PROCESSES = 128;
/** Beyond the deadline of a command: to begin, and to end. */
const SPARE_MS = 15_000;

const parameters = z.object({
  command: z.string().min(1).max(30_000).describe('For bash, or sh where there is none.'),
  cwd: z.string().optional().describe('A folder, relative to your working folder. Left out: that folder.'),
  timeout_seconds: z.number().positive().optional().describe('Less than what the configuration allows.'),
});

type Parameters = z.infer<typeof parameters>;

export function shell(parts: ShellParts): Tool<Parameters> {
  const { sandbox, network, timeoutSeconds } = parts.settings;
  const net = network ? 'with network' : 'without network';
  return {
    name: 'shell',
    description:
      sandbox === 'bubblewrap'
        ? `Runs a command in your working folder, in a sandbox ${net}: it sees nothing else of the machine. Nothing can ` +
          `be typed into it, and after ${timeoutSeconds} seconds it is ended with all that it started.`
        : 'Runs a command in your working folder. Nothing can be typed into it, and after ' +
          `${timeoutSeconds} seconds it is ended with all that it started.`,
    hint: 'run commands in your working folder',
    parameters,
    risk: 'high',
    isFromOutside: true,
    ...(network && { isExternal: true }),
    timeoutMs: timeoutSeconds * 1000 + SPARE_MS,
    execute: (given, context) =>
      inPlaces(parts.folders, context, (places) => run(parts, given, places, context)),
  };
}

async function run(
  parts: ShellParts,
  { command, cwd = '', timeout_seconds }: Parameters,
  places: Places,
  context: ToolContext,
): Promise<ToolResult> {
  const { settings, hidden, clock, quota = QUOTA } = parts;
  if (command.includes('\0')) return failed('A command holds no null byte.');
  const program = parts.bubblewrap === undefined ? findBubblewrap() : parts.bubblewrap;
  const isBoxed = settings.sandbox === 'bubblewrap';
  if (isBoxed && program === null) return refused(context, 'it is not installed');
  const at = await folderFor(places, cwd);
  await showMedia(places, isBoxed);
  const used = await usedBy(places.work, quota);
  const seconds = Math.min(timeout_seconds ?? settings.timeoutSeconds, settings.timeoutSeconds);
  const order = { places, hidden, network: settings.network, cwd: at.shown };
  const outcome = await runCommand(
    {
      command,
      sandbox: isBoxed && program !== null ? { program, arguments: await bubblewrapArguments(order) } : null,
      cwd: at.real,
      env: environmentOf(parts, isBoxed ? HOME_INSIDE : places.work),
      work: places.work,
      // Whoever has too much may still run what makes it less.
      quota: used.isOver ? { bytes: Number.POSITIVE_INFINITY, entries: quota.entries * 3 } : quota,
      limits: {
        ms: seconds * 1000,
        megabytes: settings.memoryMb,
        processes: MOST_PROCESSES,
        fileBytes: used.isOver ? 0 : quota.bytes - used.bytes,
      },
      id: parts.newId(),
    },
    { clock, signal: context.signal },
  );
  return outcome.unsafe ? refused(context, await whyNot(outcome)) : told(outcome, seconds);
}

/** Where a command begins: as it is called inside, and where it really is. */
async function folderFor(places: Places, cwd: string): Promise<{ shown: string; real: string }> {
  return inFolder(places, cwd, async (_, { names, located: { isMedia, root } }) => ({
    shown: join(...(isMedia ? [MEDIA] : []), ...names) || '.',
    real: join(root, ...names),
  }));
}

/** In the sandbox another folder is laid over it; without one, a link leads there. */
async function showMedia({ work, media }: Places, isBoxed: boolean): Promise<void> {
  const place = join(work, MEDIA);
  const found = await lstat(place).catch(() => null);
  if (isBoxed) {
    if (found?.isSymbolicLink()) await unlink(place);
    else if (found !== null && !found.isDirectory()) {
      throw new PathRefusal(`A file called ${MEDIA} is in the way of what people sent: remove it first.`);
    }
    await mkdir(place, { recursive: true, mode: 0o700 });
    return;
  }
  // One that holds something is somebody's own, and stays; so does a file, or a link that is there already.
  if (found?.isDirectory()) await rmdir(place).catch(() => {});
  await symlink(media, place).catch(() => {});
}

function environmentOf({ settings, environment }: ShellParts, home: string): Record<string, string> {
  const listed = settings.env.flatMap((name): [string, string][] => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value]];
  });
  const path = settings.sandbox === 'bubblewrap' ? PATH_INSIDE : (environment.PATH ?? PATH_INSIDE);
  return { PATH: path, LANG: environment.LANG ?? 'C.UTF-8', ...Object.fromEntries(listed), HOME: home };
}

function refused({ log }: ToolContext, why: string): ToolResult {
  const what = 'a command was refused: bubblewrap, the sandbox of shell, does not work here';
  log.error({ tool: 'shell', why }, `${what}; see docs/tools.md`);
  return failed(
    'Nothing was run: commands run only in a sandbox, and there is none on this machine. Whoever runs me has to install ' +
      'it; trying again does not help.',
  );
}

async function whyNot({ stderr }: CommandOutcome): Promise<string> {
  return (await bubblewrapFault()) ?? (stderr.trim() || 'it ended without a word');
}

function told({ stdout, stderr, code, ended }: CommandOutcome, seconds: number): ToolResult {
  const parts = [
    ...(stdout === '' ? [] : [stdout.replace(/\n$/, '')]),
    ...(stderr === '' ? [] : [`[stderr]\n${stderr.replace(/\n$/, '')}`]),
    `[${endOf(code, ended, seconds)}]`,
  ];
  return { content: parts.join('\n'), failed: code !== 0, results: { stdout, stderr, code } };
}

function endOf(code: number | null, ended: CommandOutcome['ended'], seconds: number): string {
  switch (ended) {
    case 'too long':
      return `ended with all that it started: it took longer than ${seconds} seconds`;
    case 'stopped':
      return 'ended with all that it started: it was stopped';
    case 'too many processes':
      return `ended with all that it started: it had more than ${MOST_PROCESSES} processes`;
    case 'too much written':
      return 'ended with all that it started: your working folder is full';
    default:
      return `exit code ${code}${signalOf(code ?? 0)}`;
  }
}

/** A shell tells the signal that ended a command as 128 and its number. */
function signalOf(code: number): string {
  const found = Object.entries(constants.signals).find(([, number]) => number === code - 128);
  return found === undefined ? '' : `: ended by ${found[0]}`;
}

/** `shell`: runs a command in a sandbox, or without one if the configuration disables it. */
import { lstat, mkdir, rmdir, symlink, unlink, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { basename, join, relative } from 'node:path';
import * as z from 'zod';
import type { Clock } from '../../core/clock.js';
import { commandEnv, redactor } from '../../core/command-env.js';
import { codeOf, isWithin } from '../../core/file-access.js';
import type { ToolContext, ToolResult } from '../../core/tool.js';
import { findFolder, MEDIA, PathRefusal, usedBy, withoutSetId } from '../files/paths.js';
import { type FileRoots, type Quota, SKILLS, type ToolFolders } from '../files/roots.js';
import { fileTool } from '../files/run.js';
import { failed } from '../results.js';
import { bubblewrapArguments, bubblewrapFault, findBubblewrap, insideAs, PATH_INSIDE } from './bubblewrap.js';
import { type CommandOutcome, runCommand } from './command.js';

export interface ShellParts {
  folders: ToolFolders;
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
  /** null: not installed. Absent: looked up on each call, since it may be installed meanwhile. */
  bubblewrap?: string | null;
}

const MOST_PROCESSES = 128;
/** In removed files that are still open: as much as a persona's folder may hold. */
const MOST_REMOVED_BYTES = 200_000_000;
/** For one file, in a folder without a limit of its own. */
const LARGEST_FILE = 2_000_000_000;
/** In addition to a command's time-out: to start, and to end. */
const SPARE_MS = 15_000;

export function shell(parts: ShellParts) {
  const { sandbox, network, timeoutSeconds } = parts.settings;
  const net = network ? 'with network' : 'without network';
  return fileTool(parts.folders, {
    name: 'shell',
    description:
      sandbox === 'bubblewrap'
        ? `Runs a command in your working folder, in a sandbox ${net}: it sees nothing else of the machine. Nothing can ` +
          `be typed into it, and after ${timeoutSeconds} seconds it is ended with all that it started.`
        : 'Runs a command in your working folder. Nothing can be typed into it, and after ' +
          `${timeoutSeconds} seconds it is ended with all that it started.`,
    hint: 'run commands in your working folder',
    parameters: z.object({
      command: z.string().min(1).max(30_000).describe('For bash, or sh where there is none.'),
      cwd: z
        .string()
        .optional()
        .describe('A folder, relative to your working folder. Left out: that folder.'),
      timeout_seconds: z.number().positive().optional().describe('Less than what the configuration allows.'),
    }),
    risk: 'high',
    isFromOutside: true,
    ...(network && { isExternal: true }),
    timeoutMs: timeoutSeconds * 1000 + SPARE_MS,
    refusalHere: ({ agent }) => (agent?.cwd === null ? NO_FOLDER : null),
    async execute({ command, cwd = '', timeout_seconds: seconds = timeoutSeconds }, allowed, context) {
      if (command.includes('\0')) return failed('A command holds no null byte.');
      if (context.authorisation?.agent?.cwd === null) return failed(NO_FOLDER);
      return run(parts, command, cwd, Math.min(seconds, timeoutSeconds), allowed, context);
    },
  });
}

async function run(
  parts: ShellParts,
  command: string,
  cwd: string,
  seconds: number,
  allowed: FileRoots,
  context: ToolContext,
): Promise<ToolResult> {
  const { settings, clock, folders } = parts;
  const program = parts.bubblewrap === undefined ? findBubblewrap() : parts.bubblewrap;
  const isBoxed = settings.sandbox === 'bubblewrap';
  if (isBoxed && program === null) return refused(context, 'it is not installed');
  if (allowed.kind !== 'persona') await fillWorkspace(folders.workspaceFolder, folders.skillsFolder);
  const { real } = await findFolder(allowed, cwd);
  if (allowed.kind !== 'agent' && allowed.media !== null) {
    await show(join(allowed.start, MEDIA), 'what people sent', allowed.media, isBoxed);
  }
  if (allowed.kind === 'persona' && allowed.showsSkills) {
    await show(join(allowed.start, SKILLS), 'skills', folders.skillsFolder, isBoxed);
  }
  const order = { allowed, hidden: folders.hidden, network: settings.network, cwd: real };
  const sandbox =
    isBoxed && program !== null ? { program, arguments: await bubblewrapArguments(order) } : null;
  // The disk's clock may be slightly behind.
  const began = clock.now() - 1_000;
  const { env, refused: unset } = commandEnv(context.authorisation?.agent?.env ?? {});
  const home = isBoxed ? insideAs(allowed, allowed.start) : allowed.start;
  const { bounded, fileBytes } = await boundsOf(allowed, real);
  const outcome = await runCommand(
    {
      command,
      sandbox,
      cwd: real,
      env: { ...env, ...environmentOf(parts, home) },
      bounded,
      ms: seconds * 1000,
      megabytes: settings.memoryMb,
      processes: MOST_PROCESSES,
      fileBytes,
      removedBytes: MOST_REMOVED_BYTES,
      id: parts.newId(),
    },
    clock,
    context.signal,
  );
  for (const { folder, isReadOnly, quota } of allowed.roots) {
    // The gateway's own folders need no such files; an operator's folder may.
    if (!isReadOnly) await withoutSetId(folder, quota === null ? began : 0);
  }
  if (outcome.unsafe) {
    const fault = (await bubblewrapFault()) ?? outcome.stderr.trim();
    return refused(context, fault || 'it ended without a word');
  }
  return told(outcome, redactor(env), seconds, unset);
}

const NO_FOLDER =
  'Nothing was run: the working folder that this task was given lies outside the folders in which commands may run. ' +
  'Whoever runs me can allow it (agents.roots); trying again does not help.';

/** Remaining space of each folder. In a full folder, commands that free space may still run. */
async function boundsOf({ roots }: FileRoots, cwd: string) {
  const bounded: { folder: string; quota: Quota }[] = [];
  let fileBytes = LARGEST_FILE;
  for (const { folder, quota, isReadOnly } of roots) {
    if (quota === null || isReadOnly) continue;
    const used = await usedBy(folder, quota);
    const emptying = { bytes: Number.POSITIVE_INFINITY, entries: quota.entries * 3 };
    bounded.push({ folder, quota: used.isOver ? emptying : quota });
    // Files have a single limit, wherever they are: that of the start folder.
    if (isWithin(cwd, folder)) fileBytes = used.isOver ? 0 : Math.min(fileBytes, quota.bytes - used.bytes);
  }
  return { bounded, fileBytes };
}

/** The sandbox mounts another folder over this place; without one, a link leads there. */
async function show(place: string, what: string, folder: string, isBoxed: boolean): Promise<void> {
  const found = await lstat(place).catch(() => null);
  if (isBoxed) {
    if (found?.isSymbolicLink()) await unlink(place);
    else if (found !== null && !found.isDirectory()) {
      throw new PathRefusal(`A file called ${basename(place)} is in the way of ${what}: remove it first.`);
    }
    await mkdir(place, { recursive: true, mode: 0o700 });
    return;
  }
  // A non-empty folder belongs to a person and stays; so does a file, or an existing link.
  if (found?.isDirectory()) await rmdir(place).catch(() => {});
  await symlink(folder, place).catch(() => {});
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
  log.error(
    { tool: 'shell', why },
    'a command was refused: bubblewrap, the sandbox of shell, does not work here; see docs/tools.md',
  );
  return failed(
    'Nothing was run: commands run only in a sandbox, and there is none on this machine. Whoever runs me has to install ' +
      'it; trying again does not help.',
  );
}

const NOT_SET =
  '[A task may set no variable that decides which programs run, how they are loaded or what they obey; nor one that is too long.]';

/** `clean`: a task's secrets (`inputs.env`) are for its commands only, never for results, journal or windows. */
function told(
  outcome: CommandOutcome,
  clean: (text: string) => string,
  seconds: number,
  unset: readonly string[],
): ToolResult {
  const { code, ended } = outcome;
  const [stdout, stderr] = [clean(outcome.stdout), clean(outcome.stderr)];
  const parts = [
    ...(stdout === '' ? [] : [stdout.replace(/\n$/, '')]),
    ...(stderr === '' ? [] : [`[stderr]\n${stderr.replace(/\n$/, '')}`]),
    ...(unset.length === 0 ? [] : [`[not set in the environment: ${unset.join(', ')}]`, NOT_SET]),
    ended === 'by itself'
      ? `[exit code ${code}${signalOf(code ?? 0)}]`
      : `[ended with all that it started: ${why(ended, seconds)}]`,
  ];
  return { content: parts.join('\n'), failed: code !== 0, results: { stdout, stderr, code } };
}

function why(ended: Exclude<CommandOutcome['ended'], 'by itself'>, seconds: number): string {
  return {
    'too long': `it took longer than ${seconds} seconds`,
    stopped: 'it was stopped',
    'too many processes': `it had more than ${MOST_PROCESSES} processes`,
    'too much held': 'it held too much in files that it had removed',
    'too much written': 'your working folder is full',
  }[ended];
}

/** Shells report a killing signal as 128 plus its number. */
function signalOf(code: number): string {
  const found = Object.entries(constants.signals).find(([, number]) => number === code - 128);
  return found === undefined ? '' : `: ended by ${found[0]}`;
}

const FILES = ['MEMORY.md', 'USER.md'];

/** Creates the files that programs for OpenClaw expect in a workspace, empty if missing. */
async function fillWorkspace(folder: string, skillsFolder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const each of [join(folder, 'memory'), skillsFolder]) await unlessThere(mkdir(each, { mode: 0o700 }));
  for (const file of FILES) await unlessThere(writeFile(join(folder, file), '', { flag: 'wx', mode: 0o600 }));
  // Relative, so that it survives a move of data_dir.
  await unlessThere(symlink(relative(folder, skillsFolder), join(folder, 'skills')));
}

/** Anything of that name may belong to a person, even a dangling link. */
async function unlessThere(making: Promise<unknown>): Promise<void> {
  await making.catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
}

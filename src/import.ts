/**
 * `coterie import FOLDER`: brings in what OpenClaw or MicroClaw laid out. The gateway may run: nothing that is there is
 * changed, and every file appears whole.
 */
import { stat } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { commandConfig } from './config.js';
import { printableLine } from './core/cut.js';
import { Fault } from './core/errors.js';
import { isChatId, isPersonaId, slug } from './groups/paths.js';
import { type Imported, importFrom } from './importing/import.js';
import { createLog } from './operating/log.js';
import { enterData, skillsFolderOf, workspaceFolderOf } from './paths.js';
import { PLATFORMS } from './platforms.js';
import { secretsOf } from './secrets.js';

export async function importFolder(
  configFile: string | undefined,
  given: string,
  isDryRun: boolean,
): Promise<void> {
  const { config } = await commandConfig(configFile);
  const log = createLog({ ...config.log, level: 'warn', secrets: secretsOf(config) });
  const folder = resolve(given);
  const found = await stat(folder).catch(() => null);
  if (!found?.isDirectory()) {
    throw new Fault(
      'internal',
      `There is ${found === null ? 'no' : 'a file, and no'} folder ${shown(folder)}.`,
    );
  }
  const order = {
    folder,
    groups: config.groupsDir,
    workspace: workspaceFolderOf(config),
    skills: skillsFolderOf(config),
    names: { isChatId, isPersonaId, idOf: slug, channels: PLATFORMS },
    isDryRun,
  };
  // What is only looked at needs no lock, and makes none.
  if (isDryRun) return tell(folder, await importFrom(order), isDryRun);
  const data = await enterData(config, log);
  try {
    tell(folder, await importFrom(order), isDryRun);
  } finally {
    data.release();
  }
}

const SAID = { new: 'new', beside: 'beside', same: 'there already', impossible: 'FAILED' } as const;

function tell(folder: string, { found, done, passedOver }: Imported, isDryRun: boolean): void {
  for (const each of done) {
    const from = each.from.length === 0 ? 'made' : `from ${shown(each.from.join(' and '))}`;
    const why =
      each.kind === 'impossible'
        ? `: ${shown(each.why)}`
        : each.hint === undefined
          ? ''
          : `. ${shown(each.hint)}`;
    say(`${SAID[each.kind].padEnd(13)}  ${shown(relative(process.cwd(), each.path))}  (${from})${why}`);
  }
  for (const { path, why } of passedOver) say(`passed over    ${shown(path)}: ${shown(why)}`);
  if (done.length === 0) throw new Fault('internal', nothing(folder));
  const count = (kind: Imported['done'][number]['kind']) => done.filter((each) => each.kind === kind).length;
  const failures = count('impossible');
  say(
    `${found.join(', ')}: ${count('new')} new, ${count('beside')} beside what was there, ` +
      `${count('same')} there already, ${passedOver.length} passed over. ${shown(folder)} is as it was.`,
  );
  if (isDryRun) say('This was a dry run: nothing was written.');
  if (failures > 0) throw new Fault('internal', `${failures} of the files could not be written; see above.`);
}

function nothing(folder: string): string {
  return (
    `There is nothing to import in ${shown(folder)}. Looked for: an OpenClaw workspace (MEMORY.md, SOUL.md, USER.md, ` +
    'IDENTITY.md, AGENTS.md or memory/, there or in workspace/), MicroClaw’s groups (groups/ or runtime/groups/), and skills/.'
  );
}

function shown(text: string): string {
  return printableLine(text);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

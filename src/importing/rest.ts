/** Names what nobody has taken or passed over yet, so that a result has every file and folder of the source in it. */
import { type Entry, entriesBelow, within } from '../core/beneath.js';
import { NOT_ENTERED, type Source } from './source.js';

const MOST_ENTRIES = 100_000;
/** A folder with more files, of which none was taken, is told as one. */
const MOST_IN_FOLDER = 200;

/** `taken`: paths from the source's root. */
export async function passOverRest(source: Source, taken: ReadonlySet<string>): Promise<void> {
  const told = new Set(source.passedOver.map(({ path }) => path));
  const rest: string[] = [];
  const folders = new Set<string>();
  const filled = new Set<string>();
  let looked = 0;
  await within(source.root, [], async (root) => {
    const enter = ({ name, path }: Entry) => !NOT_ENTERED.has(name) && !told.has(path);
    for await (const { kind, name, path, isClosed } of entriesBelow(root, enter)) {
      filled.add(folderOf(path));
      if (++looked > MOST_ENTRIES) {
        source.passedOver.push({ path, why: `and all after it: there are more than ${MOST_ENTRIES} files` });
        return;
      }
      if (told.has(path) || taken.has(path)) continue;
      if (kind !== 'folder') rest.push(path);
      else if (NOT_ENTERED.has(name)) note(source, path, 'folders of that name are not brought in');
      else if (isClosed) note(source, path, 'it cannot be read, or lies too deep');
      else folders.add(path);
    }
  });
  for (const path of folders) if (!filled.has(path)) note(source, path, 'it is empty');
  const touched = new Set([...taken, ...told].flatMap(foldersAround));
  const inFolders = new Map<string, string[]>();
  for (const path of rest.sort()) {
    const folder = foldersAround(path).find((each) => !touched.has(each)) ?? '';
    inFolders.set(folder, [...(inFolders.get(folder) ?? []), path]);
  }
  for (const [folder, files] of inFolders) {
    const isOne = folder !== '' && files.length > MOST_IN_FOLDER;
    if (isOne) note(source, folder, `${files.length} files: ${reasonFor(folder)}`);
    else for (const path of files) note(source, path, reasonFor(path));
  }
}

function note(source: Source, path: string, why: string): void {
  source.passedOver.push({ path, why });
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** The outermost first. */
function foldersAround(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, n) => names.slice(0, n + 1).join('/'));
}

/** As OpenClaw and MicroClaw lay out what has no place here. */
const REASONS: readonly [RegExp, string][] = [
  [
    /^workspace-[^/]+(?:\/|$)/,
    'it is the workspace of another agent: bring that folder in by itself, if you want it in the place of this one',
  ],
  [/(?:^|\/)cron(?:\/|$)/, 'schedules are not brought in: ask a persona for each anew (docs/schedules.md)'],
  [
    /(?:^|\/)sessions(?:\/|\.json|$)|\.jsonl$/,
    'records of sessions are not brought in: what counts of them is in memory',
  ],
  [/^agents(?:\/|$)/, 'settings and state of an agent are not brought in (docs/agents.md)'],
  [/\.(?:db|sqlite3?)(?:-wal|-shm)?$/, 'databases are not brought in'],
  [
    /(?:^|\/)(?:credentials|identity|devices|openclaw\.json|clawdbot\.json|config\.ya?ml|mcp\.json|\.env)/,
    'settings and keys are not brought in: they belong into config.yaml',
  ],
  [/(?:^|\/)\.[^/]/, 'it is hidden'],
];

function reasonFor(path: string): string {
  return REASONS.find(([pattern]) => pattern.test(path))?.[1] ?? 'nothing here has a place for it';
}

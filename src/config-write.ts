/**
 * Changes named keys of config.yaml for a person who set something up. Only keys on a list, so that nobody becomes more by
 * it; the new text is checked as at a start before it takes the place of the old one; each change is in the audit log.
 */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Config, configIn, configPlace, type From, type LoadedConfig } from './config.js';
import { describe, Fault } from './core/errors.js';
import { readIfThere } from './core/file-access.js';
import type { Audit } from './core/journal.js';
import { fileUpdater } from './core/write-whole.js';
import { readYaml } from './operating/yaml.js';
import { editYaml, type KeyChange } from './operating/yaml-edit.js';
import { isSecretOption } from './secrets.js';

/** Everything else needs the file: `board`, owners and the sandbox decide on who may do what. */
const MAY_CHANGE = [
  'model.base_url',
  'model.api_key',
  'model.name',
  'channels.telegram.token',
  'channels.discord.token',
  'channels.whatsapp.enabled',
];

export interface WrittenKeys {
  /** The file's path. */
  file: string;
  /** The keys that have another value now; none: everything was so already. */
  changed: string[];
  /** Sentences on who else can read a secret that was written. */
  warnings: string[];
}

export type ConfigWriter = ReturnType<typeof createConfigWriter>;

export function createConfigWriter(from: From, audit: Audit) {
  const file = configPlace(from);
  const update = fileUpdater();

  /** The configuration as it would be with these changes. Throws Fault `configuration`. */
  function tried(source: string, changes: readonly KeyChange[]): { text: string; loaded: LoadedConfig } {
    // A file that has faults already must not be blamed on the change.
    configIn(source, file, from);
    const text = editYaml(source, effective(source, changes, file, from));
    return { text, loaded: configIn(text, file, from) };
  }

  async function current(): Promise<string> {
    return (await readIfThere(file))?.toString('utf8') ?? '';
  }

  return {
    file,
    /** Reads the file anew. */
    async read(): Promise<Config> {
      return configIn(await current(), file, from).config;
    },
    async preview(changes: readonly KeyChange[]): Promise<Config> {
      return tried(await current(), changes).loaded.config;
    },
    /** `who`: for the audit log. A file that somebody changes meanwhile is read again. */
    async write(changes: readonly KeyChange[], who: ByWhom): Promise<WrittenKeys> {
      const refused = changes.find(({ path }) => !MAY_CHANGE.includes(path.join('.')));
      if (refused) throw new Fault('unauthorised', `${refused.path.join('.')} is only changed in the file`);
      const named = (each: readonly KeyChange[]) => each.map(({ path }) => path.join('.'));
      if (await isReadOnly(file)) {
        throw new Fault('configuration', `${file} is read-only: make it writable, or set the keys there`);
      }
      let changed: string[] = [];
      try {
        await update(file, (bytes) => {
          const source = bytes?.toString('utf8') ?? '';
          const { text } = tried(source, changes);
          changed = named(effective(source, changes, file, from));
          const what = `${file}: ${changed.join(', ')} set up`;
          const record = () => audit.record({ ...who, kind: 'configuration', what });
          return { bytes: Buffer.from(text), record, withdraw: async () => {} };
        });
      } catch (error) {
        if (error instanceof Fault && error.code !== 'memory_unavailable') throw error;
        throw new Fault('configuration', `${file} cannot be written: ${describe(error)}`, error);
      }
      const hasSecret = changed.some((key) => isSecretKey(key.split('.')));
      return { file, changed, warnings: hasSecret ? await exposures(file) : [] };
    },
  };
}

/** It would be replaced all the same, because its folder can be written. Of any other fault, the write tells. */
async function isReadOnly(file: string): Promise<boolean> {
  const found = await stat(file).catch(() => null);
  if (found === null) return false;
  const isOurs = access(file, constants.W_OK).then(
    () => true,
    () => false,
  );
  return (found.mode & 0o222) === 0 || !(await isOurs);
}

/** For the audit log. */
export interface ByWhom {
  who: string;
  where: null;
  /** On whose word. */
  word: string | null;
}

/** Without those that the file says already, perhaps by a variable, which then stays. */
function effective(source: string, changes: readonly KeyChange[], file: string, { environment }: From) {
  const { data } = readYaml(source, dirname(file), environment);
  return changes.filter(({ path, value }) => (valueAt(data, path) ?? null) !== value);
}

function valueAt(data: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (Object(inner) as Record<string, unknown>)[key], data);
}

function isSecretKey(path: string[]): boolean {
  return isSecretOption(path.at(-1) ?? '', path.slice(0, -1));
}

async function exposures(file: string): Promise<string[]> {
  const { mode } = await stat(file);
  const others =
    (mode & 0o077) !== 0
      ? [`Other users of this machine may read ${file}; chmod 600 keeps the key from them.`]
      : [];
  const git = await gitAbove(dirname(file));
  if (git === null) return others;
  return [
    ...others,
    `${file} lies in the git repository ${git}: do not commit the key, or write it as \${NAME} there.`,
  ];
}

async function gitAbove(folder: string): Promise<string | null> {
  const found = await stat(join(folder, '.git')).catch(() => null);
  if (found !== null) return folder;
  return dirname(folder) === folder ? null : gitAbove(dirname(folder));
}

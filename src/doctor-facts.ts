/** What `doctor-security.ts` judges: who can get at which file, and who runs this. Changes nothing. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type Config, secretsOf } from './config.js';
import type { Open, SecurityFacts } from './doctor-security.js';
import { hasApprovedOwner } from './store/sqlite/inspect.js';
import { bubblewrapFault } from './tools/shell/bubblewrap.js';

/** In data_dir: what is ours, copies of it, and backups that somebody left there. */
const HELD =
  /^(coterie\.db|recall\.db|terminal-history|audit|media$|speech$|work$|restore\.json)|\.(tar\.gz|tgz|age)$|\.before-restore-/;
/** What a container is handed as secrets can be read by all who are in it, and there is nobody else. */
const HANDED = /^\/(var\/)?run\//;

export async function securityFacts(
  config: Config,
  file: string | null,
  migrations: URL,
): Promise<SecurityFacts> {
  const { dataDir, groupsDir, secretFiles } = config;
  const names = (await readdir(dataDir).catch(() => [])).filter((name) => HELD.test(name)).sort();
  const configFile = file === null ? null : await openTo(file);
  const source = configFile && (await readFile(configFile.path, 'utf8'));
  // Shorter ones would be found in ordinary words.
  const plain = secretsOf(config).filter((secret) => secret.length >= 4);
  return {
    config,
    uid: process.getuid?.() ?? null,
    ownerApproved: await hasApprovedOwner(join(dataDir, 'coterie.db'), migrations),
    data: await opened([dataDir, ...names.map((name) => join(dataDir, name))]),
    groups: await openTo(groupsDir),
    configFile: configFile && {
      ...configFile,
      holdsSecrets: plain.some((secret) => source?.includes(secret)),
    },
    sandboxFault: await bubblewrapFault(),
    secretFiles: await opened(secretFiles.map(({ path }) => path).filter((path) => !HANDED.test(path))),
  };
}

async function opened(paths: string[]): Promise<Open[]> {
  const found = await Promise.all(paths.map(openTo));
  return found.filter((each) => each !== null);
}

/** null where nobody but its owner can get at it, by its own mode or by that of a folder above it. */
async function openTo(path: string): Promise<Open | null> {
  const found = await stat(path).catch(() => null);
  let bits = (found?.mode ?? 0) & 0o077;
  for (let above = dirname(resolve(path)); bits !== 0; above = dirname(above)) {
    const mode = (await stat(above).catch(() => null))?.mode ?? 0;
    // Without the right to pass through, nothing below can be reached.
    if ((mode & 0o001) === 0) bits &= ~0o007;
    if ((mode & 0o011) === 0) bits &= ~0o070;
    if (above === dirname(above)) break;
  }
  return bits === 0 ? null : { path, bits };
}

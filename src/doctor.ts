/** `coterie doctor`: checks what the configuration names, one line each: ok, warning or failed, and what to do. */
import { access, constants, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createModel, createTelegramChannel, openStore } from './compose.js';
import { type Config, loadConfig, secretsOf } from './config.js';
import { describe } from './core/errors.js';
import type { Store } from './core/store.js';
import { takeLock } from './operating/lock.js';
import { createLog } from './operating/log.js';
import { createRedactor } from './operating/redact.js';
import { inspectSqlite } from './store/sqlite/inspect.js';

type Finding = { state: 'ok' | 'warning' | 'failed'; text: string };

/** A check that hangs is a finding, too. */
const PATIENCE_MS = 60_000;

export async function doctor(configFile: string | undefined): Promise<void> {
  const { config, warnings, file } = await loadConfig({
    argumentPath: configFile,
    environment: process.env,
    workingDirectory: process.cwd(),
  });
  const clean = createRedactor(secretsOf(config));
  let failed = false;
  const report = (what: string, { state, text }: Finding) => {
    failed ||= state === 'failed';
    process.stdout.write(clean(`${state.padEnd(7)} ${what}: ${text}\n`));
  };
  const check = async (what: string, look: () => Promise<Finding[]>) => {
    const findings = await look().catch((error): Finding[] => [{ state: 'failed', text: describe(error) }]);
    for (const finding of findings) report(what, finding);
  };

  report('configuration', ok(file ?? 'no file, everything is default'));
  for (const text of warnings) report('configuration', { state: 'warning', text });
  await check('folders', () => checkFolders(config));
  await check('database', () => checkDatabase(config));
  // Logins and models are asked with what the store remembers of them, in a copy that is thrown away.
  const log = createLog({ level: 'silent', format: 'json', secrets: [] });
  const store = await openStore(config, log, ':memory:');
  try {
    await check('telegram', () => checkTelegram(config, store));
    await check('model', () => checkModel(config, store));
  } finally {
    await store.close();
  }
  if (failed) process.exitCode = 1;
}

async function checkFolders(config: Config): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const folder of [config.dataDir, config.groupsDir]) {
    try {
      await mkdir(folder, { recursive: true });
      await access(folder, constants.R_OK | constants.W_OK);
      findings.push(ok(folder));
    } catch (error) {
      findings.push({ state: 'failed', text: `${folder} must be readable and writable: ${describe(error)}` });
    }
  }
  const principles = join(config.groupsDir, 'AGENTS.md');
  const there = await stat(principles).then(
    (found) => found.isFile(),
    () => false,
  );
  if (!there)
    findings.push({ state: 'warning', text: `${principles} is not there: personas have no principles` });
  return findings;
}

async function checkDatabase(config: Config): Promise<Finding[]> {
  const file = join(config.dataDir, 'coterie.db');
  const found = await inspectSqlite(file, new URL('../migrations/sqlite', import.meta.url));
  if (found.kind === 'missing') return [ok(`${file} is made at the first start`)];
  const lock = await takeLock(join(config.dataDir, 'gateway.lock'));
  lock?.release();
  const running = lock ? 'no gateway runs on it' : 'a gateway runs on it';
  const pending =
    found.pending > 0 ? `; ${found.pending} migrations run at the next start, after a copy` : '';
  const { parked } = found;
  return [
    ok(`${file}, ${running}${pending}`),
    ...(parked > 0
      ? [
          {
            state: 'warning' as const,
            text: `${parked} replies or turns are parked; the log says why, and nothing is sent again`,
          },
        ]
      : []),
  ];
}

async function checkTelegram(config: Config, store: Store): Promise<Finding[]> {
  if (!config.channels.telegram) return [ok('not configured')];
  const log = createLog({ level: 'silent', format: 'json', secrets: [] });
  const channel = await createTelegramChannel(config, store, log);
  const { identity, warnings } = await channel.check();
  await channel.stop();
  return [ok(identity), ...warnings.map((text): Finding => ({ state: 'warning', text }))];
}

async function checkModel(config: Config, store: Store): Promise<Finding[]> {
  if (!config.model.server) {
    return [
      { state: 'warning', text: 'the built-in offline model answers; set model.base_url and model.name' },
    ];
  }
  const log = createLog({ level: 'silent', format: 'json', secrets: [] });
  const model = await createModel(config, store, log);
  const { identity, warnings } = await model.check(AbortSignal.timeout(PATIENCE_MS));
  return [ok(identity), ...warnings.map((text): Finding => ({ state: 'warning', text }))];
}

function ok(text: string): Finding {
  return { state: 'ok', text };
}

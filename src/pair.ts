/** `coterie pair`: who may talk. Works on the store, also while the gateway runs; that one notices by itself. */
import { openStore } from './compose.js';
import { loadConfig, secretsOf } from './config.js';
import { Fault } from './core/errors.js';
import type { Store } from './core/store.js';
import { createLog } from './operating/log.js';

export async function list(configFile: string | undefined): Promise<void> {
  await withStore(configFile, async (store) => {
    const waiting = await store.waiting(Date.now());
    if (waiting.length === 0) say('Nobody waits.');
    for (const { code, kind, id, name, expiresAt } of waiting) {
      const until = expiresAt === null ? '' : `, until ${new Date(expiresAt).toISOString()}`;
      say(`${kind === 'group' ? id : code}  ${name} (${kind} ${id}${until})`);
    }
  });
}

export async function approve(configFile: string | undefined, codeOrId: string): Promise<void> {
  await withStore(configFile, async (store) => {
    const approved = await store.approve({
      codeOrId,
      now: Date.now(),
      told: {
        member: plain('You are in. Write to me whenever you like; /help shows what I can do.'),
        owner: plain('You are in, and as the first one you are my owner. /help shows what I can do.'),
      },
    });
    if (!approved) {
      throw new Fault(
        'unauthorised',
        `No code or chat ${codeOrId} waits; coterie pair list shows what does.`,
      );
    }
    say(`${approved.id} may talk now${approved.owner ? ', and is the owner' : ''}.`);
  });
}

export async function remove(configFile: string | undefined, id: string): Promise<void> {
  await withStore(configFile, async (store) => {
    if (!(await store.revoke(id)))
      throw new Fault('unauthorised', `${id} was not approved and does not wait.`);
    say(`${id} may not talk any more.`);
  });
}

async function withStore(
  configFile: string | undefined,
  work: (store: Store) => Promise<void>,
): Promise<void> {
  const { config } = await loadConfig({
    argumentPath: configFile,
    environment: process.env,
    workingDirectory: process.cwd(),
  });
  const store = await openStore(
    config,
    createLog({ ...config.log, level: 'warn', secrets: secretsOf(config) }),
  );
  try {
    await work(store);
  } finally {
    await store.close();
  }
}

function plain(text: string) {
  return { text, marks: [] };
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** `coterie pair`: who may talk. Works on the store, also while the gateway runs; that one notices by itself. */
import { join } from 'node:path';
import { openStore } from './compose.js';
import { type Config, processConfig, secretsOf } from './config.js';
import { WELCOME } from './conversation/commands/pairing.js';
import type { PairingRequest } from './core/access.js';
import { systemClock } from './core/clock.js';
import { Fault } from './core/errors.js';
import { channelOf } from './core/ids.js';
import type { Store } from './core/store.js';
import { takeLock } from './operating/lock.js';
import { createLog } from './operating/log.js';
import { PLATFORMS, stateOf } from './platforms.js';

export async function list(configFile: string | undefined): Promise<void> {
  await withStore(configFile, async (store, config) => {
    const waiting = (await store.waiting(Date.now())).filter((each) => !isListed(config, each));
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
        member: plain(WELCOME.member),
        owner: plain(WELCOME.owner),
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

/** Links WhatsApp without a QR code: a code is typed on the phone. The gateway must not run: it has the same link. */
export async function linkWhatsApp(configFile: string | undefined, phone: string): Promise<void> {
  const { config } = await processConfig(configFile);
  const options = config.channels.whatsapp;
  if (!options) {
    throw new Fault('configuration', 'WhatsApp is not configured: set channels.whatsapp.enabled to true.');
  }
  const number = phone.replaceAll(/[\s()+.-]/g, '').replace(/^00/, '');
  if (!/^\d{6,15}$/.test(number)) {
    throw new Fault(
      'configuration',
      `${phone} should be a phone number with its country code, like +49 170 1234567.`,
    );
  }
  const lock = await takeLock(join(config.dataDir, 'gateway.lock'));
  if (!lock) {
    throw new Fault('already_running', `A coterie runs on ${config.dataDir}; stop it to link WhatsApp.`);
  }
  const log = createLog({ ...config.log, secrets: secretsOf(config) });
  const store = await openStore(config, log);
  const ending = new AbortController();
  process.once('SIGINT', () => ending.abort());
  try {
    const { pairByPhone } = await import('./channels/whatsapp/pair.js');
    const linked = await pairByPhone({
      options,
      log,
      phone: number,
      clock: systemClock,
      signal: ending.signal,
      state: stateOf(store, 'whatsapp'),
      show: (code) =>
        say(`On the phone: WhatsApp, Linked devices, Link with phone number instead. The code is ${code}`),
    });
    say(`WhatsApp is linked as ${linked.number}.`);
  } finally {
    await store.close();
    lock.release();
  }
  // A timer inside the library would keep a process that is done for half a minute.
  process.exit(0);
}

async function withStore(
  configFile: string | undefined,
  work: (store: Store, config: Config) => Promise<void>,
): Promise<void> {
  const { config } = await processConfig(configFile);
  const store = await openStore(
    config,
    createLog({ ...config.log, level: 'warn', secrets: secretsOf(config) }),
  );
  try {
    await work(store, config);
  } finally {
    await store.close();
  }
}

/** It may enter by the configuration by now, or what it is part of may. */
function isListed({ channels }: Config, { kind, id, within }: PairingRequest): boolean {
  const name = PLATFORMS.find((each) => each === channelOf(id));
  const rules = name === undefined ? undefined : channels[name]?.access;
  if (kind !== 'group' || rules === undefined) return false;
  return (
    rules.groups === 'open' || [id, within].some((each) => each !== undefined && rules.chats.includes(each))
  );
}

function plain(text: string) {
  return { text, marks: [] };
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** `coterie pair`: approves people and groups. It works on the store; a running gateway notices the change. */
import { join } from 'node:path';
import { openAudit } from './audit-start.js';
import { CHANNELS } from './channels/list.js';
import { askAtTerminal, BY_OPERATOR, commandConfig, commandLog, say } from './command.js';
import type { Config } from './config.js';
import { NAME_CHARS, WELCOME } from './conversation/commands/owners.js';
import { oneLine } from './conversation/quoting.js';
import type { Applicant, ApprovedKind } from './core/access.js';
import { systemClock } from './core/clock.js';
import { Fault } from './core/errors.js';
import type { Audit } from './core/journal.js';
import type { Store } from './core/store.js';
import { createOutward } from './network/outward.js';
import { takeLock } from './operating/lock.js';
import { openStore } from './parts.js';
import { enterData } from './paths.js';
import { stateOf, userName } from './platforms.js';
import { isListed, listedOwners } from './settings.js';

/** Asks the person at the terminal; null without a terminal. */
export type Prompt = ((question: string) => Promise<string>) | null;

export async function list(configFile: string | undefined): Promise<void> {
  await withStore(configFile, async (store, config) => {
    if (!(await hasOwner(store, config))) {
      say(
        'There is no owner yet. Approve one with coterie pair approve CODE --owner, or list yours under access.owners.',
      );
    }
    const waiting = (await store.waiting(Date.now())).filter((each) => !isListed(config, each));
    if (waiting.length === 0) say('No pending requests.');
    for (const { code, kind, id, name, expiresAt } of waiting) {
      const until = new Date(expiresAt).toISOString();
      say(`${kind === 'group' ? id : code}  ${shown(name)} (${kind} ${id}, until ${until})`);
    }
  });
}

/** `asOwner`: `--owner` was given. Otherwise the operator is asked, if there is no owner yet. */
export async function approve(
  configFile: string | undefined,
  codeOrId: string,
  asOwner: boolean,
  ask: Prompt,
): Promise<void> {
  await withStore(configFile, async (store, config, audit) => {
    const wanted = () => ({ codeOrId, looksLike: looksLike(codeOrId), now: Date.now() });
    const who = await store.applicant(wanted());
    if (who === null) throw unknown(codeOrId);
    if (asOwner) refuseAsOwner(config, who);
    const needsOwner = who.kind === 'sender' && !(await hasOwner(store, config));
    const owns = asOwner || (needsOwner && ask !== null && (await isToOwn(who, ask)));
    await audit.record({
      ...BY_OPERATOR,
      kind: 'approval',
      what: `${who.id} is let in, by the user ${userName()}`,
    });
    if (owns) await audit.record({ ...BY_OPERATOR, kind: 'owner', what: `${who.id} is made an owner` });
    const told = { member: plain(WELCOME.member), owner: plain(WELCOME.owner) };
    const approved = await store.approve({ ...wanted(), asOwner: owns, told });
    if (approved === null) throw unknown(codeOrId);
    const { id, kind, owner } = approved;
    say(`${id} may talk now${owner ? ', and is the owner' : ''}.`);
    if (needsOwner && !owner) {
      say(`There is no owner yet; to make them the owner: coterie pair approve ${id} --owner`);
    }
    if (kind === 'unknown') {
      say('Nobody has written under this ID yet, so nobody was told.');
    }
  });
}

export async function remove(configFile: string | undefined, given: string): Promise<void> {
  const { id } = partsOf(given);
  await withStore(configFile, async (store, _config, audit) => {
    const what = `the approval or request of ${id} is taken back, by the user ${userName()}`;
    await audit.record({ ...BY_OPERATOR, kind: 'approval', what });
    if (!(await store.refuse({ id })))
      throw new Fault('unauthorised', `${shown(id)} has no approval and no pending request.`);
    say(`${id} may not talk any more.`);
  });
}

/** Links WhatsApp by a code typed on the phone, not a QR code. The gateway must be stopped: it uses the same link. */
export async function linkWhatsApp(configFile: string | undefined, phone: string): Promise<void> {
  const { config } = await commandConfig(configFile);
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
  const log = commandLog(config, config.log.level);
  const what = `WhatsApp is linked by phone to ${number}, by the user ${userName()}`;
  await openAudit(config, log).record({ ...BY_OPERATOR, kind: 'link', what });
  const data = await enterData(config, log);
  const store = await openStore(config, log);
  const ending = new AbortController();
  process.once('SIGINT', () => ending.abort());
  try {
    const { pairByPhone } = await import('./channels/whatsapp/pair.js');
    const linked = await pairByPhone({
      options,
      log,
      phone: number,
      outward: createOutward(config.network.proxies),
      clock: systemClock,
      signal: ending.signal,
      state: stateOf(store, 'whatsapp'),
      show: (code) =>
        say(`On the phone: WhatsApp, Linked devices, Link with phone number instead. The code is ${code}`),
    });
    say(`WhatsApp is linked as ${linked.number}.`);
  } finally {
    await store.close();
    data.release();
    lock.release();
  }
  // A timer in the library would keep the finished process alive for half a minute.
  process.exit(0);
}

async function withStore(
  configFile: string | undefined,
  work: (store: Store, config: Config, audit: Audit) => Promise<void>,
): Promise<void> {
  const { config } = await commandConfig(configFile);
  const log = commandLog(config);
  const data = await enterData(config, log);
  const store = await openStore(config, log);
  try {
    await work(store, config, openAudit(config, log));
  } finally {
    await store.close();
    data.release();
  }
}

/** null without a terminal. */
export function terminalAsk(): Prompt {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return null;
  return (question) => askAtTerminal(question, 'No answer; nobody was approved.');
}

async function isToOwn({ id, name }: Applicant, ask: NonNullable<Prompt>): Promise<boolean> {
  const who = name === null ? id : `${shown(name)} (${id})`;
  const answer = await ask(
    `${who} is about to be let in. There is no owner yet: an owner may change everything, and let others in.\n` +
      'Shall they be the owner? (y/N) ',
  );
  return /^\s*y(es)?\s*$/i.test(answer);
}

function refuseAsOwner(config: Config, { id, kind }: Applicant): void {
  const refusal =
    listedOwners(config).length > 0
      ? `The configuration lists the owners (access.owners), so nobody becomes one here: add ${id} there and start coterie again. Without --owner they are let in.`
      : kind === 'group'
        ? `${id} is a group, and only a person can be an owner. Without --owner it is let in.`
        : kind === 'unknown'
          ? `Whether ${id} is a person is not known before they write. Without --owner they are let in; once they have written, this makes them the owner.`
          : null;
  if (refusal !== null) throw new Fault('configuration', refusal);
}

async function hasOwner(store: Store, config: Config): Promise<boolean> {
  return (await store.owners(listedOwners(config))).ids.length > 0;
}

/** The kind of an ID, judged by its form; null for a code and for anything that is no channel's ID. */
function looksLike(codeOrId: string): ApprovedKind | null {
  const { channel, address } = partsOf(codeOrId);
  return CHANNELS.find(({ name }) => name === channel)?.ids.kindOf(address) ?? null;
}

function unknown(codeOrId: string): Fault {
  const { id, channel } = partsOf(codeOrId);
  if (channel === null) {
    return new Fault(
      'unauthorised',
      `No pending request has the code or ID ${shown(id)}; coterie pair list shows them.`,
    );
  }
  const found = CHANNELS.find(({ name }) => name === channel);
  const expected = found?.ids.expected ?? CHANNELS.map(({ name }) => `${name}_…`).join(', ');
  const what = found === undefined ? 'is of no channel that there is' : `is no id of ${found.label}`;
  return new Fault('unauthorised', `${shown(id)} ${what}; expected: ${expected}.`);
}

function partsOf(codeOrId: string): { id: string; channel: string | null; address: string } {
  const id = codeOrId.replace(/\s+/g, '');
  const [, channel = null, address = ''] = /^([^_]*)_(.*)$/s.exec(id) ?? [];
  return { id, channel, address };
}

/** A stranger's name, safe to print to a terminal. */
function shown(name: string): string {
  return oneLine(name, NAME_CHARS) || '?';
}

function plain(text: string) {
  return { text, marks: [] };
}

/**
 * The command lane, beside the route: runs commands at once, in order within a room, without debounce or lease, each
 * once per message id. A hung turn cannot delay them; they can end it. A failing command does not block the next: it
 * stays stored and is taken up again.
 */

import { createHash } from 'node:crypto';
import type { Offer } from '../../core/access.js';
import type { Channel } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe, sentenceOf } from '../../core/errors.js';
import { DEFAULT_PERSONA, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Audit } from '../../core/journal.js';
import type { Log } from '../../core/log.js';
import { personaName } from '../../core/persona.js';
import type { NewCommand, PendingCommand, StoredCommand } from '../../core/receipt.js';
import { mayTry } from '../../core/retry.js';
import type { CommandEffect, SettingStore } from '../../core/store.js';
import { type ChatCommand, type CommandAnswer, NOT_CHECKED } from '../commands/command.js';
import { COMMANDS, commandCalled } from '../commands/list.js';
import { deliveriesOf, withButtons, withNumbers } from '../deliver/reply.js';
import { greetingDeliveries } from '../participants.js';
import { type Actor, type Rights, rightsOf } from '../rights.js';
import type { Scheduler } from '../rooms/scheduler.js';
import { forgetCopies, leaseOf, type Services } from '../services.js';

interface CommandLane {
  /** Runs commands in the order received. */
  run(commands: PendingCommand[]): void;
  /** Resolves when no command is running. */
  idle(): Promise<void>;
  /** Starts no more commands: they stay stored. Resolves when the running ones are over. */
  stop(): Promise<void>;
}

interface LaneServices extends Services {
  scheduler: Scheduler;
}

const RETRY_MS = 1_000;
const TRIES = 3;

export function createCommandLane(services: LaneServices): CommandLane {
  const { store, clock, log, scheduler } = services;
  const lanes = new Map<RoomId, Promise<void>>();
  /** Commands that wait or run, so that none is started twice. */
  const underWay = new Set<number>();
  let stopping = false;

  function run(commands: PendingCommand[]): void {
    for (const { id, room } of commands) {
      if (underWay.has(id)) continue;
      underWay.add(id);
      const lane = (lanes.get(room) ?? Promise.resolve())
        .then(() => work(id))
        .catch((error) =>
          log.error({ err: error, command: id, room }, 'a command could not be finished; it will be retried'),
        )
        .finally(() => {
          underWay.delete(id);
          if (lanes.get(room) === lane) lanes.delete(room);
        });
      lanes.set(room, lane);
      // Messages sent after a command are answered after it.
      scheduler.holdBack(room, lane);
    }
  }

  async function work(id: number): Promise<void> {
    if (stopping) return;
    const command = await insist(() => store.takeCommand(id, leaseOf(services)));
    if (!command) return;
    const answer = await answerTo(services, command);
    const channel = services.channels.get(command.chat.channel);
    const offer = offerOf(services, command, answer);
    const deliveries = channel ? await deliveriesFor(services, channel, command, answer, offer) : [];
    const effects = offer === null ? (answer.effects ?? []) : offering(offer, answer.effects);
    const { abortedTurn } = await insist(() =>
      store.finishCommand({ id, now: clock.now(), effects, deliveries }),
    );
    const { room } = command;
    if (abortedTurn) scheduler.abort(room, abortedTurn);
    // Nor may the room answer messages for which it has not begun a turn yet.
    if (effects.some(({ kind }) => kind === 'suppress' || kind === 'reset')) scheduler.abort(room, null);
    for (const effect of effects) if (effect.kind === 'reset') await forgetAgain(effect);
    services.metrics.count('commands_total', { command: command.name });
    for (const chat of [command.chat.id, ...(answer.wakes ?? [])]) services.deliver.wake(chat);
    if (effects.length > 0) scheduler.wake(room, 'settled');
    if (answer.resumes !== undefined) scheduler.wake(answer.resumes, 'settled');
  }

  /** What a turn has recorded that began or ended while the command ran. */
  async function forgetAgain({ room, personaId }: CommandEffect & { kind: 'reset' }): Promise<void> {
    const { chatId } = roomParts(room);
    await forgetCopies(services, chatId, personaId).catch((error) => {
      log.error({ err: error, room }, 'records of a conversation that was reset could not be removed');
    });
  }

  async function insist<T>(what: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await what();
      } catch (error) {
        if (tries >= TRIES) throw error;
        log.error({ err: error }, 'working on a command failed; it is tried again');
        await clock.sleep(RETRY_MS);
      }
    }
  }

  async function idle(): Promise<void> {
    while (lanes.size > 0) await Promise.all(lanes.values());
  }

  return {
    run,
    idle,
    stop() {
      stopping = true;
      return idle();
    },
  };
}

/** Three attempts, then one plain sentence. */
async function answerTo(services: LaneServices, command: StoredCommand): Promise<CommandAnswer> {
  const { log, clock } = services;
  const found = commandCalled(command.name);
  if (!mayTry(command.crashes)) {
    log.error(
      { command: command.name, chat: command.chat.id },
      'a command crashed the process too often and is given up',
    );
    return { text: sentenceOf(null) };
  }
  if (!found) return { text: `/${command.name} is not known any more; /help shows what is.` };
  for (let tries = 1; ; tries++) {
    try {
      return await runCommand(services, found, await asAddressed(services, found, command));
    } catch (error) {
      log.error({ err: error, command: command.name, chat: command.chat.id }, 'a command failed');
      if (tries >= TRIES) return { text: sentenceOf(error) };
      await clock.sleep(RETRY_MS);
    }
  }
}

/**
 * With the persona that it means where it names none: the one whose own account it was sent to, else the active one; as far
 * as they exist, for an operator may have removed PERSONA.md, and then `default` answers.
 */
async function asAddressed(
  { personas }: LaneServices,
  found: ChatCommand,
  command: StoredCommand,
): Promise<StoredCommand> {
  const { chat, persona } = command;
  const exists = async (id: PersonaId) => (await personas.get(chat.id, id)) !== null;
  const meaning = (id: PersonaId) => ({ ...command, chat: { ...chat, activePersona: id } });
  if (persona !== undefined && !found.ofChat) {
    await personas.meet(chat.id, persona);
    if (await exists(persona)) return meaning(persona);
  }
  return (await exists(chat.activePersona)) ? command : meaning(DEFAULT_PERSONA);
}

async function runCommand(
  services: LaneServices,
  found: ChatCommand,
  command: StoredCommand,
): Promise<CommandAnswer> {
  const { chat } = command;
  const giver = { ...command, channel: chat.channel };
  const rights = await rightsOf(services, giver);
  const refusal = await refusalOf(found, command, giver, rights);
  if (refusal !== null) return { text: refusal };
  await auditCommand(services.audit, found, command);
  const interruptTurns = () => services.scheduler.interrupt(chat.id);
  return found.run({ command, ...rights, interruptTurns }, { ...services, commands: COMMANDS });
}

function offerOf(
  { newId, clock }: LaneServices,
  { room, chat, sender }: StoredCommand,
  { choices }: CommandAnswer,
): Offer | null {
  if (choices === undefined || choices.options.length === 0) return null;
  const { options, forAnybody, forMs } = choices;
  // Who asks in the group's own name presses in theirs.
  const isInTheirName = chat.kind === 'direct' || sender.id !== chat.id;
  const senderId = forAnybody || !isInTheirName ? null : sender.id;
  return { key: newId(), room, senderId, options, until: clock.now() + forMs };
}

/** The effects of an answer that offers something. */
function offering(offer: Offer, effects: CommandEffect[] = []): CommandEffect[] {
  const linked = effects.map((each) => (each.kind === 'ask' ? { ...each, offer: offer.key } : each));
  return [...linked, { kind: 'offer', ...offer }];
}

async function deliveriesFor(
  { personas }: LaneServices,
  channel: Channel,
  { id, chat, platformMessageId }: StoredCommand,
  { text, files, appears }: CommandAnswer,
  offer: Offer | null,
) {
  const origin = `command:${id}`;
  const all = await personas.list(chat.id).catch(() => []);
  // In a group, the reply shows who is answered; a native command waits for its answer everywhere.
  const isReply = chat.kind === 'group' || channel.awaitsAnswer?.(platformMessageId) === true;
  const from = {
    ...{ origin, personaId: null, speaker: personaName(all, chat.activePersona) },
    replyTo: isReply ? platformMessageId : null,
  };
  const words = offer === null ? text : withNumbers(channel, text, offer);
  const said = deliveriesOf(channel, words, from, files);
  return [
    ...(offer === null ? said : withButtons(channel, said, offer)),
    ...(appears
      ? greetingDeliveries(channel, appears.chat, appears.persona, all, origin, appears.greeting.text)
      : []),
  ];
}

// Within step 1 of the route: which commands somebody may give in a chat.

/** Why they may not give this command: one sentence for the chat; null where they may. */
export async function refusalOf(
  { ownersOnly, changes }: ChatCommand,
  { argument }: Pick<NewCommand, 'argument'>,
  { chat }: Pick<Actor, 'chat'>,
  rights: Rights,
): Promise<string | null> {
  if (ownersOnly && !rights.isOwner) return 'Only owners can do that.';
  if (chat.kind !== 'group' || !changes(argument)) return null;
  const permission = await rights.mayChange();
  if (permission === 'unknown') return NOT_CHECKED;
  return permission === 'no' ? 'Only owners and administrators of this group can do that.' : null;
}

// Within step 1 of the route: enters a command in the audit log before it runs, if it changes something or is for owners.

/** Rejects where what only owners may do cannot be entered: it is then not done. */
async function auditCommand(
  audit: Audit,
  { name, ownersOnly, changes, audited }: ChatCommand,
  { argument, chat, sender }: Pick<StoredCommand, 'argument' | 'chat' | 'sender'>,
): Promise<void> {
  if (audited === null || !(ownersOnly || changes(argument))) return;
  const what = `/${name} ${audited?.(argument) ?? ''}`.trim();
  const entry = { kind: 'command', who: sender.id, where: chat.id, what, word: sender.id } as const;
  await (ownersOnly ? audit.record(entry) : audit.note(entry));
}

// Registers the commands in each platform's own command menu: only when the set has changed, and with retries until it
// succeeds.

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 600_000;

/** The setting in which `doctor` finds why a channel's command menu could not be set; empty when it is set. */
export function refusalKey(channel: string): string {
  return `${channel}.commands.refused`;
}

/** Returns at once. Call the function it returns to stop retrying. */
export function announceCommands(parts: {
  channels: ReadonlyMap<string, Channel>;
  store: SettingStore;
  clock: Clock;
  log: Log;
}): () => Promise<void> {
  const over = new AbortController();
  const commands = COMMANDS.map(({ name, aliases, description, verbs }) => ({
    name,
    aliases,
    description,
    ...(verbs === undefined ? {} : { verbs }),
  }));
  const digest = createHash('sha256').update(JSON.stringify(commands)).digest('hex');
  const announcing = [...parts.channels.values()].map(async (channel) => {
    if (!channel.announceCommands) return;
    const key = `${channel.name}.commands`;
    const refusal = refusalKey(channel.name);
    let isTold = false;
    for (let wait = FIRST_RETRY_MS; !over.signal.aborted; wait = Math.min(wait * 2, LONGEST_RETRY_MS)) {
      try {
        if ((await parts.store.setting(key)) === digest) return;
        await channel.announceCommands(commands);
        await parts.store.setSetting(key, digest);
        await parts.store.setSetting(refusal, '');
        return;
      } catch (error) {
        const fields = { err: error, channel: channel.name };
        parts.log[isTold ? 'debug' : 'warn'](fields, 'the command menu could not be set; it will be retried');
        isTold = true;
        await parts.store.setSetting(refusal, describe(error)).catch(() => {
          parts.log.debug({ channel: channel.name }, 'it was not stored for doctor, either');
        });
        await parts.clock.sleep(wait, over.signal);
      }
    }
  });
  return async () => {
    over.abort();
    await Promise.all(announcing);
  };
}

/**
 * Commands, beside the route: run at once, in order within a room, without debounce or lease, once per message id. A hung turn
 * cannot delay them, and they can end it. A failed command does not block the next: it stays stored and is retried.
 */
import type { Offer } from '../../core/access.js';
import type { Channel, NewDelivery } from '../../core/channel.js';
import { sentenceOf } from '../../core/errors.js';
import { DEFAULT_PERSONA, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import { personaName } from '../../core/persona.js';
import type { PendingCommand, StoredCommand } from '../../core/receipt.js';
import { mayTry } from '../../core/retry.js';
import type { CommandEffect } from '../../core/store.js';
import { type ChatCommand, type CommandAnswer, NOT_CHECKED } from '../commands/command.js';
import { COMMANDS, commandCalled } from '../commands/list.js';
import { withButtons, withNumbers } from '../deliver/offers.js';
import { deliveriesOf } from '../deliver/reply.js';
import { greetingDeliveries } from '../participants.js';
import { type Rights, rightsOf } from '../rights.js';
import type { Scheduler } from '../rooms/scheduler.js';
import { forgetCopies, leaseOf, type Services } from '../services.js';

const RETRY_MS = 1_000;
const TRIES = 3;

export function createCommandLane(services: Services, scheduler: Scheduler) {
  const { store, clock, log } = services;
  const lanes = new Map<RoomId, Promise<void>>();
  /** Commands that wait or run, so that none is started twice. */
  const underWay = new Set<number>();
  let stopping = false;

  async function work(id: number): Promise<void> {
    if (stopping) return;
    const command = await insist(() => store.takeCommand(id, leaseOf(services)));
    if (!command) return;
    const { room, chat } = command;
    const answer = await answerTo(services, scheduler, command);
    const channel = services.channels.get(chat.channel);
    const offer = offerOf(services, command, answer);
    const deliveries = channel ? await deliveriesFor(services, channel, command, answer, offer) : [];
    const effects = offer === null ? (answer.effects ?? []) : offering(offer, answer.effects);
    const finish = { id, now: clock.now(), effects, deliveries };
    const { abortedTurn } = await insist(() => store.finishCommand(finish));
    if (abortedTurn) scheduler.abort(room, abortedTurn);
    // Also abort a run that has not begun a turn yet.
    if (effects.some(({ kind }) => kind === 'suppress' || kind === 'reset')) scheduler.abort(room, null);
    for (const effect of effects)
      if (effect.kind === 'reset') await forgetAgain(effect.room, effect.personaId);
    services.metrics.count('commands_total', { command: command.name });
    for (const each of [chat.id, ...(answer.wakes ?? [])]) services.deliver.wake(each);
    if (effects.length > 0) scheduler.wake(room, 'settled');
    if (answer.resumes !== undefined) scheduler.wake(answer.resumes, 'settled');
  }

  /** Removes the records of a turn that began or ended while the command ran. */
  async function forgetAgain(room: RoomId, personaId: PersonaId): Promise<void> {
    await forgetCopies(services, roomParts(room).chatId, personaId).catch((error) => {
      log.error({ err: error, room }, 'records of a reset conversation could not be removed');
    });
  }

  async function insist<T>(act: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await act();
      } catch (error) {
        if (tries >= TRIES) throw error;
        log.error({ err: error }, 'a command failed; retrying');
        await clock.sleep(RETRY_MS);
      }
    }
  }

  async function idle(): Promise<void> {
    while (lanes.size > 0) await Promise.all(lanes.values());
  }

  return {
    /** Runs commands in the order received. */
    run(commands: readonly PendingCommand[]): void {
      for (const { id, room } of commands) {
        if (underWay.has(id)) continue;
        underWay.add(id);
        const lane = (lanes.get(room) ?? Promise.resolve())
          .then(() => work(id))
          .catch((error) =>
            log.error({ err: error, command: id, room }, 'a command could not be finished; it stays stored'),
          )
          .finally(() => {
            underWay.delete(id);
            if (lanes.get(room) === lane) lanes.delete(room);
          });
        lanes.set(room, lane);
        // Messages sent after a command are answered after it.
        scheduler.holdBack(room, lane);
      }
    },
    /** Resolves when no command is running. */
    idle,
    /** Starts no more commands: they stay stored. Resolves when the running ones are over. */
    stop(): Promise<void> {
      stopping = true;
      return idle();
    },
  };
}

/** Three attempts, then one plain sentence. */
async function answerTo(
  services: Services,
  scheduler: Scheduler,
  command: StoredCommand,
): Promise<CommandAnswer> {
  const { log, clock } = services;
  const { name, chat, crashes } = command;
  const found = commandCalled(name);
  const fields = { command: name, chat: chat.id };
  if (!mayTry(crashes)) {
    log.error(fields, 'a command ended the process too often; giving up');
    return { text: sentenceOf(null) };
  }
  if (!found) return { text: `/${name} is not known any more; /help shows what is.` };
  for (let tries = 1; ; tries++) {
    try {
      return await runCommand(services, scheduler, found, await asAddressed(services, found, command));
    } catch (error) {
      log.error({ err: error, ...fields }, 'a command failed');
      if (tries >= TRIES) return { text: sentenceOf(error) };
      await clock.sleep(RETRY_MS);
    }
  }
}

/**
 * Fills in the persona of a command that names none: the one whose account it was sent to, else the active one. If an operator
 * has removed its PERSONA.md, `default` answers.
 */
async function asAddressed(
  { personas }: Services,
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
  services: Services,
  scheduler: Scheduler,
  found: ChatCommand,
  command: StoredCommand,
): Promise<CommandAnswer> {
  const { chat, sender, argument } = command;
  const rights = await rightsOf(services, { ...command, channel: chat.channel });
  const refusal = await refusalOf(found, argument, chat.kind, rights);
  if (refusal !== null) return { text: refusal };
  const { name, ownersOnly, changes, audited } = found;
  if (audited !== null && (ownersOnly || changes(argument))) {
    const what = `/${name} ${audited?.(argument) ?? ''}`.trim();
    const entry = { kind: 'command', who: sender.id, where: chat.id, what, word: sender.id } as const;
    // An owners' command that cannot be entered does not run.
    await (ownersOnly ? services.audit.record(entry) : services.audit.note(entry));
  }
  const interruptTurns = () => scheduler.interrupt(chat.id);
  return found.run({ ...services, command, ...rights, interruptTurns, commands: COMMANDS });
}

/** The refusal for this sender, as one sentence; null if the command is allowed. */
export async function refusalOf(
  { ownersOnly, changes }: ChatCommand,
  argument: string,
  chatKind: 'direct' | 'group',
  rights: Rights,
): Promise<string | null> {
  if (ownersOnly && !rights.isOwner) return 'Only owners can do that.';
  if (chatKind === 'direct' || !changes(argument)) return null;
  const permission = await rights.mayChange();
  if (permission === 'unknown') return NOT_CHECKED;
  return permission === 'no' ? 'Only owners and administrators of this group can do that.' : null;
}

function offerOf(
  { newId, clock }: Services,
  { room, chat, sender }: StoredCommand,
  { choices }: CommandAnswer,
): Offer | null {
  if (choices === undefined || choices.options.length === 0) return null;
  const { options, forMs } = choices;
  // Somebody who writes in the group's name presses buttons in their own.
  const isInTheirName = chat.kind === 'direct' || sender.id !== chat.id;
  const senderId = isInTheirName ? sender.id : null;
  return { key: newId(), room, senderId, options, until: clock.now() + forMs };
}

/** The effects of an answer with an offer. */
function offering(offer: Offer, effects: CommandEffect[] = []): CommandEffect[] {
  const linked = effects.map((each) => (each.kind === 'ask' ? { ...each, offer: offer.key } : each));
  return [...linked, { kind: 'offer', ...offer }];
}

async function deliveriesFor(
  { personas }: Services,
  channel: Channel,
  { id, chat, platformMessageId }: StoredCommand,
  { text, files, appears }: CommandAnswer,
  offer: Offer | null,
): Promise<NewDelivery[]> {
  const origin = `command:${id}`;
  const all = await personas.list(chat.id).catch(() => []);
  // In a group, the reply shows who is answered; a native command waits for its answer everywhere.
  const isReply = chat.kind === 'group' || channel.awaitsAnswer?.(platformMessageId) === true;
  const replyTo = isReply ? platformMessageId : null;
  const from = { origin, personaId: null, speaker: personaName(all, chat.activePersona), replyTo };
  const words = offer === null ? text : withNumbers(channel, text, offer);
  const said = deliveriesOf(channel, words, from, files);
  const answer = offer === null ? said : withButtons(channel, said, offer);
  if (!appears) return answer;
  const { chat: changed, persona, greeting } = appears;
  return [...answer, ...greetingDeliveries(channel, changed, persona, all, origin, greeting.text)];
}

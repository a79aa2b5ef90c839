/**
 * The command lane, beside the route: runs commands at once, in order within a room, without debounce or lease, each
 * once per message id. A hung turn cannot delay them; they can end it. A failing command does not block the next: it
 * stays stored and is taken up again.
 */
import type { Offer } from '../../core/access.js';
import type { Channel } from '../../core/channel.js';
import { sentenceOf } from '../../core/errors.js';
import { DEFAULT_PERSONA, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import { personaName } from '../../core/persona.js';
import type { PendingCommand, StoredCommand } from '../../core/receipt.js';
import { mayTry } from '../../core/retry.js';
import type { CommandEffect } from '../../core/route-store.js';
import type { ChatCommand, CommandAnswer } from '../commands/command.js';
import { COMMANDS, commandCalled } from '../commands/list.js';
import { forgetCopies } from '../copies.js';
import { withButtons, withNumbers } from '../deliver/choices.js';
import { deliveriesOf } from '../deliver/reply.js';
import { greetingDeliveries } from '../participants.js';
import { rightsOf } from '../rights.js';
import type { Scheduler } from '../rooms/scheduler.js';
import { leaseOf, type Services } from '../services.js';
import { enterCommand } from './audited.js';
import { refusalOf } from './refusal.js';

export interface CommandLane {
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
  await enterCommand(services.audit, found, command);
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

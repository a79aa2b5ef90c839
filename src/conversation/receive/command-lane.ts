/**
 * The command lane, beside the route: runs commands at once, in order within a room, without debounce or lease, each
 * once per message id. A hung turn cannot delay them; they can end it. A failing command does not block the next: it
 * stays stored and is taken up again.
 */
import type { Channel } from '../../core/channel.js';
import { sentenceOf } from '../../core/errors.js';
import { addressOf, type RoomId } from '../../core/ids.js';
import { personaName } from '../../core/persona.js';
import type { PendingCommand, StoredCommand } from '../../core/receipt.js';
import { isOwner } from '../access.js';
import { type Command, type CommandAnswer, NOT_CHECKED, type Permission } from '../commands/command.js';
import { COMMANDS } from '../commands/list.js';
import type { Windows } from '../compaction/windows.js';
import type { Deliver } from '../deliver/deliver.js';
import { deliveriesOf } from '../deliver/reply.js';
import { greeterOf } from '../greeting.js';
import type { Scheduler } from '../rooms/scheduler.js';
import { leaseOf, type Services } from '../services.js';

export interface CommandLane {
  /** Runs commands in the order received. */
  run(commands: PendingCommand[]): void;
  /** Resolves when no command is running. */
  idle(): Promise<void>;
  /** Starts no more commands: they stay stored. Resolves when the running ones are over. */
  stop(): Promise<void>;
}

interface LaneServices extends Services {
  deliver: Deliver;
  windows: Windows;
  scheduler: Scheduler;
}

const RETRY_MS = 1_000;
const TRIES = 3;
/** A command during which the process has crashed this often is not run again. */
const MOST_CRASHES = 5;
/** If the platform does not say by then who is an administrator, it is not known. */
const ASKING_MS = 5_000;

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
    const deliveries = channel ? await deliveriesFor(services, channel, command, answer) : [];
    const { effects = [] } = answer;
    const { abortedTurn } = await insist(() =>
      store.finishCommand({ id, now: clock.now(), effects, deliveries }),
    );
    const { room } = command;
    if (abortedTurn) scheduler.abort(room, abortedTurn);
    // Nor may the room answer messages for which it has not begun a turn yet.
    if (effects.some(({ kind }) => kind === 'suppress' || kind === 'reset')) scheduler.abort(room, null);
    services.metrics.count('commands_total', { command: command.name });
    services.deliver.wake(command.chat.id);
    if (effects.length > 0) scheduler.wake(room, 'settled');
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

function known({ name: called }: StoredCommand): Command | undefined {
  return COMMANDS.find(({ name, aliases }) => name === called || aliases.includes(called));
}

/** Three attempts, then one plain sentence. */
async function answerTo(services: LaneServices, command: StoredCommand): Promise<CommandAnswer> {
  const { log, clock } = services;
  const found = known(command);
  if (command.crashes >= MOST_CRASHES) {
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

/** A command sent to a persona's own account means that persona, if it exists. */
async function asAddressed(
  { personas }: LaneServices,
  found: Command,
  command: StoredCommand,
): Promise<StoredCommand> {
  const { chat, persona } = command;
  if (persona === undefined || found.ofChat) return command;
  await personas.meet(chat.id, persona);
  if ((await personas.get(chat.id, persona)) === null) return command;
  return { ...command, chat: { ...chat, activePersona: persona } };
}

async function runCommand(
  services: LaneServices,
  found: Command,
  command: StoredCommand,
): Promise<CommandAnswer> {
  const { chat, sender } = command;
  const standing = await services.store.standing({ chatId: chat.id, senderId: sender.id });
  const owner = isOwner(services.rulesFor(chat.channel), sender.id, standing);
  const mayChange = async (): Promise<Permission> => (owner ? 'yes' : administers(services, command));
  if (chat.kind === 'group' && found.changes(command.argument)) {
    const permission = await mayChange();
    if (permission === 'unknown') return { text: NOT_CHECKED };
    if (permission === 'no') return { text: 'Only owners and administrators of this group can do that.' };
  }
  const interruptTurns = () => services.scheduler.interrupt(chat.id);
  return found.run(
    { command, isOwner: owner, mayChange, interruptTurns },
    { ...services, commands: COMMANDS },
  );
}

async function administers(
  { channels, clock, log }: LaneServices,
  { chat, sender }: StoredCommand,
): Promise<Permission> {
  if (sender.administrator) return 'yes';
  const channel = channels.get(chat.channel);
  if (!channel?.isAdministrator) return 'no';
  const late = new AbortController();
  try {
    const asked = channel
      .isAdministrator(chat.address, addressOf(sender.id))
      .then((isOne): Permission => (isOne ? 'yes' : 'no'));
    return await Promise.race([asked, clock.sleep(ASKING_MS, late.signal).then((): Permission => 'unknown')]);
  } catch (error) {
    log.warn({ err: error, chat: chat.id }, 'the platform did not say who administers a group');
    return 'unknown';
  } finally {
    late.abort();
  }
}

async function deliveriesFor(
  { personas }: LaneServices,
  channel: Channel,
  { id, chat, platformMessageId }: StoredCommand,
  { text, files, appears }: CommandAnswer,
) {
  const origin = `command:${id}`;
  const all = await personas.list(chat.id).catch(() => []);
  // In a group, the reply shows who is answered; a native command waits for its answer everywhere.
  const isReply = chat.kind === 'group' || channel.awaitsAnswer?.(platformMessageId) === true;
  const from = {
    ...{ origin, personaId: null, speaker: personaName(all, chat.activePersona) },
    replyTo: isReply ? platformMessageId : null,
  };
  const greeter = appears && greeterOf(channel, { ...appears, personas: all }, origin);
  return [
    ...deliveriesOf(channel, text, from, files),
    ...(greeter ? deliveriesOf(channel, appears.greeting.text, greeter) : []),
  ];
}

/**
 * The control lane, beside the route: commands run at once, in order within a room, without debounce or lease,
 * each once by its message id. A turn that hangs cannot hold them up; they end it.
 */
import type { Channel } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import { sentenceOf } from '../core/errors.js';
import { addressOf, type ChatId, type RoomId } from '../core/ids.js';
import type { Log, Metrics } from '../core/log.js';
import type { AccessStore, CommandStore, PendingCommand, StoredCommand } from '../core/store.js';
import { isOwner } from './access.js';
import type { Command, CommandAnswer, CommandParts } from './commands/command.js';
import { deliveriesOf } from './reply.js';

export interface ControlParts {
  store: CommandStore & AccessStore;
  commandParts: CommandParts;
  channels: ReadonlyMap<string, Channel>;
  /** Ends a turn that a command has aborted in the store. */
  abortTurn(turnId: string): void;
  /** Ends what is done in a room before a turn begins, when what it was about is not to be answered. */
  giveUpOpening(room: RoomId): void;
  /** Cuts off the turns in flight in a chat: they write nothing more, and are taken up again. */
  interruptTurns(chatId: ChatId): Promise<void>;
  /** An answer waits in the outbox. */
  onAnswered(chatId: string): void;
  /** Looks at a room again, after what waited there was forgotten or stopped. */
  wakeRoom(room: RoomId): void;
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

export interface Control {
  /** Runs commands as they were received. */
  run(commands: PendingCommand[]): void;
  /** Resolves when no command of this room, or of any, is under way. */
  idle(room?: RoomId): Promise<void>;
  /** Begins no more commands: they stay stored. Resolves when those under way are over. */
  stop(): Promise<void>;
}

const RETRY_MS = 1_000;
const TRIES = 3;
/** A command during which the process has ended this often is not begun again. */
const TRIES_OVER_PROCESSES = 5;
/** A platform that does not say in time who is administrator counts as having said no. */
const ASKING_MS = 5_000;

export function createControl(parts: ControlParts): Control {
  const { store, clock, log } = parts;
  const lanes = new Map<RoomId, Promise<void>>();
  let stopping = false;

  function run(commands: PendingCommand[]): void {
    for (const { id, room } of commands) {
      const lane = (lanes.get(room) ?? Promise.resolve()).then(() => untilDone(id));
      lanes.set(room, lane);
      void lane.finally(() => {
        if (lanes.get(room) === lane) lanes.delete(room);
      });
    }
  }

  async function untilDone(id: number): Promise<void> {
    while (!stopping) {
      try {
        const command = await store.takeCommand(id);
        if (command) await runOne(await asAddressed(command));
        return;
      } catch (error) {
        log.error({ err: error, command: id }, 'a command could not be worked on; trying again');
        await clock.sleep(RETRY_MS);
      }
    }
  }

  function known({ name: called }: StoredCommand): Command | undefined {
    const { commands } = parts.commandParts;
    return commands.find(({ name, aliases }) => name === called || aliases.includes(called));
  }

  /** What is given to a persona's own account means that persona, where it exists. */
  async function asAddressed(command: StoredCommand): Promise<StoredCommand> {
    const { chat, persona } = command;
    if (persona === undefined || known(command)?.ofChat) return command;
    const { personas } = parts.commandParts;
    await personas.meet(chat.id, persona);
    if ((await personas.get(chat.id, persona)) === null) return command;
    return { ...command, chat: { ...chat, activePersona: persona } };
  }

  async function runOne(command: StoredCommand): Promise<void> {
    const answer = await answerOf(command);
    const { chat, room } = command;
    const channel = parts.channels.get(chat.channel);
    const persona = await parts.commandParts.personas.get(chat.id, chat.activePersona).catch(() => null);
    const { abortedTurn } = await store.finishCommand({
      id: command.id,
      now: clock.now(),
      effects: answer.effects ?? [],
      deliveries: channel
        ? deliveriesOf(
            channel,
            answer.text,
            {
              origin: `command:${command.id}`,
              personaId: null,
              speaker: persona?.name ?? chat.activePersona,
              replyTo: isShownAsReply(channel, command) ? command.platformMessageId : null,
            },
            answer.files,
          )
        : [],
    });
    if (abortedTurn) parts.abortTurn(abortedTurn);
    if (answer.effects?.some(({ kind }) => kind === 'hush' || kind === 'reset')) parts.giveUpOpening(room);
    parts.metrics.count('commands_total', { command: command.name });
    parts.onAnswered(chat.id);
    if (answer.effects) parts.wakeRoom(room);
  }

  async function answerOf(command: StoredCommand): Promise<CommandAnswer> {
    const found = known(command);
    if (command.tries > TRIES_OVER_PROCESSES) {
      log.error(
        { command: command.name, chat: command.chat.id },
        'a command ended the process too often; it is given up',
      );
      return { text: sentenceOf(null) };
    }
    if (!found) return { text: `/${command.name} is not known any more; /help shows what is.` };
    for (let tries = 1; ; tries++) {
      try {
        const owner = await senderIsOwner(command);
        const mayChange = async () => owner || (await administers(command));
        if (command.chat.kind === 'group' && found.changes(command.argument) && !(await mayChange())) {
          return { text: 'Only owners and administrators of this group can do that.' };
        }
        const interruptTurns = () => parts.interruptTurns(command.chat.id);
        return await found.run({ command, isOwner: owner, mayChange, interruptTurns }, parts.commandParts);
      } catch (error) {
        log.error({ err: error, command: command.name, chat: command.chat.id }, 'a command failed');
        if (tries >= TRIES) return { text: sentenceOf(error) };
        await clock.sleep(RETRY_MS);
      }
    }
  }

  async function senderIsOwner({ chat, sender }: StoredCommand): Promise<boolean> {
    const standing = await store.standing({ chatId: chat.id, senderId: sender.id });
    return isOwner(parts.commandParts.rulesFor(chat.channel), sender.id, standing);
  }

  async function administers({ chat, sender }: StoredCommand): Promise<boolean> {
    if (sender.administrator) return true;
    const channel = parts.channels.get(chat.channel);
    if (!channel?.isAdministrator) return false;
    const late = new AbortController();
    try {
      return await Promise.race([
        channel.isAdministrator(chat.address, addressOf(sender.id)),
        clock.sleep(ASKING_MS, late.signal).then(() => false),
      ]);
    } catch (error) {
      log.warn({ err: error, chat: chat.id }, 'the platform did not say who administers a group');
      return false;
    } finally {
      late.abort();
    }
  }

  async function idle(room?: RoomId): Promise<void> {
    if (room !== undefined) return lanes.get(room);
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

/** In a group it shows who is answered; a native command waits for it everywhere. */
function isShownAsReply(channel: Channel, { chat, platformMessageId }: StoredCommand): boolean {
  return chat.kind === 'group' || channel.awaitsAnswer?.(platformMessageId) === true;
}

/** Commands, beside the route: at once, in order within a room, once per message. One that fails stays stored. */

import { createHash } from 'node:crypto';
import type { Offer } from '../../core/access.js';
import type { Channel, NewDelivery } from '../../core/channel.js';
import { leaseOf } from '../../core/clock.js';
import { describe, sentenceOf } from '../../core/errors.js';
import { channelOf, DEFAULT_PERSONA, type PersonaId, type RoomId } from '../../core/ids.js';
import { personaName } from '../../core/persona.js';
import { BY_REACTION, type PendingCommand, type StoredCommand } from '../../core/receipt.js';
import { backoff, mayTry } from '../../core/retry.js';
import { putSetting, settingOf } from '../../core/store.js';
import { type ChatCommand, type CommandAnswer, NOT_CHECKED } from '../commands/command.js';
import { COMMANDS, commandCalled } from '../commands/list.js';
import { forgetCopies } from '../commands/memory-forget.js';
import { deliveriesOf, replyIn, withButtons, withNumbers } from '../deliver/reply.js';
import { greetingDeliveries, pictureBefore } from '../greeting.js';
import { type Rights, rightsOf } from '../rights.js';
import type { Scheduler } from '../rooms/scheduler.js';
import type { BaseServices, Services } from '../services.js';

const RETRY_MS = 1_000;
const TRIES = 3;

export class CommandLane {
  private readonly lanes = new Map<RoomId, Promise<void>>();
  /** Commands that wait or run, so that none is started twice. */
  private readonly underWay = new Set<number>();
  private stopping = false;

  constructor(
    private readonly services: Services,
    private readonly scheduler: Scheduler,
  ) {}

  run(commands: readonly PendingCommand[]): void {
    for (const { id, room } of commands) {
      if (this.underWay.has(id) || !this.services.mine.has(channelOf(room))) continue;
      this.underWay.add(id);
      const lane = (this.lanes.get(room) ?? Promise.resolve())
        .then(() => this.work(id))
        .catch((error) => {
          const fields = { err: error, command: id, room };
          this.services.log.error(fields, 'a command could not be finished; it stays stored');
        })
        .finally(() => {
          this.underWay.delete(id);
          if (this.lanes.get(room) === lane) this.lanes.delete(room);
        });
      this.lanes.set(room, lane);
      // Messages sent after a command are answered after it.
      this.scheduler.holdBack(room, lane);
    }
  }

  async idle(): Promise<void> {
    while (this.lanes.size > 0) await Promise.all(this.lanes.values());
  }

  /** Starts no more commands: they stay stored. Resolves when the running ones are over. */
  stop(): Promise<void> {
    this.stopping = true;
    return this.idle();
  }

  private async work(id: number): Promise<void> {
    const { services, scheduler } = this;
    const { store, clock, deliver, metrics, log } = services;
    if (this.stopping) return;
    const command = await this.insist({ command: id }, () => store.takeCommand(id, leaseOf(services)));
    if (!command) return;
    const { room, chat, name } = command;
    const answer = await this.answerTo(command);
    const offer = this.offerOf(command, answer);
    const deliveries = await this.deliveriesFor(command, answer, offer);
    const effects = (answer.effects ?? []).map((each) =>
      each.kind === 'ask' && offer ? { ...each, offer: offer.key } : each,
    );
    if (offer) effects.push({ kind: 'offer', ...offer });
    const refused = answer.refused && (await this.deliveriesFor(command, { text: answer.refused }, null));
    const finish = { id, now: clock.now(), effects, deliveries, ...(refused && { refused }) };
    const { abortedTurn } = await this.insist({ command: id }, () => store.finishCommand(finish));
    if (abortedTurn) scheduler.abort(room, abortedTurn);
    // Also abort a run that has not begun a turn yet.
    if (effects.some(({ kind }) => kind === 'suppress' || kind === 'reset')) scheduler.abort(room, null);
    for (const effect of effects) {
      if (effect.kind !== 'reset') continue;
      // A turn may have begun or ended while the command ran.
      await forgetCopies(services, chat.id, effect.personaId).catch((error) => {
        log.error({ err: error, room }, 'records of a reset conversation could not be removed');
      });
    }
    metrics.count('commands_total', { command: name });
    for (const each of [chat.id, ...(answer.wakes ?? [])]) deliver.wake(each);
    if (effects.length > 0) scheduler.wake(room, 'settled');
    if (answer.resumes !== undefined) scheduler.wake(answer.resumes, 'settled');
  }

  private async insist<T>(fields: object, act: () => Promise<T>): Promise<T> {
    const { log, clock } = this.services;
    for (let tries = 1; ; tries++) {
      try {
        return await act();
      } catch (error) {
        if (tries >= TRIES) throw error;
        log.error({ err: error, ...fields }, 'a command failed; retrying');
        await clock.sleep(RETRY_MS);
      }
    }
  }

  /** Three attempts, then one plain sentence. */
  private async answerTo(command: StoredCommand): Promise<CommandAnswer> {
    const { name, chat, crashes } = command;
    const fields = { command: name, chat: chat.id };
    if (!mayTry(crashes)) {
      this.services.log.error(fields, 'a command ended the process too often; giving up');
      return { text: sentenceOf(null) };
    }
    const found = commandCalled(name);
    if (!found) return { text: `/${name} is not known any more; /help shows what is.` };
    try {
      return await this.insist(fields, async () =>
        this.execute(found, await this.asAddressed(found, command)),
      );
    } catch (error) {
      this.services.log.error({ err: error, ...fields }, 'a command failed');
      return { text: sentenceOf(error) };
    }
  }

  /** The persona that a command means: the one whose account it was sent to, else the active one, else `default`. */
  private async asAddressed(found: ChatCommand, command: StoredCommand): Promise<StoredCommand> {
    const { personas } = this.services;
    const { chat, persona } = command;
    const exists = async (id: PersonaId) => (await personas.get(chat.id, id)) !== null;
    const meaning = (id: PersonaId) => ({ ...command, chat: { ...chat, activePersona: id } });
    if (persona !== undefined && !found.ofChat) {
      await personas.meet(chat.id, persona);
      if (await exists(persona)) return meaning(persona);
    }
    return (await exists(chat.activePersona)) ? command : meaning(DEFAULT_PERSONA);
  }

  private async execute(found: ChatCommand, command: StoredCommand): Promise<CommandAnswer> {
    const { services, scheduler } = this;
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

  private offerOf({ room, chat, sender }: StoredCommand, { choices }: CommandAnswer): Offer | null {
    const { newId, clock } = this.services;
    if (choices === undefined || choices.options.length === 0) return null;
    const { options, forMs } = choices;
    // Somebody who writes in the group's name presses buttons in their own.
    const senderId = chat.kind === 'direct' || sender.id !== chat.id ? sender.id : null;
    return { key: newId(), room, senderId, options, until: clock.now() + forMs };
  }

  private async deliveriesFor(
    { id, chat, platformMessageId }: StoredCommand,
    { text, files, greets, appears, replyTo: answered }: CommandAnswer,
    offer: Offer | null,
  ): Promise<NewDelivery[]> {
    const { personas, channels } = this.services;
    const channel = channels.get(chat.channel);
    if (!channel) return [];
    const origin = `command:${id}`;
    const all = await personas.list(chat.id).catch(() => []);
    const ofCommand = platformMessageId.startsWith(BY_REACTION) ? null : platformMessageId;
    const replyTo = replyIn(channel, chat.kind, answered ?? ofCommand);
    const from = { origin, personaId: null, speaker: personaName(all, chat.activePersona), replyTo };
    const said = deliveriesOf(channel, offer ? withNumbers(channel, text, offer) : text, from, files);
    const answer = offer ? withButtons(channel, said, offer) : said;
    if (greets) {
      return [...(await pictureBefore(this.services, { channel, chat, personas: all }, greets)), ...answer];
    }
    if (!appears) return answer;
    const { chat: changed, persona, greeting } = appears;
    const where = { channel, chat: changed, personas: all };
    return [...answer, ...(await greetingDeliveries(this.services, where, persona, origin, greeting.text))];
  }
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

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 600_000;

/** Setting with the reason why a channel's command menu could not be set, for `doctor`; empty if it is set. */
export function refusalKey(channel: string): string {
  return `${channel}.commands.refused`;
}

/** Registers changed commands in a platform's menu, with retries. Returns at once, with a function that stops it. */
export function announceCommands({ store, clock, log }: BaseServices, channel: Channel): () => Promise<void> {
  const over = new AbortController();
  const commands = COMMANDS.map(({ name, aliases, description, verbs }) => {
    const shown = { name, aliases, description };
    return verbs ? { ...shown, verbs } : shown;
  });
  const digest = createHash('sha256').update(JSON.stringify(commands)).digest('hex');

  async function announce(): Promise<void> {
    const key = `${channel.name}.commands`;
    for (let tries = 1; channel.announceCommands && !over.signal.aborted; tries++) {
      try {
        if ((await settingOf(store, key)) === digest) return;
        await channel.announceCommands(commands);
        await putSetting(store, key, digest);
        return await putSetting(store, refusalKey(channel.name), '');
      } catch (error) {
        const fields = { err: error, channel: channel.name };
        log[tries === 1 ? 'warn' : 'debug'](fields, 'the command menu could not be set; retrying');
        await putSetting(store, refusalKey(channel.name), describe(error)).catch(() => {
          log.debug({ channel: channel.name }, 'the reason could not be stored for doctor');
        });
        await clock.sleep(backoff(tries, FIRST_RETRY_MS, LONGEST_RETRY_MS), over.signal);
      }
    }
  }

  const announcing = announce();
  return async () => {
    over.abort();
    await announcing;
  };
}

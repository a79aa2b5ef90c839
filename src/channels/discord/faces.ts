/**
 * Pictures of personas that have no address: each such persona has a webhook of its own in a channel, made with its
 * picture. Discord keeps the picture and tells only its own hash of it, so the store remembers whose each one is. One
 * that was made unheard is found by its name.
 */
import type * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import type { ChannelHost, Recipient, ShownSpeaker } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { Portrait } from '../../core/persona.js';
import type { ApiCall, Base } from './api.js';
import { CODE, type DiscordFailure, failureOf, isRefusal, MOST_NOTED } from './failure.js';
import type { DiscordOptions } from './options.js';
import { authorOf } from './outbound.js';

/** Of Discord's fifteen: one is that of all others, and some are other people's. */
const MOST_FACES = 10;
/** One that spoke within this time is not taken from its persona: each change of a picture counts towards a limit. */
const RESTING_MS = 600_000;
/** How exactly the store knows when one was used. */
const USED_MS = 3_600_000;
/** Pause before Discord is asked again for what it refused. */
const PAUSE_MS = 300_000;
/** A longer limit is not waited out: the message goes without the picture. */
const PATIENCE_MS = 10_000;
/** Name of a webhook where Discord refuses the persona's. */
const PLAIN_NAME = 'Persona';

export interface OwnWebhook {
  id: string;
  /** Permits sending through the webhook. */
  token: string;
}

export interface ListedWebhook extends OwnWebhook {
  name: string;
  hasPicture: boolean;
}

/** A persona whose picture is to be shown. */
export interface WantedFace {
  chat: string;
  personaId: string;
  /** As the persona is called. */
  persona: string;
  /** As Discord takes it. */
  name: string;
  portrait: Portrait;
}

const keptFaces = z.array(
  z.object({
    id: z.string(),
    chat: z.string(),
    personaId: z.string(),
    persona: z.string(),
    /** The webhook's. */
    name: z.string(),
    hash: z.string(),
    usedAt: z.number(),
  }),
);
type KeptFace = z.infer<typeof keptFaces>[number];

type Tried = { kind: 'done' } | { kind: 'dead' } | { kind: 'refused'; failure: DiscordFailure };

export class Faces {
  private readonly kept = new LRUCache<string, KeptFace[]>({ max: MOST_NOTED });
  /** Until then none is made or changed in a channel, unless roles or channels change. */
  private readonly paused = new LRUCache<string, { until: number; lifts: number }>({ max: MOST_NOTED });
  /** Hashes of pictures that Discord refused. */
  private readonly refused = new LRUCache<string, true>({ max: MOST_NOTED });

  constructor(
    private readonly base: Base,
    private readonly host: ChannelHost<DiscordOptions>,
  ) {}

  /** null if the speaker has none, or an address of one. Never rejects. */
  async wanted(to: Recipient, options: ShownSpeaker): Promise<WantedFace | null> {
    const author = authorOf(to, options);
    if (author === null || author.avatar_url !== undefined || options.appearance === undefined) return null;
    const { personaId, name: persona } = options.appearance;
    const portrait = await this.host.portrait(to.address, personaId);
    if (portrait === null || this.refused.has(portrait.hash)) return null;
    return { chat: to.address, personaId, persona, name: author.username, portrait };
  }

  /** The ids of those in a channel. */
  async idsIn(channel: string): Promise<ReadonlySet<string>> {
    return new Set((await this.keptIn(channel)).map(({ id }) => id));
  }

  /**
   * The persona's own, made or changed if necessary; null: it speaks without its picture. `ours`: all in this channel
   * that are ours; a new one is added. Rejects when Discord cannot be asked.
   */
  async take(
    channel: string,
    face: WantedFace,
    ours: ListedWebhook[],
    signal: AbortSignal,
  ): Promise<OwnWebhook | null> {
    const kept = (await this.keptIn(channel)).filter(({ id }) => ours.some((each) => each.id === id));
    const own = kept.find(({ chat, personaId }) => chat === face.chat && personaId === face.personaId);
    const webhook = ours.find(({ id }) => id === own?.id);
    if (own && webhook && isRight(own, webhook, face)) {
      await this.noteUse(channel, own, kept);
      return webhook;
    }
    if (this.isPaused(channel)) return webhook ?? null;
    if (webhook) {
      const tried = await this.change(webhook, face, signal);
      if (tried.kind === 'done') return this.keep(channel, webhook, face, kept);
      if (tried.kind === 'refused') {
        this.pause(channel, face, tried.failure);
        return webhook;
      }
      drop(webhook, ours);
    }
    const others = await this.withoutGone(kept.filter((each) => each !== own));
    return this.settle(channel, face, ours, others, signal);
  }

  /** For a persona that has none: one made unheard, a new one, or the one that rested longest. */
  private async settle(
    channel: string,
    face: WantedFace,
    ours: ListedWebhook[],
    kept: KeptFace[],
    signal: AbortSignal,
  ): Promise<OwnWebhook | null> {
    const isKept = ({ id }: OwnWebhook) => kept.some((each) => each.id === id);
    const unheard = ours.find((each) => each.hasPicture && each.name === face.name && !isKept(each));
    if (unheard && (await this.change(unheard, face, signal)).kind === 'done') {
      return this.keep(channel, unheard, face, kept);
    }
    let failure: DiscordFailure | null = null;
    if (kept.length < MOST_FACES) {
      const made = await this.make(channel, face, signal);
      if ('id' in made) {
        ours.push(made);
        return this.keep(channel, made, face, kept);
      }
      failure = made;
    }
    if (failure !== null && failure.code !== CODE.tooManyWebhooks) {
      this.pause(channel, face, failure);
      return null;
    }
    const rested = kept.filter(({ usedAt }) => usedAt <= this.base.clock.now() - RESTING_MS);
    const [oldest] = rested.sort((one, other) => one.usedAt - other.usedAt);
    const taken = ours.find(({ id }) => id === oldest?.id);
    if (taken === undefined) return null;
    const tried = await this.change(taken, face, signal);
    const left = kept.filter(({ id }) => id !== taken.id);
    if (tried.kind === 'done') return this.keep(channel, taken, face, left);
    if (tried.kind === 'refused') this.pause(channel, face, tried.failure);
    else drop(taken, ours);
    return null;
  }

  private async make(
    channel: string,
    face: WantedFace,
    signal: AbortSignal,
  ): Promise<ListedWebhook | DiscordFailure> {
    const path = `/channels/${channel}/webhooks`;
    try {
      const { id, token, name } = await this.named<Discord.APIWebhook>(
        { method: 'POST', path },
        face,
        signal,
      );
      if (!id || !token) throw new Error('Discord made a webhook and does not say which');
      return { id, token, name: name ?? face.name, hasPicture: true };
    } catch (error) {
      return refusalIn(error);
    }
  }

  private async change(webhook: ListedWebhook, face: WantedFace, signal: AbortSignal): Promise<Tried> {
    const path = `/webhooks/${webhook.id}/${webhook.token}`;
    try {
      const call: ApiCall = { method: 'PATCH', path, anonymous: true };
      const { name } = await this.named<Discord.APIWebhook>(call, face, signal);
      webhook.name = name ?? face.name;
      webhook.hasPicture = true;
      return { kind: 'done' };
    } catch (error) {
      const failure = refusalIn(error);
      return failure.status === 404 ? { kind: 'dead' } : { kind: 'refused', failure };
    }
  }

  /** With the persona's name, or without if Discord refuses it. */
  private async named<Answer>(
    call: ApiCall,
    { name, portrait }: WantedFace,
    signal: AbortSignal,
  ): Promise<Answer> {
    const avatar = `data:image/jpeg;base64,${portrait.bytes.toString('base64')}`;
    const { api } = this.base;
    try {
      return await api.call<Answer>({ ...call, body: { name, avatar } }, signal);
    } catch (error) {
      const { code, reason } = failureOf(error);
      if (code !== CODE.invalidForm || !/\bname\[/.test(reason)) throw error;
      return api.call<Answer>({ ...call, body: { name: PLAIN_NAME, avatar } }, signal);
    }
  }

  /** Deletes those of personas that are there no more. */
  private async withoutGone(kept: KeptFace[]): Promise<KeptFace[]> {
    const left: KeptFace[] = [];
    for (const face of kept) {
      const names = await this.host.personaNames(face.chat);
      if (names.includes(face.persona) || !(await this.isErased(face))) left.push(face);
    }
    return left;
  }

  private async isErased({ id, persona }: KeptFace): Promise<boolean> {
    try {
      await this.base.api.call({ method: 'DELETE', path: `/webhooks/${id}` });
      return true;
    } catch (error) {
      const { reason, status } = failureOf(error);
      this.base.log.debug(
        { channel: 'discord', persona, reason },
        'webhook of a persona that is gone was not deleted',
      );
      return status === 404;
    }
  }

  private isPaused(channel: string): boolean {
    const { api, clock } = this.base;
    const pause = this.paused.get(channel);
    return pause !== undefined && pause.until > clock.now() && pause.lifts === api.forbidden.lifts();
  }

  /** After a refusal: of this picture for good, else of all in the channel for some minutes. */
  private pause(channel: string, face: WantedFace, failure: DiscordFailure): void {
    const { api, clock, log } = this.base;
    const told = { channel: 'discord', room: channel, persona: face.persona, reason: failure.reason };
    if (failure.code === CODE.invalidForm) this.refused.set(face.portrait.hash, true);
    else {
      const ms = Math.max(failure.retryAfterMs ?? 0, PAUSE_MS);
      this.paused.set(channel, { until: clock.now() + ms, lifts: api.forbidden.lifts() });
    }
    log.info(told, 'Discord took no webhook with a persona’s picture; it speaks without');
  }

  private async keptIn(channel: string): Promise<KeptFace[]> {
    const known = this.kept.get(channel);
    if (known !== undefined) return known;
    const name = nameIn(channel);
    const text = (await this.host.state.get([name])).get(name) ?? '[]';
    const found = keptFaces.safeParse(JSON.parse(text)).data ?? [];
    this.kept.set(channel, found);
    return found;
  }

  private async noteUse(channel: string, own: KeptFace, kept: KeptFace[]): Promise<void> {
    const now = this.base.clock.now();
    const isLong = now - own.usedAt >= USED_MS;
    own.usedAt = now;
    if (isLong) await this.store(channel, kept);
  }

  private async keep(
    channel: string,
    webhook: ListedWebhook,
    { chat, personaId, persona, portrait: { hash } }: WantedFace,
    kept: KeptFace[],
  ): Promise<OwnWebhook> {
    const usedAt = this.base.clock.now();
    const { id, name } = webhook;
    const others = kept.filter((each) => each.id !== id);
    await this.store(channel, [...others, { id, chat, personaId, persona, name, hash, usedAt }]);
    return webhook;
  }

  /** Never rejects: if it is lost, the webhook is found by its name, and its picture set again. */
  private async store(channel: string, kept: KeptFace[]): Promise<void> {
    this.kept.set(channel, kept);
    const values = new Map([[nameIn(channel), JSON.stringify(kept)]]);
    await this.host.state.set(values).catch((error) => {
      const told = { channel: 'discord', reason: describe(error) };
      this.base.log.warn(told, 'webhooks of personas were not noted; they are found by name');
    });
  }
}

/** Whether it shows this. Somebody may have changed it, or a process that died before it was noted. */
function isRight(own: KeptFace, webhook: ListedWebhook, { persona, portrait }: WantedFace): boolean {
  const isUnchanged = own.name === webhook.name && webhook.hasPicture;
  return isUnchanged && own.persona === persona && own.hash === portrait.hash;
}

/** Discord does not know it any more, and is not asked for it again. */
function drop(webhook: ListedWebhook, ours: ListedWebhook[]): void {
  ours.splice(ours.indexOf(webhook), 1);
}

function nameIn(channel: string): string {
  return `faces.${channel}`;
}

/** Rejects if the call may succeed soon. */
function refusalIn(error: unknown): DiscordFailure {
  const failure = failureOf(error);
  const isLong = failure.retryAfterMs !== null && failure.retryAfterMs > PATIENCE_MS;
  if (!isRefusal(failure) && !isLong) throw error;
  return failure;
}

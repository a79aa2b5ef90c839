/** A shard's session at Discord's gateway. It outlives the process. */
import { createHash } from 'node:crypto';
import { type SessionInfo, WebSocketShard } from '@discordjs/ws';
import * as Discord from 'discord-api-types/v10';
import * as z from 'zod';
import type { ChannelHost } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { Identity } from './directory.js';
import type { DiscordOptions } from './options.js';
import { SESSION, type Seat } from './shards.js';

/** One event of the gateway. Numbers increase within a session. */
export interface Packet {
  kind: string;
  payload: unknown;
  sequence: number;
  isReplay: boolean;
}

/** How often the session is saved while nothing is stored. Need not be exact: duplicates are stored once. */
const KEEP_EVERY_MS = 300_000;

const keptSession = z.object({
  /** A session belongs to a token, of which only a hash is kept. */
  tokenHash: z.string(),
  id: z.string(),
  resumeUrl: z.string(),
  sequence: z.int(),
  heardAt: z.number().nullish(),
  me: z.object({
    id: z.string(),
    name: z.string(),
    username: z.string().optional(),
    applicationId: z.string(),
  }),
});

export class GatewaySession {
  private readonly tokenHash: string;
  /** As the library reports it; null: none can be resumed. */
  info: SessionInfo | null = null;
  /** Until missed messages are stored, the next process must not resume this session. */
  private isComplete = false;
  /** Time up to which everything is stored; null: unknown. */
  heardAt: number | null = null;
  private keptAt = 0;
  /** Events received but not yet stored, in order. */
  private readonly pending = new Set<Packet>();
  /** The library counts an event shortly before it hands it over: until then, nothing of it is stored. */
  private reached = 0;

  constructor(
    private readonly host: ChannelHost<DiscordOptions>,
    private readonly identity: Identity,
    private readonly seat: Seat,
  ) {
    this.tokenHash = createHash('sha256').update(host.options.token).digest('hex');
  }

  /** Loads the previous process's session, if it belongs to this bot. */
  async load(): Promise<void> {
    const { seat } = this;
    const { state, cursor, clock } = this.host;
    const key = seat.key(SESSION);
    const text = (await state.get([key])).get(key) ?? 'null';
    const found = keptSession.safeParse(JSON.parse(text)).data;
    if (found?.tokenHash !== this.tokenHash) return;
    const { id, resumeUrl, me } = found;
    // A cursor is `session/sequence`; that of another session says nothing.
    const [session, reached] = ((await cursor(seat.key(me.id))) ?? '').split('/');
    const sequence = session === id ? Math.max(Number(reached), found.sequence) : found.sequence;
    this.info = {
      sessionId: id,
      resumeURL: resumeUrl,
      sequence,
      shardId: seat.shard,
      shardCount: seat.count,
    };
    this.reached = sequence;
    this.isComplete = true;
    this.heardAt = found.heardAt == null ? null : Math.min(found.heardAt, clock.now());
    this.identity.me = me;
  }

  update(next: SessionInfo | null): void {
    if (next !== null && next.sessionId === this.info?.sessionId) {
      this.info.sequence = next.sequence;
      return;
    }
    this.info = next && { ...next };
    this.isComplete = false;
    this.reached = 0;
    this.pending.clear();
  }

  /** Everything missed before this session is stored. */
  async complete(): Promise<void> {
    this.isComplete = this.info !== null;
    await this.keep();
  }

  async beat(): Promise<void> {
    if (this.host.clock.now() - this.keptAt >= KEEP_EVERY_MS) await this.keep();
  }

  /** Saves for the next process. Never rejects. */
  async keep(): Promise<void> {
    const { clock, log, state } = this.host;
    const me = this.identity.me;
    if (this.info === null || !this.isComplete || me === null) return;
    // There are to be more shards: it ends, and is none of theirs.
    if (this.info.shardCount !== this.seat.count) return;
    this.keptAt = clock.now();
    if (this.pending.size === 0) this.heardAt = this.keptAt;
    const { tokenHash, heardAt, info } = this;
    const { sessionId: id, resumeURL: resumeUrl } = info;
    const value = { tokenHash, id, resumeUrl, sequence: this.storedUpTo(), heardAt, me };
    await state.set(new Map([[this.seat.key(SESSION), JSON.stringify(value)]])).catch((error) => {
      log.warn({ channel: 'discord', reason: describe(error) }, 'saving the Discord session failed');
    });
  }

  /** The library has handed it over. */
  reach({ sequence }: Packet): void {
    this.reached = sequence;
  }

  came(packet: Packet): void {
    this.pending.add(packet);
  }

  /** They are stored, or hold nothing to store. */
  done(packets: readonly Packet[]): void {
    for (const packet of packets) this.pending.delete(packet);
  }

  /** Stored with a batch: the next process resumes from there. */
  cursorAfter(packets: readonly Packet[]): string | undefined {
    return this.info === null ? undefined : `${this.info.sessionId}/${this.storedUpTo(packets)}`;
  }

  /** The sequence up to which all events are stored, once `stored` are, too. */
  storedUpTo(stored: readonly Packet[] = []): number {
    for (const packet of this.pending) if (!stored.includes(packet)) return packet.sequence - 1;
    return this.reached;
  }
}

/**
 * Acknowledges only stored events, not all that the library has received. Discord keeps the rest for a resume, so after a
 * kill the next process receives them.
 */
export class StoringShard extends WebSocketShard {
  constructor(
    private readonly session: GatewaySession,
    ...given: ConstructorParameters<typeof WebSocketShard>
  ) {
    super(...given);
  }

  override send(payload: Discord.GatewaySendPayload): Promise<void> {
    if (payload.op !== Discord.GatewayOpcodes.Heartbeat || payload.d === null) return super.send(payload);
    return super.send({ ...payload, d: Math.min(payload.d, this.session.storedUpTo()) });
  }
}

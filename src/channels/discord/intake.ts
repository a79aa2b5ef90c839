/**
 * What the gateway brings, on its way to be handed in. The order in a channel is that of Discord: while it is not known
 * what was missed there, or where the channel belongs, what comes from it is held back.
 */
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { InboundEdit, InboundEvent } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import { read } from './payload.js';

/** How many are remembered; older ones go. */
const MOST_NOTED = 1_000;

interface Packet {
  kind: string;
  payload: unknown;
}

export interface Intake {
  take(kind: string, payload: unknown): void;
  /** From now on everything waits: a session began, and nobody knows yet what was missed. */
  holdAll(): void;
  /** Ends that, but for the channels that are held. */
  resume(): void;
  /** What comes from this channel waits for as many releases. */
  hold(room: string): void;
  release(room: string): void;
}

export function createIntake(parts: {
  /** Pure: the event that a packet is; null for most. */
  inbound(kind: string, payload: unknown): InboundEvent | null;
  hear(event: InboundEvent): void;
  log: Log;
  /** A channel of a guild that we were told nothing of. */
  isUnknown(kind: string, room: string): boolean;
  /** Finds out; from then on it is known. Never rejects. */
  lookUp(room: string, guildId: string): Promise<void>;
}): Intake {
  const held = new Map<string, { holds: number; packets: Packet[] }>();
  let all: Packet[] | null = null;
  const edited = bounded<string, true>(MOST_NOTED);

  function take(packet: Packet): void {
    const where = read.where(packet.payload);
    if (where === undefined) return;
    const { channel_id: room, guild_id: guildId } = where;
    const waiting = all ?? held.get(room)?.packets;
    if (waiting !== undefined) {
      waiting.push(packet);
    } else if (guildId !== undefined && parts.isUnknown(packet.kind, room)) {
      hold(room).push(packet);
      void parts.lookUp(room, guildId).then(() => release(room));
    } else {
      pass(packet);
    }
  }

  function pass({ kind, payload }: Packet): void {
    try {
      const event = parts.inbound(kind, payload);
      if (event === null || (event.kind === 'edit' && isRepeated(event))) return;
      parts.hear(event);
    } catch (error) {
      // It should not be; but one event that cannot be read must not keep the others from being heard.
      parts.log.error({ channel: 'discord', kind, reason: describe(error) }, 'an event could not be read');
    }
  }

  /** Discord tells of an edited message again when a preview is put below it or it is pinned. */
  function isRepeated({ platformMessageId, editedAt }: InboundEdit): boolean {
    const edit = `${platformMessageId}/${editedAt}`;
    const isKnown = edited.get(edit) === true;
    edited.set(edit, true);
    return isKnown;
  }

  function hold(room: string): Packet[] {
    const there = held.get(room) ?? { holds: 0, packets: [] };
    there.holds += 1;
    held.set(room, there);
    return there.packets;
  }

  function release(room: string): void {
    const there = held.get(room);
    if (there === undefined) return;
    there.holds -= 1;
    letGo(room);
  }

  function letGo(room: string): void {
    const there = held.get(room);
    if (there === undefined || there.holds > 0 || all !== null) return;
    held.delete(room);
    for (const packet of there.packets) take(packet);
  }

  return {
    take: (kind, payload) => take({ kind, payload }),
    holdAll() {
      all ??= [];
    },
    resume() {
      const since = all ?? [];
      all = null;
      // What waited in a channel came before.
      for (const room of [...held.keys()]) letGo(room);
      for (const packet of since) take(packet);
    },
    hold: (room) => void hold(room),
    release,
  };
}

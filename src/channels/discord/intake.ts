/**
 * Brings the gateway's events into order before they are stored: while what was missed in a channel is still being
 * fetched, or nothing is known of the channel, its events are held back. Those of other channels pass.
 */
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { InboundEdit, InboundEvent } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import { MOST_NOTED } from './api.js';
import type { Lookup } from './lookup.js';
import { read } from './payload.js';
import type { Queue } from './queue.js';
import type { Packet, Session } from './session.js';

export type Intake = ReturnType<typeof createIntake>;

export function createIntake(parts: {
  /** Pure: the event that a packet is; null for most. */
  eventOf(packet: Packet): InboundEvent | null;
  queue: Queue;
  session: Session;
  lookup: Lookup;
  log: Log;
}) {
  const { queue, session, lookup, log } = parts;
  const held = new Map<string, { holds: number; packets: Packet[] }>();
  let all: Packet[] | null = null;
  const edited = bounded<string, true>(MOST_NOTED);

  function take(packet: Packet): void {
    const where = read.where(packet.payload);
    if (where === undefined) {
      session.done([packet]);
      return;
    }
    const { channel_id: room, guild_id: guildId } = where;
    const waiting = all ?? held.get(room)?.packets;
    if (waiting !== undefined) {
      waiting.push(packet);
    } else if (guildId !== undefined && lookup.isNeeded(packet.kind, room, guildId)) {
      hold(room).push(packet);
      void lookup.find(room, guildId).then(() => release(room));
    } else {
      pass(packet);
    }
  }

  function pass(packet: Packet): void {
    let event: InboundEvent | null = null;
    try {
      event = parts.eventOf(packet);
    } catch (error) {
      // A fault of ours; but one event that cannot be read must not keep the others from being stored.
      log.error(
        { channel: 'discord', kind: packet.kind, reason: describe(error) },
        'an event could not be read',
      );
    }
    if (event === null || (event.kind === 'edit' && isRepeated(event))) session.done([packet]);
    else queue.add(event, packet);
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
    takeHeld(room);
  }

  function takeHeld(room: string): void {
    const there = held.get(room);
    if (there === undefined || there.holds > 0 || all !== null) return;
    held.delete(room);
    for (const packet of there.packets) take(packet);
  }

  return {
    take,
    /** From now on everything waits: a session began, and it is not known yet what was missed. */
    holdAll(): void {
      all ??= [];
    },
    /** Ends that, but for the channels that are held. */
    resume(): void {
      const since = all ?? [];
      all = null;
      // What waited in a channel came before.
      for (const room of [...held.keys()]) takeHeld(room);
      for (const packet of since) take(packet);
    },
    /** The events of this channel wait until it is released as often as it was held. */
    hold: (room: string) => void hold(room),
    release,
  };
}

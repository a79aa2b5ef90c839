/** What a process finds when it starts, or when another one wrote: all that waits, whatever left it there. */
import { and, asc, eq, gte, min, sql } from 'drizzle-orm';
import { channelOf, type RoomId } from '../../core/ids.js';
import type { Pending, TurnStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { command, message, outbox, room, setting, turn } from './schema.js';
import { openEntriesOf } from './shown.js';

/**
 * From this many ends of the process on, a turn runs alone. Then an end is laid to it only when nobody else was
 * answered since the process had begun: else a gateway that is killed again and again, by whatever is outside of
 * it, would give up messages that are as good as any. Not for ever, though.
 */
const SUSPECT = 3;
const MOST_FORGIVEN = 5;

export function recoveryStore(connection: Connection): Pick<TurnStore, 'recover' | 'pending'> {
  const { query, read, write } = connection;
  const openEntries = openEntriesOf(connection);

  function pendingIn(channels: string[]): Pending {
    const isOurs = (id: string) => channels.includes(channelOf(id));
    const unfinished = query
      .select({ room: turn.roomId })
      .from(turn)
      .where(sql`${turn.state} = 'running'`)
      // Those that the process has died of least often come first: no suspect is tried twice before the others once.
      .orderBy(asc(turn.crashes), asc(turn.startedAt))
      .all();
    const waiting = query
      .select({ room: message.roomId })
      .from(message)
      .where(sql`${message.state} = 'waiting'`)
      .groupBy(message.roomId)
      .orderBy(asc(min(message.id)))
      .all();
    const goingOn = query.select({ room: room.id }).from(room).where(sql`${room.exchange} is not null`).all();
    const commands = query
      .select({ id: command.id, room: command.roomId })
      .from(command)
      .where(sql`${command.finishedAt} is null and ${command.state} = 'waiting'`)
      .orderBy(asc(command.id))
      .all();
    const chats = query
      .selectDistinct({ id: outbox.chatId })
      .from(outbox)
      .where(sql`${outbox.finishedAt} is null`)
      .all();
    return {
      rooms: [...new Set([...unfinished, ...goingOn, ...waiting].map((row) => row.room))].filter(isOurs),
      commands: commands.filter((row) => isOurs(row.room)),
      chats: chats.map((row) => row.id).filter(isOurs),
    };
  }

  /** The rooms that a dead process held, and with them the turns it was busy with. */
  function freeRooms(channels: string[], startedBefore: number): void {
    const othersWereAnswered =
      query.select({ id: room.id }).from(room).where(gte(room.lastReplyAt, startedBefore)).get() !==
      undefined;
    const held = query
      .select({ id: room.id })
      .from(room)
      .where(sql`${room.leaseOwner} is not null`)
      .all()
      .filter(({ id }) => channels.includes(channelOf(id)));
    clearSuspects(
      channels,
      held.map(({ id }) => id),
    );
    for (const { id } of held) {
      const isBusy = sql`${turn.roomId} = ${id} and ${turn.state} = 'running'`;
      const mayBeForgiven = sql`${turn.crashes} >= ${SUSPECT} and ${turn.forgiven} < ${MOST_FORGIVEN}`;
      const forgiven = othersWereAnswered
        ? query
            .update(turn)
            .set({ forgiven: sql`${turn.forgiven} + 1` })
            .where(and(isBusy, mayBeForgiven))
            .run().changes
        : 0;
      if (forgiven === 0) {
        query
          .update(turn)
          .set({ crashes: sql`${turn.crashes} + 1` })
          .where(isBusy)
          .run();
      }
      query.update(room).set({ leaseOwner: null }).where(eq(room.id, id)).run();
    }
  }

  /**
   * A process that ended while others were worked on, and not the suspects, has something else to end of: what was laid to
   * them since they run alone is taken back. Where only suspects were worked on, it may be one of them after the other.
   */
  function clearSuspects(channels: string[], held: RoomId[]): void {
    const isSuspect = sql`${turn.state} = 'running' and ${turn.crashes} >= ${SUSPECT}`;
    const suspects = query
      .select({ room: turn.roomId })
      .from(turn)
      .where(isSuspect)
      .all()
      .map(({ room }) => room)
      .filter((room) => channels.includes(channelOf(room)));
    if (held.every((room) => suspects.includes(room))) return;
    const free = suspects.filter((room) => !held.includes(room));
    for (const room of free) {
      query
        .update(turn)
        .set({ crashes: SUSPECT, forgiven: 0 })
        .where(and(eq(turn.roomId, room), isSuspect))
        .run();
    }
  }

  /** When the process before this one took these channels up; and notes that this one does now. */
  function startOfLastProcess(channels: string[], now: number): number {
    const key = `recovered.${[...channels].sort().join(',')}`;
    const before = query.select({ value: setting.value }).from(setting).where(eq(setting.key, key)).get();
    const value = String(now);
    query
      .insert(setting)
      .values({ key, value })
      .onConflictDoUpdate({ target: setting.key, set: { value } })
      .run();
    return Number(before?.value ?? now);
  }

  function freeCommands(channels: string[]): void {
    const running = query
      .select({ id: command.id, room: command.roomId })
      .from(command)
      .where(sql`${command.finishedAt} is null and ${command.state} = 'running'`)
      .all()
      .filter((row) => channels.includes(channelOf(row.room)));
    for (const { id } of running)
      query.update(command).set({ state: 'waiting' }).where(eq(command.id, id)).run();
  }

  return {
    recover: (channels, now) =>
      write(() => {
        freeRooms(channels, startOfLastProcess(channels, now));
        freeCommands(channels);
        openEntries.recover(channels, now);
        return pendingIn(channels);
      }),
    pending: (channels) => read(() => pendingIn(channels)),
  };
}

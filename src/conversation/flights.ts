/** Beside steps 4 to 6: the turns that run just now. Each can be ended at once, or cut off to be taken up again. */
import { type Clock, OVER } from '../core/clock.js';
import { type ChatId, type RoomId, roomParts } from '../core/ids.js';

export interface Flights {
  /**
   * Does the work of a turn, and resolves with what came of it, or at once when it is aborted: a hung tool or socket may
   * not listen to the signal, and its room must not wait for it. Rejects with what the work throws.
   */
  fly<End>(
    turn: { id: string; room: RoomId },
    abort: AbortController,
    work: () => Promise<End>,
  ): Promise<End | 'aborted' | 'cut off'>;
  /** Ends a turn; what it would still have said or saved is dropped. */
  abort(turnId: string): void;
  /** Where a turn in flight is; null for one that is over. */
  roomOf(turnId: string): RoomId | null;
  /** Cuts off those of a chat; they write nothing more when it resolves. */
  interrupt(chatId: ChatId): Promise<void>;
}

interface Flight {
  room: RoomId;
  abort: AbortController;
  interrupted: boolean;
  landed: Promise<unknown>;
}

/** What is cut off comes to rest within this time, or hangs in a socket where it can write nothing. */
const LANDING_MS = 2_000;

export function createFlights(clock: Clock): Flights {
  const inFlight = new Map<string, Flight>();

  return {
    async fly({ id, room }, abort, work) {
      const flight: Flight = { room, abort, interrupted: false, landed: Promise.resolve() };
      inFlight.set(id, flight);
      try {
        const landed = work();
        flight.landed = landed;
        return await Promise.race([landed, aborted(flight)]);
      } finally {
        inFlight.delete(id);
      }
    },

    abort: (turnId) => inFlight.get(turnId)?.abort.abort(),
    roomOf: (turnId) => inFlight.get(turnId)?.room ?? null,

    async interrupt(chatId) {
      const ofChat = [...inFlight.values()].filter(({ room }) => roomParts(room).chatId === chatId);
      for (const flight of ofChat) {
        flight.interrupted = true;
        flight.abort.abort(OVER);
      }
      const landed = Promise.allSettled(ofChat.map((flight) => flight.landed));
      await Promise.race([landed, clock.sleep(LANDING_MS)]);
    },
  };
}

async function aborted(flight: Flight): Promise<'aborted' | 'cut off'> {
  const { signal } = flight.abort;
  if (!signal.aborted) {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  }
  return flight.interrupted ? 'cut off' : 'aborted';
}

/** Steps 2 and 3 of the route: resumes a turn that was interrupted or whose result has come; time limits of suspended turns. */
import type { Channel } from '../../core/channel.js';
import { type Clock, leaseOf } from '../../core/clock.js';
import { roomParts } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import type { Alarm, RoomState } from '../../core/store.js';
import { oneLine, code as quoted } from '../quoting.js';
import { cutOffCalls } from '../turn/steps.js';
import type { RoomRun } from './scheduler.js';
import { type RoomServices, schedulerOf, type Turn } from './turn.js';

const NAME_CHARS = 60;

export async function resumeTurn(
  services: RoomServices,
  run: RoomRun,
  seen: RoomState,
  channel: Channel,
): Promise<Turn | 'look again'> {
  const claimed = await services.store.claim(seen, leaseOf(services));
  if (!claimed?.turn) return 'look again';
  const { claim, turn, batch } = claimed;
  run.claim = claim;
  run.turnId = turn.id;
  const { room, chat, revision, exchange } = seen;
  const personas = await services.personas.list(chat.id);
  const scheduledBy = await schedulerOf(services, batch);
  await tellCutOff(services, seen, turn);
  return { chat, room, channel, revision, claim, personas, turn, batch, scheduledBy, settled: 0, exchange };
}

/** Interrupted calls are not repeated, so the chat is told once per turn: somebody there may know the outcome. */
async function tellCutOff(
  { deliver }: RoomServices,
  { chat, room }: RoomState,
  { id, steps }: Turn['turn'],
): Promise<void> {
  const calls = cutOffCalls(steps);
  if (calls.length === 0) return;
  const names = [...new Set(calls.map(({ name }) => quoted(oneLine(name, NAME_CHARS))))].join(', ');
  const text = `I was cut off while ${names} ran: I cannot tell whether it was done, and do not run it again by myself.`;
  await deliver.say({ chat, threadId: roomParts(room).threadId }, `interrupted:${id}`, text);
}

const RETRY_MS = 2_000;

/** By what a turn waits for. */
export class Alarms {
  /** Each cancels its timer. */
  private readonly cancels = new Map<string, () => void>();
  private stopped = false;

  /** `ring` resumes the turn with a failure. */
  constructor(
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly ring: (waitsFor: string) => Promise<void>,
  ) {}

  set({ waitsFor, at }: Alarm): void {
    if (this.stopped || this.cancels.has(waitsFor)) return;
    const due = () => {
      this.cancels.delete(waitsFor);
      if (this.clock.now() < at) return this.set({ waitsFor, at });
      void this.ring(waitsFor).catch((error) => {
        this.log.error(
          { err: error, waitsFor },
          'a suspended turn timed out and could not be resumed; retrying',
        );
        this.set({ waitsFor, at: this.clock.now() + RETRY_MS });
      });
    };
    this.cancels.set(waitsFor, this.clock.after(Math.max(0, at - this.clock.now()), due));
  }

  cancel(waitsFor: string): void {
    this.cancels.get(waitsFor)?.();
    this.cancels.delete(waitsFor);
  }

  stop(): void {
    this.stopped = true;
    for (const cancel of this.cancels.values()) cancel();
  }
}

/** The status of a channel: connected or not, since when, and what was wrong last. */
import type { ChannelStatus } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';

export type State = ReturnType<typeof createState>;

export function createState(clock: Clock) {
  let status: ChannelStatus = { connected: false, since: clock.now(), lastError: null };

  function become(connected: boolean, lastError: string | null): void {
    const since = connected === status.connected ? status.since : clock.now();
    status = { connected, since, lastError };
  }

  return {
    up: () => become(true, status.lastError),
    /** null: nothing was wrong. */
    down: (reason: string | null) => become(false, reason),
    status: (): ChannelStatus => status,
  };
}

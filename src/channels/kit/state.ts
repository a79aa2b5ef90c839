/** The status of a channel: connected or not, since when, and what was wrong last. */
import type { ChannelStatus } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';

export interface State {
  up(): void;
  /** null: nothing was wrong. */
  down(reason: string | null): void;
  status(): ChannelStatus;
}

export function createState(clock: Clock): State {
  let status: ChannelStatus = { connected: false, since: clock.now(), lastError: null };

  function become(connected: boolean, lastError: string | null): void {
    const since = connected === status.connected ? status.since : clock.now();
    status = { connected, since, lastError };
  }

  return {
    up: () => become(true, status.lastError),
    down: (reason) => become(false, reason),
    status: () => status,
  };
}
